// Package address gives the sandbox its addresses. Each sandbox claims a
// 127.X.0.0/16 of its own, so that several run side by side with the same
// ports, and inside it one address for the management cluster and vCenter, a
// range for control-plane endpoints and a range for virtual machines.
//
// On Linux all of 127.0.0.0/8 is there without set-up; on other systems only
// 127.0.0.1 is, and the claim fails with a message that says so.
package address
