package publish

import (
	"crypto/sha256"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A target is a registry that the tests publish to.
type target struct{ *commandtest.Target }

func newTarget(t *testing.T) target { return target{commandtest.NewTarget(t)} }

// network trusts the registry.
func (r target) network() remote.Network { return trusting(r.Server) }

func trusting(server *httptest.Server) remote.Network {
	return remote.Network{Roots: commandtest.Roots(server), Pause: time.Millisecond}
}

// publish runs the command with the good token.
func (r target) publish(args ...string) (out, errs string, err error) {
	return r.publishAs(commandtest.GoodToken, args...)
}

func (r target) publishAs(token string, args ...string) (out, errs string, err error) {
	return r.RunAs(token, Command(r.network()), args...)
}

// A dist is the files of a release of acme/demo by name, as GoReleaser leaves them.
type dist map[string]string

// demoName is the name of a file of version 1.2.0.
func demoName(suffix string) string { return "terraform-provider-demo_1.2.0_" + suffix }

// newDist makes version 1.2.0 for two platforms. Two builds of different marks differ.
func newDist(mark string) dist {
	d := make(dist)
	for _, platform := range []string{"linux_amd64", "darwin_arm64"} {
		d[demoName(platform+".zip")] = indextest.Zip("terraform-provider-demo_v1.2.0", "#!"+mark+platform)
	}
	d[demoName("manifest.json")] = `{"version":1,"metadata":{"protocol_versions":["6.0"]}}`
	return d.sum()
}

// sum makes SHA256SUMS over all files.
func (d dist) sum() dist {
	delete(d, demoName("SHA256SUMS"))
	sums := make(wire.Checksums)
	for name, content := range d {
		if !strings.HasSuffix(name, ".sig") {
			sums[name] = sha256.Sum256([]byte(content))
		}
	}
	d[demoName("SHA256SUMS")] = string(sums.Encode())
	return d
}

func (d dist) signed(by *indextest.Publisher) dist {
	d[demoName("SHA256SUMS.sig")] = by.Sign(d[demoName("SHA256SUMS")])
	return d
}

// folder writes the files into a new folder.
func (d dist) folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dist")
	for name, content := range d {
		commandtest.Write(t, dir, name, content)
	}
	return dir
}

// names returns the names of the files, in order.
func (d dist) names() (names []string) {
	for name := range d {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// lists fails unless a table has a file, with what has become of it.
func lists(t *testing.T, table, name, result string) {
	t.Helper()
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); slices.Contains(fields, name) && strings.HasSuffix(strings.TrimSpace(line), "  "+result) {
			return
		}
	}
	t.Errorf("it does not list %s as %s:\n%s", name, result, table)
}
