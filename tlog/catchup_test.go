package tlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
)

// A reader who knows of more entries than an instance is never told that there are none while the
// instance cannot look for them.
func TestAnInstanceThatCannotCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := tlogtest.New(t)
		reader := behind(t, storage, 2)
		storage.Bucket.Fail = func(string, string) error { return errors.New("503 SlowDown") }
		for range 2 { // it looks once a second at most
			if h, err := reader.AtLeast(t.Context(), 2); err == nil {
				t.Errorf("while the storage fails, there are %d entries", h.Size)
			}
		}
		storage.Bucket.Fail = nil
		time.Sleep(time.Second)
		for range 2 {
			if h, err := reader.AtLeast(t.Context(), 2); err != nil || h.Size != 2 {
				t.Errorf("there are %d entries, %v", h.Size, err)
			}
			if h, err := reader.AtLeast(t.Context(), 3); err != nil || h.Size != 2 {
				t.Errorf("of more than there are, it has %d, %v", h.Size, err)
			}
		}
	})
}

// behind returns a log to which another instance has added entries.
func behind(t *testing.T, storage *tlogtest.Storage, entries int) *tlog.Log {
	t.Helper()
	o := storage.Options()
	o.Anchor = attentive{o.Anchor}
	reader, err := new(tlog.Opening).Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	writer := storage.MustOpen(t)
	for n := range entries {
		l, err := tlog.ParseLeaf(fmt.Sprintf("offered 2026-01-01T00:00:00Z module acme/m/aws %d.0.0 h1:%s= zh:%064x %032x", n, strings.Repeat("A", 43), n, n))
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Append(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	return reader
}

// An attentive anchor gives up with its caller, as a database does.
type attentive struct{ tlog.Anchor }

func (a attentive) Load(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.Anchor.Load(ctx)
}

// A reader who leaves while an instance looks for further entries ends that for no other reader.
func TestAReaderWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := tlogtest.New(t)
		reader := behind(t, storage, 2)
		ctx, leave := context.WithCancel(t.Context())
		storage.Bucket.Fail = func(string, string) error {
			leave()
			return nil
		}
		if _, err := reader.AtLeast(ctx, 2); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("who has left gets %v", err)
		}
		synctest.Wait()
		if h, err := reader.AtLeast(t.Context(), 2); err != nil || h.Size != 2 {
			t.Errorf("another one gets %d entries, %v", h.Size, err)
		}
	})
}
