// Command guest is the inside of one simulated VM. The sandbox's daemon starts
// it for a machine that is powered on; closing its standard input switches the
// machine off.
//
// In: guest.json, which --config names. Out: JSON lines of events on standard
// output, the serial console on standard error.
package main
