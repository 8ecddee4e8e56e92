// Package vcentertest gives tests a vCenter: govmomi's simulator in this process, with TLS, a user and a template.
//
// It stands to package vcenter as httptest to http, and must not import it.
package vcentertest
