package module

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

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
