package machine

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
)

// cloneAnnotation holds what status.clone says, from before vCenter is asked for the clone. As an annotation it is stored
// by the same request as the finalizer that guards the clone; status would take a second one.
const cloneAnnotation = "millwright.dev/clone"

// recordClone notes a clone that will be made; nil notes that there is none.
func recordClone(m *infrav1.VSphereMachine, clone *infrav1.VirtualMachineCloneStatus) error {
	m.Status.Clone = clone
	if clone == nil {
		delete(m.Annotations, cloneAnnotation)
		return nil
	}
	data, err := json.Marshal(clone)
	if err != nil {
		return fmt.Errorf("record the clone of VSphereMachine %q: %w", client.ObjectKeyFromObject(m), err)
	}
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, cloneAnnotation, string(data))
	return nil
}

// restoreClone puts the record into a status that was not written after it.
func restoreClone(m *infrav1.VSphereMachine) error {
	data, recorded := m.Annotations[cloneAnnotation]
	if !recorded || m.Status.Clone != nil {
		return nil
	}
	clone := &infrav1.VirtualMachineCloneStatus{}
	if err := json.Unmarshal([]byte(data), clone); err != nil {
		return fmt.Errorf("read annotation %s of VSphereMachine %q: %w: restore or remove it", cloneAnnotation, client.ObjectKeyFromObject(m), err)
	}
	m.Status.Clone = clone
	return nil
}

// unwritten keeps the statuses that wait to be written, so that the next step builds on them. When they are lost, vCenter
// tells the same again.
type unwritten struct {
	mu   sync.Mutex
	kept map[client.ObjectKey]keptStatus
}

type keptStatus struct {
	uid    types.UID
	status infrav1.VSphereMachineStatus
}

func (u *unwritten) keep(m *infrav1.VSphereMachine) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.kept == nil {
		u.kept = map[client.ObjectKey]keptStatus{}
	}
	u.kept[client.ObjectKeyFromObject(m)] = keptStatus{m.UID, *m.Status.DeepCopy()}
}

// restore gives m the status that was kept for it, if any, and forgets it.
func (u *unwritten) restore(m *infrav1.VSphereMachine) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key := client.ObjectKeyFromObject(m)
	if kept, ok := u.kept[key]; ok && kept.uid == m.UID {
		m.Status = kept.status
	}
	delete(u.kept, key)
}

func (u *unwritten) forget(key client.ObjectKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.kept, key)
}

// begun keeps the machines whose clone this process has just asked for. A finalizer that is added in the moment of a
// deletion may be lost: the API server deletes what it read before, and has accepted our write in between. The object is
// gone then, and only this tells that a virtual machine is in the making.
type begun struct {
	mu   sync.Mutex
	kept map[client.ObjectKey]*begunClone
}

type begunClone struct {
	machine *infrav1.VSphereMachine
	at      time.Time
	// lost is set once the object was found gone: from then on the virtual machine is to go.
	lost bool
}

// certain is how long after a write no deletion that was asked for before it can still be under way. Who removes the
// finalizer of an older machine wants its virtual machine to stay.
const certain = time.Minute

func (b *begun) keep(m *infrav1.VSphereMachine, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		b.kept = map[client.ObjectKey]*begunClone{}
	}
	b.kept[client.ObjectKeyFromObject(m)] = &begunClone{machine: m.DeepCopy(), at: now}
}

// missing returns a machine whose object is gone and whose virtual machine is not, as one that is being deleted; nil when
// there is nothing to be done.
func (b *begun) missing(key client.ObjectKey, now time.Time) *infrav1.VSphereMachine {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept, ok := b.kept[key]
	if !ok {
		return nil
	}
	if !kept.lost && now.Sub(kept.at) > certain {
		delete(b.kept, key)
		return nil
	}
	kept.lost = true
	m := kept.machine.DeepCopy()
	m.DeletionTimestamp = &metav1.Time{Time: now}
	return m
}

// seen forgets a machine whose object is there with its finalizer, when no deletion can have overtaken it any more. One
// that is paused is somebody else's to decide on.
func (b *begun) seen(key client.ObjectKey, paused bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if kept, ok := b.kept[key]; ok && !kept.lost && (paused || now.Sub(kept.at) > certain) {
		delete(b.kept, key)
	}
}

func (b *begun) forget(key client.ObjectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kept, key)
}
