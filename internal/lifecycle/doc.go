// Package lifecycle holds decisions about machines that several controllers and the plugins share: versions, how
// many replicas, whether a machine was made from the template that is wanted now.
//
// In: plain values and Cluster API types. Out: values and reasons to tell the user. It is pure: no client, no clock, no
// knowledge of any provider.
package lifecycle
