package module

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// A lockedBuffer can be written to and read from several goroutines.
type lockedBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}

// A root in which nothing is found is warned of once, with the folder that was
// meant; not where upstreams are to fill it.
func TestTheServerWarnsOfAnotherRoot(t *testing.T) {
	misplaced := t.TempDir()
	indextest.OnDisk(t, misplaced).ProviderIn("data/providers/acme/demo", "demo", "1.0.0", "linux_amd64")
	for _, test := range []struct {
		rule     string
		handler  Handler
		warnings int
	}{
		{"the folder above the tree", Handler{Root: misplaced}, 1},
		{"an empty root that is filled", Handler{Root: t.TempDir(), Upstreams: mirrored(0)}, 0},
		{"a tree", Handler{Root: sampleTree(t)}, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := newConfiguration(t)
			log := new(lockedBuffer)
			c.app().logger = slog.New(slog.NewTextHandler(log, nil))
			h := c.mustHandle(test.handler)
			c.mustStart()
			rescan(t, h)
			rescan(t, h)
			if n := strings.Count(log.String(), "level=WARN"); n != test.warnings || test.warnings > 0 && !strings.Contains(log.String(), "make its folder data the root") {
				t.Errorf("the log is\n%s", log)
			}
		})
	}
}

// A tree need not have all of its folders, nor any, to be served.
func TestServingATreeWithoutAllFolders(t *testing.T) {
	mirror := t.TempDir()
	for _, args := range [][]string{
		{"--root", t.TempDir()},
		{"--root", t.TempDir(), "--providers", mirror},
	} {
		cmd := new(cobra.Command)
		addTreeFlags(cmd)
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		fl := caddycmd.Flags{FlagSet: cmd.Flags()}
		located, err := treeFlags(fl)
		if err != nil {
			t.Fatal(err)
		}
		s, err := planSite("", "127.0.0.1:8080", false)
		if err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(s.config(namedDirectories(fl, located.Root), false, false)); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}
