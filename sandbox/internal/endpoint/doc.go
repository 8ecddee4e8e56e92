// Package endpoint plays the network's part for virtual addresses: on a real
// network kube-vip announces an address by ARP and the switches carry it to the
// machine that holds it; here a listener at the address forwards to a machine
// that says it holds it.
//
// In: which backends hold an address. Out: TCP, byte for byte; TLS is between
// client and API server.
package endpoint
