package oidc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// fetches counts fetches, and lets them fail.
type fetches struct {
	n    int
	fail error
}

func (f *fetches) fetch() (int, error) {
	f.n++
	return f.n, f.fail
}

func TestDocument(t *testing.T) {
	down := errors.New("down")
	type step struct {
		rule    string
		after   time.Duration
		fail    error // of further fetches
		renewed bool
		want    int
		err     error
		fetched int // in total, after the background has finished
	}
	tests := []struct {
		rule  string
		steps []step
	}{
		{"it is fetched once", []step{
			{"first", 0, nil, false, 1, nil, 1},
			{"again", 0, nil, false, 1, nil, 1},
			{"later", staleAge - 1, nil, false, 1, nil, 1},
		}},
		{"a stale one is fetched again in the background", []step{
			{"first", 0, nil, false, 1, nil, 1},
			{"stale", staleAge, nil, false, 1, nil, 2},
			{"then the new one", 0, nil, false, 2, nil, 2},
		}},
		{"a stale one stays if that fails", []step{
			{"first", 0, nil, false, 1, nil, 1},
			{"stale", staleAge, down, false, 1, nil, 2},
			{"at once", 0, down, false, 1, nil, 2},
			{"after a pause", failurePause, down, false, 1, nil, 3},
			{"up again", failurePause, nil, false, 1, nil, 4},
			{"the new one", 0, nil, false, 4, nil, 4},
		}},
		{"a failure is cached for a while", []step{
			{"first", 0, down, false, 0, down, 1},
			{"at once", 0, nil, false, 0, down, 1},
			{"a little later", failurePause - 1, nil, false, 0, down, 1},
			{"after a pause", 1, nil, false, 2, nil, 2},
		}},
		{"renewals have a pause between them", []step{
			{"first", 0, nil, false, 1, nil, 1},
			{"at once", 0, nil, true, 1, nil, 1},
			{"after a pause", renewalPause, nil, true, 2, nil, 2},
			{"at once again", 0, nil, true, 2, nil, 2},
			{"cached", 0, nil, false, 2, nil, 2},
		}},
		{"the cached value stays if renewing fails", []step{
			{"first", 0, nil, false, 1, nil, 1},
			{"failing", renewalPause, down, true, 1, down, 2},
			{"cached failure", renewalPause, nil, true, 1, down, 2},
			{"cached", 0, nil, false, 1, nil, 2},
			{"up again", failurePause - renewalPause, nil, true, 3, nil, 3},
		}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := new(fetches)
				k := &document[int]{fetch: f.fetch, now: time.Now}
				for _, s := range test.steps {
					time.Sleep(s.after) // the clock stands still otherwise
					f.fail = s.fail
					get := k.get
					if s.renewed {
						get = k.renewed
					}
					got, err := get(t.Context())
					synctest.Wait()
					if got != s.want || !errors.Is(err, s.err) || f.n != s.fetched {
						t.Fatalf("%s: got %d, %v after %d fetches, want %d, %v after %d", s.rule, got, err, f.n, s.want, s.err, s.fetched)
					}
				}
			})
		})
	}
}

func TestDocumentIsNotAwaitedForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &document[int]{now: time.Now, fetch: func() (int, error) {
			time.Sleep(issuerTimeout)
			return 1, nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.get(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
		if got, err := k.get(t.Context()); got != 1 || err != nil {
			t.Errorf("the attempt gave %d, %v", got, err)
		}
		time.Sleep(renewalPause)
		if got, err := k.renewed(ctx); got != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("renewing until the deadline gave %d, %v", got, err)
		}
		time.Sleep(issuerTimeout)
	})
}
