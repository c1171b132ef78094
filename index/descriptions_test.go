package index

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// describeArchive reads an archive as Describe does, whatever it has.
func describeArchive(t testing.TB, content []byte, isZip bool) {
	var c moduledoc.Collector
	if isZip {
		_ = eachFileOfZip(t.Context(), bytes.NewReader(content), int64(len(content)), c.Wants, c.Add)
	} else {
		_, _ = eachFileOfTar(t.Context(), bytes.NewReader(content), 1<<20, c.Wants, c.Add)
	}
	c.Package("").Summary()
}

// What an archive unpacks to is read up to a bound, and what is before it is kept.
func TestATarIsReadUpToABound(t *testing.T) {
	content := gzipOf(tarOfFiles("main.tf", `variable "a" {}`, "zeros", strings.Repeat("\x00", 1<<20), "z.tf", `variable "b" {}`))
	for _, test := range []struct {
		limit     int64
		complete  bool
		variables int
	}{{100, false, 0}, {64 << 10, false, 1}, {4 << 20, true, 2}} {
		var c moduledoc.Collector
		complete, err := eachFileOfTar(t.Context(), bytes.NewReader(content), test.limit, c.Wants, c.Add)
		if p := c.Package(""); complete != test.complete || err != nil || len(p.Root.Variables) != test.variables {
			t.Errorf("up to %d bytes it is complete: %t, %v, with %+v", test.limit, complete, err, p.Root.Variables)
		}
	}
}

func TestReadingAPackageEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all := func(string) bool { return true }
	read := func(_ string, r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }
	content := zipOf("main.tf", "x")
	if err := eachFileOfZip(ctx, bytes.NewReader(content), int64(len(content)), all, read); !errors.Is(err, context.Canceled) {
		t.Errorf("of a zip the error is %v", err)
	}
	if _, err := eachFileOfTar(ctx, bytes.NewReader(gzipOf(nil)), 100, all, read); !errors.Is(err, context.Canceled) {
		t.Errorf("of a tar the error is %v", err)
	}
}

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

func TestModuleContent(t *testing.T) {
	for _, facts := range []string{"", "facts"} {
		s := moduledoc.Summary{Description: "A network"}
		gotFacts, encoded := splitModuleContent(encodeModuleContent([]byte(facts), s))
		if got, err := moduledoc.DecodeSummary(encoded); string(gotFacts) != facts || err != nil || got.Description != s.Description {
			t.Errorf("%q became %q, %+v, %v", facts, gotFacts, got, err)
		}
	}
	for _, damaged := range []string{"", "\x05abc", "\xff", strings.Repeat("\xff", 20)} {
		if facts, summary := splitModuleContent([]byte(damaged)); facts != nil || summary != nil {
			t.Errorf("%q became %q, %q", damaged, facts, summary)
		}
	}
}

// tarOfFiles packs files given as names and contents in turn.
func tarOfFiles(namesAndContents ...string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(namesAndContents); i += 2 {
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: namesAndContents[i], Size: int64(len(namesAndContents[i+1]))})
		io.WriteString(w, namesAndContents[i+1])
	}
	w.Close()
	return b.Bytes()
}
