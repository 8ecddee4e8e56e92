package address

import "fmt"

// Pool hands out addresses by a key and keeps them until they are released.
// An address that was released is used again as late as possible: whatever
// still remembers it should get no answer rather than a stranger's. A Pool is
// not safe for concurrent use.
type Pool struct {
	block       Block
	first, last int
	next        int
	byKey       map[string]int
	taken       map[int]bool
}

func newPool(b Block, first, last int) *Pool {
	return &Pool{block: b, first: first, last: last, next: first, byKey: map[string]int{}, taken: map[int]bool{}}
}

// Get returns the address of key, the same until Release.
func (p *Pool) Get(key string) (string, error) {
	if n, ok := p.byKey[key]; ok {
		return p.block.at(n).String(), nil
	}
	for range p.last - p.first + 1 {
		n := p.next
		if p.next++; p.next > p.last {
			p.next = p.first
		}
		// Addresses that end in 0 or 255 look like networks to some programs.
		if end := n & 0xff; p.taken[n] || end == 0 || end == 0xff {
			continue
		}
		p.byKey[key], p.taken[n] = n, true
		return p.block.at(n).String(), nil
	}
	return "", fmt.Errorf("no address left between %s and %s: %d in use", p.block.at(p.first), p.block.at(p.last), len(p.taken))
}

// Release gives the address of key back; that it has none is no error.
func (p *Pool) Release(key string) {
	if n, ok := p.byKey[key]; ok {
		delete(p.byKey, key)
		delete(p.taken, n)
	}
}
