package quota

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A measuredDisk is slow to list folders, or fails for some of them.
type measuredDisk struct {
	afero.Fs
	takes  time.Duration
	fails  string // for names with this suffix; empty: none
	errno  syscall.Errno
	listed int
}

func (d *measuredDisk) Open(name string) (afero.File, error) {
	time.Sleep(d.takes)
	d.listed++
	if d.fails != "" && strings.HasSuffix(name, d.fails) {
		return nil, d.errno
	}
	return d.Fs.Open(name)
}

func newMeasured(t *testing.T) (*measuredDisk, tree.Part, *Quota) {
	t.Helper()
	d := &measuredDisk{Fs: afero.NewMemMapFs(), errno: syscall.EIO}
	if err := afero.WriteFile(d.Fs, "providers/registry.example.com/acme/demo/a.zip", make([]byte, 10), 0o644); err != nil {
		t.Fatal(err)
	}
	return d, treetest.On(d, "providers"), New(10, []svchost.Hostname{"registry.example.com"})
}

// Mirrored files are not added up again at once, even if this takes longer than the sum
// is valid.
func TestASlowDiskIsMeasuredOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, in, q := newMeasured(t)
		d.takes = measuredFor
		q.measure(in)
		once := d.listed
		q.measure(in)
		synctest.Wait()
		if d.listed != once {
			t.Error("it is measured again at once")
		}
		time.Sleep(measuredFor)
		q.measure(in)
		time.Sleep(time.Duration(once) * d.takes)
		synctest.Wait()
		if d.listed != 2*once {
			t.Error("it is not measured again")
		}
	})
}

// While the files are added up again, fills use the previous sum, and are counted.
func TestFillsDoNotWaitForASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, in, q := newMeasured(t)
		q.max = 30
		q.measure(in)
		time.Sleep(measuredFor)
		d.takes = time.Hour
		began := time.Now()
		q.measure(in)
		synctest.Wait()
		for range 2 {
			q.measure(in)
			if err := q.reserve(10); err != nil {
				t.Fatal(err)
			}
			q.end(10, 10)
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("they wait %v", waited)
		}
		time.Sleep(24 * time.Hour)
		if err := q.reserve(1); !errors.Is(err, ErrMaxHeld) {
			t.Errorf("packages filled meanwhile do not count: %v", err)
		}
	})
}

// Files that cannot be read still count.
func TestFilesThatCannotBeReadStillCount(t *testing.T) {
	for _, fails := range []string{"providers", "registry.example.com", "demo"} {
		t.Run(fails, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, in, q := newMeasured(t)
				q.measure(in)
				time.Sleep(measuredFor)
				d.fails = fails
				q.measure(in)
				synctest.Wait()
				if err := q.reserve(1); !errors.Is(err, ErrMaxHeld) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A size that is not known yet does not count as zero.
func TestTheFirstMeasurementFails(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.EACCES} {
		for _, fails := range []string{"providers", "registry.example.com", "demo"} {
			t.Run(fails+" "+errno.Error(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testTheFirstMeasurementFails(t, fails, errno) })
			})
		}
	}
}

func testTheFirstMeasurementFails(t *testing.T, fails string, errno syscall.Errno) {
	d, in, q := newMeasured(t)
	q.max, d.fails, d.errno = 20, fails, errno
	reserve := func(n int64) error {
		r := q.Reserve(nil, in)
		defer r.End(false)
		return r.Expect(n)
	}
	if err := reserve(1); !errors.Is(err, tree.ErrNotWritable) {
		t.Errorf("while the disk fails: %v", err)
	}
	listed := d.listed
	if err := reserve(1); !errors.Is(err, tree.ErrNotWritable) || d.listed != listed {
		t.Errorf("at once after that: %v, and the files are added up again: %t", err, d.listed != listed)
	}
	d.fails = ""
	time.Sleep(unknownFor)
	if err := reserve(11); !errors.Is(err, ErrMaxHeld) {
		t.Errorf("more than the rest: %v", err)
	}
	if err := reserve(10); err != nil {
		t.Errorf("the rest: %v", err)
	}
}

// Others write to the disk, too.
func TestSomeSpaceStaysFree(t *testing.T) {
	free := int64(spare)
	r := (*Quota)(nil).Reserve(func() (int64, error) { return free, nil })
	if err := r.CheckDisk(); err != nil {
		t.Error(err)
	}
	if err := r.Expect(1); !errors.Is(err, tree.ErrDiskFull) || errors.Is(err, ErrMaxHeld) {
		t.Errorf("got %v", err)
	}
	free++
	if err := r.Expect(1); err != nil {
		t.Error(err)
	}
}
