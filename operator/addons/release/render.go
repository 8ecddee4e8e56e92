package release

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/millwright-dev/millwright/internal/bundle"
)

// maxRenders is how many renders are kept: a rollout renders few different ones at a time, each of up to some MiB.
const maxRenders = 16

// renders keeps the latest renders by the digest of what they were made from.
type renders struct {
	mu     sync.Mutex
	kept   map[string][]*unstructured.Unstructured
	oldest []string
}

func newRenders() *renders { return &renders{kept: map[string][]*unstructured.Unstructured{}} }

// get returns copies, since who applies them changes them.
func (r *renders) get(digest string) []*unstructured.Unstructured {
	r.mu.Lock()
	kept := r.kept[digest]
	r.mu.Unlock()
	return copies(kept)
}

func (r *renders) put(digest string, objects []*unstructured.Unstructured) {
	kept := copies(objects)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept[digest] == nil {
		r.oldest = append(r.oldest, digest)
	}
	r.kept[digest] = kept
	if len(r.oldest) > maxRenders {
		delete(r.kept, r.oldest[0])
		r.oldest = r.oldest[1:]
	}
}

func copies(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, object := range objects {
		out = append(out, object.DeepCopy())
	}
	return out
}

// render returns the objects of a bundle for a cluster.
func (r *Reconciler) render(ctx context.Context, s *snapshot) ([]*unstructured.Unstructured, error) {
	if objects := r.renders.get(s.digest); objects != nil {
		return objects, nil
	}
	in := s.input
	var err error
	if in.Sources, err = r.Fetcher.Fetch(ctx, in.Version); err != nil {
		return nil, err
	}
	objects, err := bundle.Render(in)
	if err != nil {
		return nil, err
	}
	r.renders.put(s.digest, objects)
	return objects, nil
}
