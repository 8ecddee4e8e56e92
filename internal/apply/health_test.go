package apply

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// failing returns an Engine whose server answers the first n watches with an error and the next with a healthy object.
func failing(t *testing.T, n int, watches *int) *Engine {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			*watches++
			w := watch.NewFakeWithChanSize(1, false)
			if *watches > n {
				w.Add(parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: demo}}"))
			} else {
				w.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired})
			}
			return w, nil
		},
	}).Build()
	return &Engine{Client: c}
}

func TestAServerThatAnswersWatchesWithErrorsIsAskedLessAndLess(t *testing.T) {
	object := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: demo}}")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		watches := 0
		err := failing(t, 1000, &watches).watchUntilCurrent(ctx, object, &healthBoard{pending: map[ID]Health{}})
		if !errors.Is(err, context.DeadlineExceeded) || watches > 15 || watches < 5 {
			t.Errorf("%d watches in a minute, error %v; want some, until the time is over", watches, err)
		}
	})
}

func TestAWatchThatFailedIsBegunAgain(t *testing.T) {
	object := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: demo}}")
	synctest.Test(t, func(t *testing.T) {
		watches, began := 0, time.Now()
		err := failing(t, 2, &watches).watchUntilCurrent(t.Context(), object, &healthBoard{pending: map[ID]Health{}})
		if took := time.Since(began); err != nil || watches != 3 || took > time.Second {
			t.Errorf("%d watches in %s, error %v; want the third to tell within a second", watches, took, err)
		}
	})
}
