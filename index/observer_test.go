package index_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A logged index writes its log to memory, without times.
type logged struct {
	*index.Index
	log      syncBuffer
	withheld []string // paths that the observer was called with
}

func newLogged(t *testing.T, o index.Options) *logged {
	l := &logged{Index: index.New(o)}
	t.Cleanup(func() { l.Close() })
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	l.Observe(&index.Observer{Withheld: func(p index.Problem) { l.withheld = append(l.withheld, p.Path) }, Logger: slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{ReplaceAttr: withoutTime}))})
	return l
}

// scan returns the log of one scan except for the line with its numbers, and for the progress of
// reading: the reader of the scan before may write it late, by a clock that is a minute ahead.
func (l *logged) scan(t *testing.T) []string {
	t.Helper()
	l.log.Reset()
	rescan(t, l.Index)
	lines := strings.Split(strings.TrimSpace(l.log.String()), "\n")
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, "msg=scanned") || strings.Contains(line, `msg="reading archives"`)
	})
}

// The log says what clients can install now and what they no longer can, but not
// after the first scan, where that is everything.
func TestOffersAreLogged(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/hello", "1.2.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "x")
	x := newLogged(t, options(t, files.Open))
	for _, test := range []struct {
		rule   string
		change func()
		lines  []string
	}{
		{"the start", func() {}, nil},
		{"nothing new", func() {}, nil},
		{"a version", func() { files.Provider("acme/hello", "1.3.0", "linux_amd64") },
			[]string{`level=INFO msg="now offered acme/hello 1.3.0 linux_amd64" kind=provider address=acme/hello version=1.3.0 platforms=linux_amd64`}},
		{"another platform", func() { files.Provider("acme/hello", "1.3.0", "darwin_arm64", "linux_amd64", "linux_arm64") },
			[]string{`level=INFO msg="now offered acme/hello 1.3.0 darwin_arm64 linux_arm64" kind=provider address=acme/hello version=1.3.0 platforms="darwin_arm64 linux_arm64"`}},
		{"a platform less", func() { files.Remove("providers/acme/hello/terraform-provider-hello_1.3.0_linux_arm64.zip") },
			[]string{`level=INFO msg="no longer offered acme/hello 1.3.0 linux_arm64" kind=provider address=acme/hello version=1.3.0 platforms=linux_arm64`}},
		{"a module, and another provider", func() {
			files.Write("modules/acme/vpc/aws/1.1.0/main.tf", "x")
			files.Provider("registry.example.com/acme/abc", "1.0.0", "linux_amd64")
		}, []string{
			`level=INFO msg="now offered registry.example.com/acme/abc 1.0.0 linux_amd64" kind=provider address=registry.example.com/acme/abc version=1.0.0 platforms=linux_amd64`,
			`level=INFO msg="now offered acme/vpc/aws 1.1.0" kind=module address=acme/vpc/aws version=1.1.0`,
		}},
		{"a provider less", func() { files.Remove("providers/acme/hello") }, []string{
			`level=INFO msg="no longer offered acme/hello 1.3.0 darwin_arm64 linux_amd64" kind=provider address=acme/hello version=1.3.0 platforms="darwin_arm64 linux_amd64"`,
			`level=INFO msg="no longer offered acme/hello 1.2.0 linux_amd64" kind=provider address=acme/hello version=1.2.0 platforms=linux_amd64`,
		}},
	} {
		test.change()
		if lines := x.scan(t); !slices.Equal(lines, test.lines) {
			t.Errorf("%s: it logs\n%s\nwant\n%s", test.rule, strings.Join(lines, "\n"), strings.Join(test.lines, "\n"))
		}
	}
}

// If much changes at once, the log lists the first changes and counts the rest.
func TestTheLogIsBounded(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/0.1.0/main.tf", "x")
	x := newLogged(t, options(t, files.Open))
	x.scan(t)
	for i := range 400 {
		files.Write(fmt.Sprintf("modules/acme/vpc/aws/1.%d.0/main.tf", i), "x")
		files.Write(fmt.Sprintf("modules/acme/vpc/aws/2.%d.0.tar", i), "x")
		files.Write(fmt.Sprintf("modules/acme/vpc/aws/notes%d", i), "x")
	}
	lines := x.scan(t)
	count := func(part string) (n int) {
		for _, line := range lines {
			if strings.Contains(line, part) {
				n++
			}
		}
		return n
	}
	if len(lines) != 3*21 || count(`msg="now offered acme/vpc/aws`) != 20 || count("level=WARN msg=withheld") != 20 || count("level=INFO msg=ignored") != 20 {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for _, more := range []string{`level=INFO msg="now offered: and 380 more" more=380`, `level=WARN msg="withheld: and 380 more" more=380`, `level=INFO msg="ignored: and 380 more" more=380`} {
		if count(more) != 1 {
			t.Errorf("%s is not logged", more)
		}
	}
	files.Remove("modules")
	if lines = x.scan(t); count("msg=\"no longer offered acme/vpc/aws") != 20 || count("no longer offered: and 381 more") != 1 {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// A file that is copied under its final name becomes a problem only when it stops
// growing.
func TestASlowCopyIsNotAProblem(t *testing.T) {
	const name = "providers/acme/demo/" + zipName
	files := indextest.New(t)
	var c stoppedClock
	c.set(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	o := options(t, files.Open)
	o.Now = c.now
	x := newLogged(t, o)
	zip := indextest.ProviderZip("demo", "1.0.0", "linux_amd64")
	grow := func(length int) {
		files.Write(name, zip[:length])
		if err := files.Fs.Chtimes(name, c.now(), c.now()); err != nil {
			t.Fatal(err)
		}
	}
	const writing = "level=INFO msg=\"still being written\" path=" + name
	warning := func(lines []string) bool {
		return len(lines) == 1 && strings.HasPrefix(lines[0], "level=WARN msg=withheld path="+name+" version=1.0.0 reason=bad_archive ")
	}

	grow(0)
	if lines := x.scan(t); !slices.Equal(lines, []string{writing}) {
		t.Errorf("when it has begun, it logs %q", lines)
	}
	for length := 10; length < 100; length += 30 {
		c.advance(time.Second)
		grow(length)
		if lines := x.scan(t); len(lines) != 0 {
			t.Errorf("when it grows, it logs %q", lines)
		}
	}
	if len(x.withheld) != 0 {
		t.Errorf("while it grows, the observer is told of %q", x.withheld)
	}
	c.advance(time.Minute)
	if lines := x.scan(t); !warning(lines) {
		t.Errorf("when it is at rest, it logs %q", lines)
	}
	if lines := x.scan(t); len(lines) != 0 {
		t.Errorf("then it logs %q", lines)
	}
	if !slices.Equal(x.withheld, []string{name}) {
		t.Errorf("the observer is told of %q", x.withheld)
	}
	grow(120) // it goes on
	if lines := x.scan(t); !slices.Equal(lines, nil) && !slices.Equal(lines, []string{writing}) {
		t.Errorf("when it goes on, it logs %q", lines)
	}
	grow(len(zip))
	if lines := x.scan(t); len(lines) != 1 || !strings.Contains(lines[0], "now offered acme/demo 1.0.0 linux_amd64") {
		t.Errorf("when it is whole, it logs %q", lines)
	}
}

// A fault that may pass withholds no known version. It is logged once.
func TestAFaultThatMayPassIsNotAProblem(t *testing.T) {
	files := indextest.New(t)
	files.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64")
	var faults treetest.Faults
	x := newLogged(t, options(t, faults.Open(files.Open)))
	x.scan(t)
	for _, folder := range []string{"providers/acme/demo", "keys"} {
		faults.When(func(_ int, o treetest.Operation) error {
			if o.Path == folder {
				return syscall.EIO
			}
			return nil
		})
		if lines := x.scan(t); len(lines) != 1 || !strings.HasPrefix(lines[0], `level=WARN msg="could not be read, it is tried again" path=`+folder+" ") {
			t.Errorf("%s: it logs %q", folder, lines)
		}
		if lines := x.scan(t); len(lines) != 0 {
			t.Errorf("%s: then it logs %q", folder, lines)
		}
		faults.End()
		if lines := x.scan(t); len(lines) != 0 {
			t.Errorf("%s: once it can be read, it logs %q", folder, lines)
		}
	}
	if len(x.withheld) != 0 {
		t.Errorf("the observer is told of %q", x.withheld)
	}
}

// A damaged file that was just copied is reported soon, without another event.
func TestADamagedCopyIsReportedSoon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := indextest.OnDisk(t, dir)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	r := run(t, options(t, source.Directories{Root: dir}.Open))
	r.until(t, offers("acme/demo", "1.0.0"))
	const name = "providers/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip"
	files.Write(name, "no zip")
	just := time.Now()
	if err := files.Fs.Chtimes(name, just, just); err != nil {
		t.Fatal(err)
	}
	r.Hint()
	r.until(t, func(*index.Snapshot) bool { return strings.Contains(r.log.String(), "still being written") })
	r.until(t, func(*index.Snapshot) bool {
		return strings.Contains(r.log.String(), "level=WARN msg=withheld path="+name)
	})
}
