package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const nginxTitle = "nginx, static files"

// fleetPackage is the size of the package that each client of a fleet downloads.
const fleetPackage = 10e6

// A fleetTree has one signed package, which the registry hosts.
type fleetTree struct {
	provider
	root string
}

func (l *lab) fleetTree() (fleetTree, error) {
	p := bigProvider("big", fleetPackage, 1).hosted()
	p.namespace, p.documents = "team00", signed // the privateRules have this namespace
	root, err := l.folder("fleet", func(dir string) error { return p.write(dir, l.key) })
	return fleetTree{p, root}, err
}

// inits returns an init by the mirror's protocol, and one by the provider registry's.
// In the latter, clients also fetch the checksums and their signature. Requests for
// discovery and by signed links have no credentials.
func (f fleetTree) inits(authorization string) [][]step {
	version := f.versions[0]
	discovery := step{path: "/.well-known/terraform.json"}
	document := func(path string) step { return step{path: path, authorization: authorization} }
	return [][]step{
		{
			discovery,
			document(f.mirrorPath("index.json")),
			document(f.mirrorPath(version + ".json")),
			{link: func(l links) string { return l.Archives[f.platforms[0]].URL }},
		},
		{
			discovery,
			document(f.originPath("versions")),
			document(f.originPath(version + "/download/linux/amd64")),
			{link: func(l links) string { return l.Checksums }},
			{link: func(l links) string { return l.Signature }},
			{link: func(l links) string { return l.Package }},
		},
	}
}

// fleet runs init in many clients at once, over TLS. The registry is compared with
// nginx and with Caddy's `file_server`, which serve the same bytes as files. It also
// measures a registry with rules, tokens and signed links, and two instances behind
// Caddy's `reverse_proxy`. The goal compares HTTP/1.1 with nginx's HTTP/2: each server
// runs as by default. With X25519, both exchange keys in the same way.
func fleet(ctx context.Context, l *lab, s subject) ([]row, error) {
	f, err := l.fleetTree()
	if err != nil {
		return nil, err
	}
	registry, err := l.fleetRegistry(ctx, s, f)
	if err != nil {
		return nil, err
	}
	files, nginx, err := l.fleetFiles(ctx, s, registry)
	if err != nil {
		return nil, err
	}
	private, err := l.fleetPrivate(ctx, s, f)
	if err != nil {
		return nil, err
	}
	balanced, err := l.fleetBalanced(ctx, s, f)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, compared := range []struct {
		what         string
		ours, theirs *server
		http2        [2]bool // of ours and of theirs
		goal, memory goal
	}{
		{"", registry, nginx, [2]bool{false, true}, goal{atMost: 0.8}, goal{atMost: 1.5}},
		{", X25519", registry.withX25519(), nginx.withX25519(), [2]bool{false, true}, goal{atMost: 0.8}, goal{atMost: 1.5}},
		{"", registry, nginx, [2]bool{false, false}, goal{}, goal{}},
		{"", registry, nginx, [2]bool{true, true}, goal{}, goal{}},
		{"", registry, files, [2]bool{false, false}, goal{}, goal{}},
		{"", registry, files, [2]bool{true, true}, goal{}, goal{}},
		{", rules, tokens and links", private, nginx, [2]bool{false, true}, goal{}, goal{}},
		{", two instances behind `reverse_proxy`", balanced, nginx, [2]bool{false, true}, goal{}, goal{}},
	} {
		ours, theirs := l.waves(compared.ours, compared.http2[0]), l.waves(compared.theirs, compared.http2[1])
		what := fmt.Sprintf("fleet of %d clients%s, %s", l.clients, compared.what, protocol(compared.http2[0]))
		against := compared.theirs.title() + ", " + protocol(compared.http2[1])
		compare := func(what, unit string, g goal, take func(*recorded[waveUsage]) measurement) {
			rows = append(rows, row{what: what, unit: unit, goal: g, slowness: 4, cost: take(ours), against: against, reference: take(theirs)})
		}
		compare(what+": CPU time", "s", compared.goal, func(r *recorded[waveUsage]) measurement {
			return r.measuring(func(u waveUsage) float64 { return u.cpu.Seconds() })
		})
		compare(what+": half of them done", "s", goal{}, func(r *recorded[waveUsage]) measurement {
			return r.recorded(func(u waveUsage) float64 { return u.within(0.5) })
		})
		compare(what+": 99 % done", "s", goal{}, func(r *recorded[waveUsage]) measurement {
			return r.recorded(func(u waveUsage) float64 { return u.within(0.99) })
		})
		compare(what+": peak memory that holds no file", "B", compared.memory, func(r *recorded[waveUsage]) measurement {
			return r.recorded(func(u waveUsage) float64 { return float64(u.own) })
		})
		compare(what+": peak memory", "B", goal{}, func(r *recorded[waveUsage]) measurement {
			return r.recorded(func(u waveUsage) float64 { return float64(u.memory) })
		})
	}
	return rows, nil
}

// withX25519 returns the server for clients that do not offer a key exchange which is safe from
// quantum computers. Caddy has it, and nginx with an OpenSSL before 3.5 does not. It returns nil if
// there is no server.
func (s *server) withX25519() *server {
	if s == nil {
		return nil
	}
	other := *s
	other.tls = s.tls.Clone()
	other.tls.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256} // the latter for the key of the certificate
	return &other
}

func protocol(http2 bool) string {
	if http2 {
		return "HTTP/2"
	}
	return "HTTP/1.1"
}

var profileName = strings.NewReplacer(" ", "-", "/", "")

// waves records the waves of a server. It returns nil if there is no server.
func (l *lab) waves(s *server, http2 bool) *recorded[waveUsage] {
	if s == nil {
		return nil
	}
	return &recorded[waveUsage]{take: func(ctx context.Context) (u waveUsage, err error) {
		once := func() error {
			u, err = wave(ctx, *s, l.clients, http2)
			return err
		}
		if s.caddy == nil {
			return u, once()
		}
		err = l.profiled(ctx, s.caddy, profileName.Replace(s.name+" "+protocol(http2)), once)
		return u, err
	}}
}

// fleetRegistry starts a registry that is open to everyone.
func (l *lab) fleetRegistry(ctx context.Context, s subject, f fleetTree) (*server, error) {
	h := l.registry(f.root)
	c, err := l.fleetCaddy(ctx, s, "fleet", site{name: "site", handler: h}, site{name: "tls", tls: true, handler: h})
	if err != nil {
		return nil, err
	}
	if _, err := c.indexed(ctx, "site", f.provider); err != nil {
		return nil, err
	}
	return l.fleetServer(ctx, s.name+" fleet", f, "", c)
}

// fleetPrivate starts a registry with rules.
func (l *lab) fleetPrivate(ctx context.Context, s subject, f fleetTree) (*server, error) {
	open := l.registry(f.root)
	restricted, authorization, err := l.restricted(s, open)
	if err != nil {
		return nil, err
	}
	c, err := l.fleetCaddy(ctx, s, "fleet-private", site{name: "site", handler: open}, site{name: "tls", tls: true, handler: restricted})
	if err != nil {
		return nil, err
	}
	if _, err := c.indexed(ctx, "site", f.provider); err != nil {
		return nil, err
	}
	return l.fleetServer(ctx, s.name+" fleet private", f, authorization, c)
}

// fleetBalanced starts two registries and a proxy in front of them.
func (l *lab) fleetBalanced(ctx context.Context, s subject, f fleetTree) (*server, error) {
	var instances []*caddy
	var addresses []string
	for _, name := range []string{"fleet-first", "fleet-second"} {
		c, err := l.fleetCaddy(ctx, s, name, site{name: "site", proxied: true, handler: l.registry(f.root)})
		if err != nil {
			return nil, err
		}
		if _, err := c.indexed(ctx, "site", f.provider); err != nil {
			return nil, err
		}
		instances, addresses = append(instances, c), append(addresses, c.addresses["site"])
	}
	balancer, err := l.fleetCaddy(ctx, s, "fleet-balancer", site{name: "tls", tls: true, handler: reverseProxy(addresses...)})
	if err != nil {
		return nil, err
	}
	return l.fleetServer(ctx, s.name+" fleet balanced", f, "", balancer, instances...)
}

// fleetFiles starts Caddy's `file_server` and, if it is installed, nginx. Both serve a
// registry's answers as files.
func (l *lab) fleetFiles(ctx context.Context, s subject, registry *server) (files, nginx *server, err error) {
	static := l.path("static-" + s.name)
	l.cleanup(func() error { return os.RemoveAll(static) })
	for _, i := range registry.inits {
		answers, paths, err := registry.record(ctx, i.steps)
		if err != nil {
			return nil, nil, err
		}
		for n, a := range answers {
			if _, err := writeFile(filepath.Join(static, filepath.FromSlash(paths[n])), text(a.body)); err != nil {
				return nil, nil, err
			}
		}
	}
	c, err := l.fleetCaddy(ctx, s, "fleet-files", site{name: "tls", tls: true, handler: fileServer(static)})
	if err != nil {
		return nil, nil, err
	}
	files = &server{name: "Caddy `file_server`", address: c.addresses["tls"], pids: []int{c.Process.Pid}, tls: registry.tls, inits: registry.inits}
	binary, err := exec.LookPath("nginx")
	if err != nil {
		return files, nil, nil
	}
	address, pid, err := l.startNginx(ctx, binary, static)
	nginx = &server{name: nginxTitle, address: address, pids: []int{pid}, tls: registry.tls, inits: registry.inits}
	return files, nginx, err
}

// fleetCaddy starts a process on all cores until the experiment ends.
func (l *lab) fleetCaddy(ctx context.Context, s subject, name string, sites ...site) (*caddy, error) {
	c, err := l.caddy(ctx, s, name, false, sites...)
	if err == nil {
		l.cleanup(c.stop)
	}
	return c, err
}

// fleetServer records the answers of a process, with others behind it, and checks that
// each init ends with the package.
func (l *lab) fleetServer(ctx context.Context, name string, f fleetTree, authorization string, c *caddy, behind ...*caddy) (*server, error) {
	s := &server{name: name, address: c.addresses["tls"], caddy: c}
	for _, c := range append(behind, c) {
		s.pids = append(s.pids, c.Process.Pid)
	}
	var err error
	if s.tls, err = trust(l.certificate.file); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(f.packageFile(f.root, f.versions[0]))
	if err != nil {
		return nil, err
	}
	for _, steps := range f.inits(authorization) {
		answers, paths, err := s.record(ctx, steps)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if last := answers[len(answers)-1]; !slices.Equal(last.body, content) {
			return nil, errors.New(name + ": the last answer is not the package")
		}
		i := initialization{steps: steps}
		for n, a := range answers {
			t := newTarget(s.address, c.Process.Pid, paths[n], a)
			if steps[n].authorization != "" {
				t.digest = "" // links get new signatures every minute
			}
			i.answers = append(i.answers, t)
		}
		s.inits = append(s.inits, i)
	}
	return s, nil
}
