package address

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// Block is the second number X of a sandbox's 127.X.0.0/16.
type Block uint8

// The blocks that sandboxes choose from, and the port that marks one as taken.
const (
	firstBlock Block = 64
	lastBlock  Block = 127
	claimPort        = 6440
)

// The two ranges of a block; services of the sandbox itself are on .0.1.
const (
	firstEndpoint = 10        // 127.X.0.10
	firstMachine  = 16 << 8   // 127.X.16.0
	lastHost      = 1<<16 - 2 // 127.X.255.254
)

// Host is the address of the management cluster, vCenter and the operator.
func (b Block) Host() string { return b.at(1).String() }

// String is the block in the usual notation.
func (b Block) String() string { return fmt.Sprintf("127.%d.0.0/16", uint8(b)) }

func (b Block) at(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(b), byte(n >> 8), byte(n)})
}

// Endpoints returns the pool of control-plane endpoint addresses.
func (b Block) Endpoints() *Pool { return newPool(b, firstEndpoint, firstMachine-1) }

// Machines returns the pool of addresses of virtual machines.
func (b Block) Machines() *Pool { return newPool(b, firstMachine+1, lastHost) }

// Claim takes the first block that is free. The claim holds until the listener
// is closed or the process ends, however it ends.
func Claim() (Block, net.Listener, error) {
	for b := firstBlock; b <= lastBlock; b++ {
		l, err := net.Listen("tcp", net.JoinHostPort(b.Host(), fmt.Sprint(claimPort)))
		switch {
		case err == nil:
			return b, l, nil
		case errors.Is(err, syscall.EADDRINUSE):
			continue
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return 0, nil, fmt.Errorf("this system has no address %s, and a sandbox needs a whole 127.X.0.0/16: "+
				"run it on Linux, a container or virtual machine will do: %w", b.Host(), err)
		default:
			return 0, nil, fmt.Errorf("claim %s: %w", b, err)
		}
	}
	return 0, nil, fmt.Errorf("all %d blocks from 127.%d to 127.%d are taken: stop a sandbox with `sandbox down` (%w)",
		lastBlock-firstBlock+1, firstBlock, lastBlock, os.ErrExist)
}
