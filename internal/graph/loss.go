package graph

import (
	"errors"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// settling is how long refusals are not believed after the server did not answer:
// one that has just started refuses what it allows as soon as its caches are full.
const settling = 10 * time.Second

// Loss tells that the server does not answer, so that what a Follower holds may
// be out of date.
type Loss struct {
	Since time.Time
	// Err is why the last try failed.
	Err error
}

// Lost returns since when the server has not answered; nil while it does. Changed
// fires when that begins and ends.
func (f *Follower) Lost() *Loss {
	f.mu.Lock()
	defer f.mu.Unlock()
	var first *Loss
	for _, s := range f.streams {
		if s.lost != nil && (first == nil || s.lost.Since.Before(first.Since)) {
			first = s.lost
		}
	}
	return first
}

// lose notes that a try failed.
func (s *stream) lose(err error) {
	loss := &Loss{Since: time.Now(), Err: reachError(err)}
	if !unavailable(err) && !apierrors.IsUnauthorized(err) {
		s.unreached = loss.Since
	}
	s.follower.update(func() {
		if s.lost != nil {
			loss.Since = s.lost.Since
		}
		s.lost = loss
	})
}

// answered notes that the server answers.
func (s *stream) answered() {
	s.follower.mu.Lock()
	was := s.lost
	s.follower.mu.Unlock()
	if was != nil {
		s.follower.update(func() { s.lost = nil })
	}
}

// believes tells whether a refusal is to be taken for good.
func (s *stream) believes(err error) bool {
	return (unavailable(err) || apierrors.IsUnauthorized(err)) && time.Since(s.unreached) > settling
}

// reachError is the part of an error that is not the request, which says nothing
// to a user: a watch is a long URL.
func reachError(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}
