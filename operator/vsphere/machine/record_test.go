package machine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
)

func TestAMachineWhoseObjectVanishesWhileItIsClonedIsDestroyedAndNoOther(t *testing.T) {
	start := time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)
	key := client.ObjectKey{Namespace: "fleet", Name: "m"}
	machine := &infrav1.VSphereMachine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	for name, tc := range map[string]struct {
		happens func(*begun)
		at      time.Duration
		want    bool
	}{
		"its object vanishes at once":               {func(*begun) {}, time.Second, true},
		"it is still being destroyed later":         {func(b *begun) { b.missing(key, start.Add(time.Second)) }, time.Hour, true},
		"somebody takes its finalizer off later":    {func(*begun) {}, time.Hour, false},
		"it was seen with its finalizer since":      {func(b *begun) { b.seen(key, false, start.Add(2*certain)) }, 2 * certain, false},
		"it is seen too soon to be sure":            {func(b *begun) { b.seen(key, false, start.Add(time.Millisecond)) }, time.Second, true},
		"it is paused, as before a move":            {func(b *begun) { b.seen(key, true, start.Add(time.Millisecond)) }, time.Second, false},
		"its virtual machine was destroyed already": {func(b *begun) { b.forget(key) }, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			var b begun
			b.keep(machine, start)
			tc.happens(&b)
			got := b.missing(key, start.Add(tc.at))
			if (got != nil) != tc.want {
				t.Fatalf("to be destroyed: %v, want %v", got != nil, tc.want)
			}
			if got != nil && got.DeletionTimestamp.IsZero() {
				t.Error("it is not marked as being deleted")
			}
		})
	}
}
