package content

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func TestConcurrentCallersShareOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d descriptions
		began, end := make(chan struct{}), make(chan struct{})
		reads := 0
		read := func(context.Context, *moduledoc.Package) (*moduledoc.Package, error) {
			reads++
			close(began)
			<-end
			return &moduledoc.Package{License: "MIT"}, nil
		}
		results := make(chan *moduledoc.Package)
		ask := func() {
			p, err := d.get(t.Context(), wire.SHA256{1}, nil, read)
			if err != nil {
				t.Error(err)
			}
			results <- p
		}
		go ask()
		<-began
		for range 5 {
			go ask()
		}
		synctest.Wait() // all are waiting
		close(end)
		first := <-results
		for range 5 {
			if <-results != first {
				t.Error("not all have the same")
			}
		}
		if p, err := d.get(t.Context(), wire.SHA256{1}, nil, nil); p != first || err != nil || reads != 1 {
			t.Errorf("afterwards it is %v, %v, and was read %d times", p, err, reads)
		}
	})
}

func TestAReadingEndsWhenTheLastCallerHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d descriptions
		ended := make(chan error, 1)
		read := func(ctx context.Context, _ *moduledoc.Package) (*moduledoc.Package, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		}
		left := make(chan error)
		leave := make([]context.CancelFunc, 2)
		for i := range leave {
			ctx, cancel := context.WithCancel(t.Context())
			leave[i] = cancel
			go func() {
				_, err := d.get(ctx, wire.SHA256{1}, nil, read)
				left <- err
			}()
		}
		synctest.Wait() // both are waiting
		leave[0]()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that leaves gets %v", err)
		}
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it ended while someone waited")
		default:
		}
		leave[1]()
		<-left
		<-ended

		p, err := d.get(t.Context(), wire.SHA256{1}, nil, func(context.Context, *moduledoc.Package) (*moduledoc.Package, error) {
			return new(moduledoc.Package), nil
		})
		if p == nil || err != nil {
			t.Errorf("the next caller gets %v, %v", p, err)
		}
	})
}

func TestFailuresAreNotKept(t *testing.T) {
	var d descriptions
	failing := func(context.Context, *moduledoc.Package) (*moduledoc.Package, error) { return nil, tree.ErrChanged }
	if _, err := d.get(t.Context(), wire.SHA256{1}, nil, failing); !errors.Is(err, tree.ErrChanged) {
		t.Errorf("the error is %v", err)
	}
	panicking := func(context.Context, *moduledoc.Package) (*moduledoc.Package, error) { panic("a parser failed") }
	if _, err := d.get(t.Context(), wire.SHA256{1}, nil, panicking); err == nil {
		t.Error("a panic is no error")
	}
	if p, err := d.get(t.Context(), wire.SHA256{1}, nil, func(context.Context, *moduledoc.Package) (*moduledoc.Package, error) {
		return new(moduledoc.Package), nil
	}); p == nil || err != nil {
		t.Errorf("then it is %v, %v", p, err)
	}
}

func TestDescriptionsAreKeptUpToABound(t *testing.T) {
	var d descriptions
	for i := range 100 {
		sum := wire.SHA256{byte(i)}
		p := &moduledoc.Package{Root: moduledoc.Module{Readme: moduledoc.Readme{Content: strings.Repeat("x", maxKept/10)}}}
		if _, err := d.get(t.Context(), sum, nil, func(context.Context, *moduledoc.Package) (*moduledoc.Package, error) { return p, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if _, ok := d.known.Get(wire.SHA256{byte(i)}); ok != (i > 90) {
			t.Errorf("description %d is kept: %t", i, ok)
		}
	}
}

// At most a few packages are read at once, and who waits for a turn can leave.
func TestFewPackagesAreReadAtOnce(t *testing.T) {
	var d descriptions
	var releases []func()
	for range maxReads {
		release, err := d.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	releases[0]()
	release, err := d.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release()
}
