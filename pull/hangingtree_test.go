package pull_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// A hanging file system answers a minute later, if it hangs.
type hanging struct {
	afero.Fs
	hangs *atomic.Bool
}

func (h hanging) wait() {
	if h.hangs.Load() {
		time.Sleep(time.Minute)
	}
}

func (h hanging) Open(name string) (afero.File, error) {
	h.wait()
	return h.Fs.Open(name)
}

func (h hanging) Stat(name string) (os.FileInfo, error) {
	h.wait()
	return h.Fs.Stat(name)
}

// The list of a module with a repository is answered from memory while the tree hangs. Only the first requests
// wait for the tree, a moment.
func TestListsWhileTheTreeHangs(t *testing.T) {
	for _, test := range []struct {
		rule   string
		listed bool // before the tree hangs
		want   string
	}{
		{"the list is in memory", true, "1.1.0 1.0.0"},
		{"only the snapshot has versions", false, "1.0.0"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				folders := indextest.New(t)
				fs := hanging{folders.Fs, new(atomic.Bool)}
				folders.Write(hostedFile, "git {\n  url = \"https://example.com/vpc.git\"\n}\n").Write(hostedFolder+"1.0.0/main.tf", "")
				file, _ := registryhcl.Parse([]byte(folders.Read(hostedFile)))
				folders.Write(hostedList, fmt.Sprintf(`{"format":1,"of":%q,"fetched":%q,"versions":[{"version":"1.1.0"},{"version":"1.0.0"}]}`,
					file.Git.URL+" "+file.Git.Tags.String(), time.Now().Format(time.RFC3339)))
				snapshot := scanned(t, folders)

				client, err := upstream.NewCodeHosts(upstream.CodeHosts{}, upstream.Network{})
				if err != nil {
					t.Fatal(err)
				}
				m := &mirroring{Tree: indextest.On(t, fs)}
				m.start(t, client, pull.Options{Sources: map[svchost.Hostname]pull.Source{"": {Client: client, Policy: pull.Policy{Modules: true, VersionsTTL: 24 * time.Hour}}}, Open: m.Open})
				defer m.Close()
				offers := pull.NewPullThrough(m.Filler, func(address.Address) {})
				list := func(atMost time.Duration) {
					t.Helper()
					began := time.Now()
					module, err := offers.Around(snapshot, func() (context.Context, time.Time) { return background(), time.Now().Add(time.Minute) }).
						Module(index.Place{Address: hosted, Hosted: true})
					if err != nil {
						t.Fatal(err)
					}
					got := ""
					for _, v := range module.Versions {
						got += v.Version + " "
					}
					if got != test.want+" " || time.Since(began) > atMost {
						t.Errorf("got %q after %v", got, time.Since(began))
					}
				}
				if test.listed {
					list(0)
				}
				fs.hangs.Store(true)
				time.Sleep(5 * time.Second)
				list(3 * time.Second)
				if test.listed {
					time.Sleep(5 * time.Second)
					list(0)
				}
				fs.hangs.Store(false)
				time.Sleep(time.Minute) // reads under way end
			})
		})
	}
}
