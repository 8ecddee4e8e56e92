package patch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// statusAttempts bounds how often a status patch is built anew because somebody else changed the list of conditions
// between our read and our write.
const statusAttempts = 5

// Helper remembers an object as it was read and writes the difference.
type Helper struct {
	client client.Client
	before client.Object
}

// New remembers obj as it was read.
func New(obj client.Object, c client.Client) *Helper {
	return &Helper{client: c, before: obj.DeepCopyObject().(client.Object)}
}

// Patch writes the difference between the remembered object and obj: metadata and spec first, then status. Afterwards
// obj is what the API server stored, and the Helper remembers that, so that Patch can be called again.
//
// A concurrent change of finalizers or owner references is a conflict (apierrors.IsConflict). An object being deleted
// whose last finalizer this call removes gets no status: it is gone.
func (h *Helper) Patch(ctx context.Context, obj client.Object) error {
	before, after, live, err := h.patchMain(ctx, obj)
	if err != nil || live == nil {
		return err
	}
	if live, err = h.patchStatus(ctx, live, before, after); err != nil {
		if goneAfterDeletion(obj, err) {
			return nil
		}
		return fmt.Errorf("patch status of %s: %w", describe(obj, h.client.Scheme()), err)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(live).Elem())
	h.before = live.DeepCopyObject().(client.Object)
	return nil
}

// PatchButStatus writes the difference of metadata and spec alone, for what must be stored before something is done. The
// status of obj stays as it is, to be written later; the result tells whether there is anything to write.
func (h *Helper) PatchButStatus(ctx context.Context, obj client.Object) (more bool, err error) {
	before, after, live, err := h.patchMain(ctx, obj)
	if err != nil || live == nil {
		return false, err
	}
	status := section(after, "status")
	more = len(statusOperations(section(before, "status"), status, section(before, "status"), absentValues)) > 0
	if live == h.before {
		return more, nil
	}
	stored, err := toMap(live)
	if err != nil {
		return false, err
	}
	h.before = live.DeepCopyObject().(client.Object)
	if len(status) > 0 {
		stored["status"] = status
	}
	data, err := json.Marshal(stored)
	if err != nil {
		return false, err
	}
	merged := blankOf(h.before)
	if err := json.Unmarshal(data, merged); err != nil {
		return false, fmt.Errorf("read %s: %w", describe(obj, h.client.Scheme()), err)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(merged).Elem())
	return more, nil
}

// patchMain writes metadata and spec and returns both objects as maps, with what is stored now: the remembered object
// when there was nothing to write, nil when the object is gone.
func (h *Helper) patchMain(ctx context.Context, obj client.Object) (before, after map[string]any, live client.Object, err error) {
	if before, err = toMap(h.before); err != nil {
		return nil, nil, nil, err
	}
	if after, err = toMap(obj); err != nil {
		return nil, nil, nil, err
	}
	main, err := mainPatch(before, after)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("compare %s: %w", describe(obj, h.client.Scheme()), err)
	}
	if main == nil {
		return before, after, h.before, nil
	}
	whole := func(o client.Object, p client.Patch) error { return h.client.Patch(ctx, o, p) }
	if live, err = h.send(whole, types.MergePatchType, main); err != nil {
		if goneAfterDeletion(obj, err) {
			return nil, nil, nil, nil
		}
		return nil, nil, nil, fmt.Errorf("patch %s: %w", describe(obj, h.client.Scheme()), err)
	}
	if live.GetDeletionTimestamp() != nil && len(live.GetFinalizers()) == 0 {
		return nil, nil, nil, nil
	}
	stored, err := toMap(live)
	if err != nil {
		return nil, nil, nil, err
	}
	if reflect.DeepEqual(section(stored, "spec"), section(after, "spec")) {
		restampGeneration(after, h.before.GetGeneration(), live.GetGeneration())
	}
	return before, after, live, nil
}

// patchStatus brings the change of status from before to after onto live and returns what was stored.
func (h *Helper) patchStatus(ctx context.Context, live client.Object, before, after map[string]any) (client.Object, error) {
	whole := func(o client.Object, p client.Patch) error { return h.client.Patch(ctx, o, p) }
	status := func(o client.Object, p client.Patch) error { return h.client.Status().Patch(ctx, o, p) }
	for attempt := 1; ; attempt++ {
		current, err := toMap(live)
		if err != nil {
			return nil, err
		}
		absent := absentValues
		if attempt > 1 {
			absent = emptyValues
		}
		ops := statusOperations(section(before, "status"), section(after, "status"), section(current, "status"), absent)
		if len(ops) == 0 {
			return live, nil
		}
		data, err := json.Marshal(ops)
		if err != nil {
			return nil, err
		}
		stored, err := h.send(status, types.JSONPatchType, data)
		if err == nil || attempt == statusAttempts || !(apierrors.IsInvalid(err) || apierrors.IsConflict(err)) {
			return stored, err
		}
		// A test failed: the list of conditions moved. The cache may still hold the old list, so read through a patch
		// that changes nothing: the API server answers it with the stored object and writes nothing.
		if live, err = h.send(whole, types.MergePatchType, []byte("{}")); err != nil {
			return nil, err
		}
	}
}

// send patches the remembered object and returns the answer. The answer is decoded into a blank object: decoding into
// one that holds values keeps map keys and fields that the answer no longer has.
func (h *Helper) send(write func(client.Object, client.Patch) error, kind types.PatchType, data []byte) (client.Object, error) {
	blank := blankOf(h.before)
	blank.SetNamespace(h.before.GetNamespace())
	blank.SetName(h.before.GetName())
	return blank, write(blank, client.RawPatch(kind, data))
}

// blankOf returns an empty object of the same type and kind.
func blankOf(obj client.Object) client.Object {
	blank := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if u, ok := blank.(*unstructured.Unstructured); ok {
		u.Object = map[string]any{}
	}
	blank.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return blank
}

// mainPatch returns the merge patch of everything but status, nil when nothing changed. Lists of metadata are replaced
// as a whole by a merge patch, so a patch that touches one carries the resource version it was computed from.
func mainPatch(before, after map[string]any) ([]byte, error) {
	changed := diff(without(before, "status"), without(after, "status"))
	if len(changed) == 0 {
		return nil, nil
	}
	if metadata, ok := changed["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		_, finalizers := metadata["finalizers"]
		_, owners := metadata["ownerReferences"]
		if finalizers || owners {
			metadata["resourceVersion"] = section(before, "metadata")["resourceVersion"]
		}
		if len(metadata) == 0 {
			delete(changed, "metadata")
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	return json.Marshal(changed)
}

// restampGeneration marks a status as computed for the generation that our own patch of the spec created. It is for a
// stored spec that is the one the status was computed from: somebody else's change in between is not observed yet.
// Without it every persisted default would cost a second write of all conditions.
func restampGeneration(after map[string]any, read, stored int64) {
	if read == stored {
		return
	}
	status := section(after, "status")
	current := json.Number(strconv.FormatInt(stored, 10))
	if number(status["observedGeneration"]) == read {
		status["observedGeneration"] = current
	}
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if condition, ok := item.(map[string]any); ok && number(condition["observedGeneration"]) == read {
			condition["observedGeneration"] = current
		}
	}
}

func goneAfterDeletion(obj client.Object, err error) bool {
	return apierrors.IsNotFound(err) && obj.GetDeletionTimestamp() != nil
}

// toMap converts through JSON and not through reflection, so that numbers of both sides have one type and can be compared.
func toMap(obj client.Object) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(obj), err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	out := map[string]any{}
	if err := decoder.Decode(&out); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(obj), err)
	}
	return out, nil
}

func number(v any) int64 {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	i, _ := n.Int64()
	return i
}

func section(obj map[string]any, key string) map[string]any {
	m, _ := obj[key].(map[string]any)
	return m
}

func without(obj map[string]any, key string) map[string]any {
	out := make(map[string]any, len(obj))
	for k, v := range obj {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func describe(obj client.Object, scheme *runtime.Scheme) string {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if gvk, err := apiutil.GVKForObject(obj, scheme); err == nil {
		kind = gvk.Kind
	}
	return fmt.Sprintf("%s %q", kind, client.ObjectKeyFromObject(obj))
}
