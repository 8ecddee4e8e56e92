// Package corefile brings a cluster's Corefile from one version of CoreDNS to
// another.
//
// In come the text and the two versions; out come the text for the other version
// and what is worth telling a person. A text that the other version reads as it
// is comes back byte by byte, with its comments. The package reads no cluster.
package corefile
