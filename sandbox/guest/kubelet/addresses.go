package kubelet

import (
	"encoding/binary"
	"net/netip"
)

// nextAddress returns an address of the Node's pod CIDR that no pod has. Without
// a CIDR it takes one from 100.64.0.0/10 (RFC 6598), set apart by the last two
// bytes of the guest's own address. Empty means that none is left.
func nextAddress(podCIDR, guest string, used map[string]bool) string {
	prefix, err := netip.ParsePrefix(podCIDR)
	if err != nil {
		prefix = syntheticPrefix(guest)
	}
	prefix = prefix.Masked()
	// The first address is the gateway's on most networks.
	address := prefix.Addr().Next()
	for n := 0; n < 1<<16; n++ {
		address = address.Next()
		if !prefix.Contains(address) || prefix.Addr().Is4() && !prefix.Contains(address.Next()) {
			return ""
		}
		if !used[address.String()] {
			return address.String()
		}
	}
	return ""
}

func syntheticPrefix(guest string) netip.Prefix {
	var b [4]byte
	if address, err := netip.ParseAddr(guest); err == nil && address.Is4() {
		b = address.As4()
	}
	// 16 bits of the guest's address above 6 bits for its pods: a /26 each.
	binary.BigEndian.PutUint32(b[:], 100<<24|64<<16|uint32(b[2])<<14|uint32(b[3])<<6)
	return netip.PrefixFrom(netip.AddrFrom4(b), 26)
}
