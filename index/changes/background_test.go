package changes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Wait waits for the tasks so far, but only for a moment. After that, more can begin.
func TestBackgroundIsWaitedFor(t *testing.T) {
	for _, test := range []struct {
		rule        string
		takes, wait time.Duration
		ends        time.Duration // how long End waits then
	}{
		{"a fast storage", time.Second, time.Second, 0},
		{"a slow storage", 3 * time.Second, patience, time.Second},
		{"a storage that hangs", time.Hour, patience, patience},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBackground()
				b.Go(func(ctx context.Context) {
					select {
					case <-time.After(test.takes):
					case <-ctx.Done():
					}
				})
				synctest.Wait()
				began := time.Now()
				b.Wait()
				if took := time.Since(began); took != test.wait {
					t.Errorf("it waits for %s", took)
				}
				later := make(chan struct{})
				b.Go(func(context.Context) { close(later) })
				<-later
				began = time.Now()
				b.End()
				if took := time.Since(began); took != test.ends {
					t.Errorf("its end waits for %s", took)
				}
			})
		})
	}
}
