package address

import (
	"strings"
	"testing"
)

func mustGet(t *testing.T, p *Pool, key string) string {
	t.Helper()
	a, err := p.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAMachineKeepsItsAddressUntilItIsReleased(t *testing.T) {
	p := Block(70).Machines()
	a := mustGet(t, p, "vm-1")
	if b := mustGet(t, p, "vm-2"); b == a {
		t.Fatalf("two machines share %s", a)
	}
	if again := mustGet(t, p, "vm-1"); again != a {
		t.Errorf("vm-1 moved from %s to %s", a, again)
	}
	p.Release("vm-1")
	if again := mustGet(t, p, "vm-1"); again == a {
		t.Errorf("%s was given out again at once", a)
	}
}

func TestAPoolUsesEachAddressOnceAndThenSaysThatItIsEmpty(t *testing.T) {
	p := newPool(70, 250, 260) // 250–254, then 257–260: .255 and .0 are left out
	seen := map[string]bool{}
	for _, key := range strings.Split("a b c d e f g h i", " ") {
		a := mustGet(t, p, key)
		if seen[a] || strings.HasSuffix(a, ".0") || strings.HasSuffix(a, ".255") {
			t.Fatalf("%s was given out to %s", a, key)
		}
		seen[a] = true
	}
	if a, err := p.Get("j"); err == nil {
		t.Fatalf("an empty pool gave out %s", a)
	}
	p.Release("c")
	if got := mustGet(t, p, "j"); got != "127.70.0.252" {
		t.Errorf("got %s, want the one that was released", got)
	}
}

func TestTheRangesOfABlockDoNotMeet(t *testing.T) {
	b := Block(70)
	endpoint, machine := mustGet(t, b.Endpoints(), "c"), mustGet(t, b.Machines(), "m")
	if endpoint != "127.70.0.10" || machine != "127.70.16.1" || b.Host() != "127.70.0.1" {
		t.Errorf("endpoint %s, machine %s, host %s", endpoint, machine, b.Host())
	}
}

func TestTwoSandboxesClaimDifferentBlocks(t *testing.T) {
	a, first, err := Claim()
	if err != nil {
		t.Skipf("no loopback block to be had here: %v", err)
	}
	defer first.Close()
	b, second, err := Claim()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if a == b {
		t.Errorf("both claimed %s", a)
	}
}
