package pull_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/quota"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// A package that would exceed the quota is not fetched, until there is room again.
func TestFillsStayWithinTheQuota(t *testing.T) {
	folders, _ := acme(t)
	s := newSite(t, folders)
	size := func(name string) int64 { return int64(len(folders.Read("providers/acme/demo/" + name))) }
	for _, announced := range []bool{true, false} {
		if !announced {
			for _, p := range []string{"linux/amd64", "darwin/arm64"} {
				s.Fault("/v1/providers/acme/demo/1.0.0/download/"+p, s.Edited(`"package_size"`, `"size"`))
			}
		}
		s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
			into := indextest.New(t)
			into.Write("providers/other.example.com/acme/demo/README", strings.Repeat("x", 1<<20)) // does not count
			limit := quota.New(size(linuxZip)+size(darwinZip)+size(sums)+size(sums+".sig"), []svchost.Hostname{host})
			m := (&mirroring{Tree: into}).start(t, c, pull.Options{
				Sources: map[svchost.Hostname]pull.Source{host: {Client: c, Quota: limit}}, Open: into.Open,
			})
			defer m.Close()
			measure := func() {
				time.Sleep(2 * time.Minute) // until the sum is old, and refusals are forgotten
				files, err := into.Open()
				if err != nil {
					t.Fatal(err)
				}
				limit.Reserve(nil, files.Providers, files.Modules).End(false)
				synctest.Wait()
			}
			m.fill(t, linuxZip)
			measure() // the package, with its documents
			before := s.Count(files + darwinZip)
			m.mustRefuse(t, darwinZip, quota.ErrMaxHeld, "prune")
			if _, err := m.Fill(background(), demo, darwinZip); !errors.Is(err, tree.ErrDiskFull) || pull.Reason(err) != "max_held" {
				t.Errorf("got %v", err)
			}
			if announced && s.Count(files+darwinZip) != before {
				t.Errorf("it was requested %d times", s.Count(files+darwinZip)-before)
			}
			if n := m.log.count("level=WARN"); n != 1 {
				t.Errorf("%d warnings are logged", n)
			}
			if err := into.Fs.Remove(filepath.Join(directory, linuxZip)); err != nil {
				t.Fatal(err)
			}
			into.Fs.Remove(announcedFile) // not part of the quota above
			measure()
			m.fill(t, darwinZip)
		})
	}
}

// A package that does not fit on the disk is not fetched.
func TestFillsLeaveRoomOnTheDisk(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	free := int64(1 << 20) // others write to the disk, too
	folders := indextest.New(t)
	m := (&mirroring{Tree: folders}).start(t, c, pull.Options{
		Sources: sourceOf(c, pull.Policy{}), Open: folders.Open,
		FreeSpace: func(address.Address) (int64, error) { return free, nil },
	})
	m.mustRefuse(t, linuxZip, tree.ErrDiskFull, "make room")
	free = 1 << 30
	m.fill(t, darwinZip)
}

// Further keys of a namespace, and its first release without a signature, are each
// reported once.
func TestChangesOfKeysAreReported(t *testing.T) {
	folders, publisher := acme(t)
	folders.Provider("acme/demo", "1.1.0", "linux_amd64").Signed(publisher)
	folders.Provider("acme/demo", "1.2.0", "linux_amd64").Checksums()
	s := newSite(t, folders)
	m := onDisk(t, s.Client(t, upstream.Origin{}), pull.Policy{Signatures: pull.PreferSignatures})
	m.fill(t, linuxZip)
	if got := m.log.observed(pull.KeyAdded); len(got) != 0 || m.log.count("level=WARN") != 0 {
		t.Errorf("the first keys are reported: %v", got)
	}
	// From now on the origin's tree has another key as well.
	other := indextest.NewPublisher(t)
	folders.Keys("acme", publisher, other)
	more := newSite(t, folders)
	s.Become(more)
	m.fill(t, strings.ReplaceAll(linuxZip, "1.0.0", "1.1.0"))
	m.log.mutex.Lock()
	i := slices.IndexFunc(m.log.events, func(e pull.Event) bool { return e.Kind == pull.KeyAdded })
	if i < 0 || m.log.events[i].Namespace != "acme" || !slices.Equal(m.log.events[i].Keys, []string{other.ID()}) {
		t.Errorf("observed %+v", m.log.events)
	}
	m.log.mutex.Unlock()
	if n := m.log.count("a further key"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}

	// And then releases without a signature.
	const next = "/v1/providers/acme/demo/1.2.0/download/linux/amd64"
	s.Fault(next, s.Edited(`"gpg_public_keys"`, `"no_keys"`))
	s.Fault(strings.ReplaceAll(sigFile, "1.0.0", "1.2.0"), status(404))
	for range 2 {
		m.fill(t, strings.ReplaceAll(linuxZip, "1.0.0", "1.2.0"))
	}
	if got := m.log.observed(pull.SignatureLost); len(got) != 1 || m.log.count("were signed") != 1 {
		t.Errorf("observed %v", got)
	}
}

// A fill that fails leaves no folder: the next list of versions would be kept there.
func TestFillsThatFailLeaveNoFolders(t *testing.T) {
	for _, there := range []string{"providers", "providers/" + host} {
		s := newAcme(t)
		m := onDisk(t, s.Client(t, upstream.Origin{}), pull.Policy{})
		if err := m.Fs.MkdirAll(there, 0o755); err != nil {
			t.Fatal(err)
		}
		s.Fault(zipFile, body("not the package"))
		m.mustRefuse(t, linuxZip, upstream.ErrBadChecksum, "")
		entries, err := afero.ReadDir(m.Fs, there)
		if err != nil || len(entries) > 0 {
			t.Errorf("%s has %d entries, %v", there, len(entries), err)
		}
	}
}

// An announced size beyond the limit of packages is refused before room is reserved.
func TestAnnouncedSizesThatAreTooLarge(t *testing.T) {
	for _, size := range []int64{upstream.MaxPackage + 1, math.MaxInt64} {
		s := newAcme(t)
		s.Fault(metadata, s.Edited(`"package_size":`, fmt.Sprintf(`"package_size":%d,"size":`, size)))
		folders, c := indextest.New(t), s.Client(t, upstream.Origin{})
		folders.Write("providers/"+host+"/acme/other/README.md", "held")
		m := (&mirroring{Tree: folders}).start(t, c, pull.Options{
			Sources: map[svchost.Hostname]pull.Source{host: {Client: c, Quota: quota.New(1, []svchost.Hostname{host})}}, Open: folders.Open,
			FreeSpace: func(address.Address) (int64, error) { return 1 << 40, nil },
		})
		m.mustRefuse(t, linuxZip, upstream.ErrTooLarge, "the limit of a package")
		if n := s.Count(zipFile); n != 0 {
			t.Errorf("it was requested %d times", n)
		}
	}
}
