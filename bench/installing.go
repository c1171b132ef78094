package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// installing has Terraform and OpenTofu run `init` at once, many of each. All need the same
// large package, which a mirror with an empty tree fetches meanwhile, over a line of
// 100 Mbit/s.
func installing(ctx context.Context, l *lab, s subject) ([]row, error) {
	big := bigProvider("big", l.installed, 1)
	big.dense = true
	name := big.packageName(big.versions[0], big.platforms[0])
	programs, err := l.initPrograms()
	if err == nil {
		err = l.hasRoom(int64(len(programs)*l.each) * 2 * big.size) // the package, and what is in it
	}
	if err != nil {
		return nil, err
	}
	origin, err := l.origin(ctx, s, big)
	if err != nil {
		return nil, err
	}
	slow, err := newLine(origin.addresses["origin-tls"], slowLine)
	if err != nil {
		return nil, err
	}
	l.cleanup(slow.Close)
	root := l.path("installed-" + s.name)
	l.cleanup(func() error { return os.RemoveAll(root) })
	base := "https://" + slow.Addr().String()
	curl := func(ctx context.Context) (float64, error) {
		t, err := l.download(ctx, base+big.hosted().mirrorPath(name))
		return t.total, err
	}
	var rows []row
	for _, each := range []int{1, l.each} {
		i := &installer{lab: l, subject: s, origin: origin, base: base, provider: big, name: name, root: root}
		var who []string
		for _, p := range programs {
			i.clients = append(i.clients, slices.Repeat([]string{p.binary}, each)...)
			who = append(who, fmt.Sprint(each, " ", p.name))
		}
		ours := &recorded[installation]{take: i.install}
		what := fmt.Sprintf("`init` of %s at once, for %s through a mirror whose origin sends 100 Mbit/s: ", strings.Join(who, " and "), inBytes(l.installed))
		const rounds = 2 // many clients need minutes to unpack what they have got
		rows = append(rows, row{
			what: what + "all have installed it", unit: "s", rounds: rounds, cost: ours.measuring(func(i installation) float64 { return i.took }),
			against: "`curl` from the origin", reference: curl,
		}, row{
			what: what + "the longest wait for the first bytes", unit: "s", goal: goal{atMost: 3.1}, rounds: rounds,
			cost: ours.recorded(func(i installation) float64 { return i.longest }),
		}, row{
			what: what + "downloads from the origin", goal: goal{atMost: 1}, rounds: rounds,
			cost: ours.recorded(func(i installation) float64 { return i.downloads }),
		})
	}
	return rows, nil
}

// An initProgram runs `init`.
type initProgram struct{ name, binary string }

// initPrograms returns Terraform and OpenTofu, without what is not on this machine.
func (l *lab) initPrograms() (found []initProgram, err error) {
	for _, client := range []struct{ name, program string }{{"Terraform", l.terraform}, {"OpenTofu", l.tofu}} {
		binary, err := exec.LookPath(client.program)
		if err == nil {
			binary, err = filepath.Abs(binary) // clients have folders of their own
		}
		if err != nil {
			progress("no %s takes part: %v", client.name, err)
			continue
		}
		found = append(found, initProgram{client.name, binary})
	}
	if len(found) == 0 {
		return nil, errors.New("there is neither Terraform nor OpenTofu on this machine")
	}
	return found, nil
}

// hasRoom returns an error if the temporary folder has no room for so many bytes.
func (l *lab) hasRoom(bytes int64) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(l.dir, &disk); err != nil {
		return err
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < bytes {
		return fmt.Errorf("the clients need %s in the temporary folder, which has %s", inBytes(bytes), inBytes(free))
	}
	return nil
}

// An installer has clients install a provider through a mirror.
type installer struct {
	lab      *lab
	subject  subject
	clients  []string // their programs
	origin   *caddy
	base     string // the URL of the origin
	provider provider
	name     string // of the package
	root     string // of the mirror
}

// An installation tells how clients have installed a provider at once.
type installation struct {
	took      float64 // seconds until all have installed it
	longest   float64 // seconds that a client has waited for the first bytes of the package
	downloads float64 // of the package, from the origin
}

// install runs `init` in all clients, which begin to ask when all of them have started.
func (i *installer) install(ctx context.Context) (done installation, err error) {
	before, err := i.downloads()
	if err != nil {
		return done, err
	}
	const fresh = "installed-from"
	for _, dir := range []string{i.root, i.lab.storage(i.subject, fresh)} {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err := errors.Join(err, os.MkdirAll(filepath.Join(i.root, "providers"), 0o755)); err != nil {
		return done, err
	}
	h := i.lab.registry(i.root).with("upstream", []any{map[string]any{"hostnames": []string{i.provider.hostname}, "url": i.base}})
	mirror, err := i.lab.caddy(ctx, i.subject, fresh, false, site{name: "tls", tls: true, http1: true, handler: h})
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, mirror.stop()) }()
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b := &barrier{missing: len(i.clients), opened: make(chan struct{}), ended: running.Done()}
	front, err := newRelay(mirror.addresses["tls"], b.pass)
	if err != nil {
		return done, err
	}
	var all sync.WaitGroup
	for n, binary := range i.clients {
		all.Go(func() {
			if err := i.initialize(running, n, binary, "https://"+front.Addr().String()+"/v1/mirror/"); err != nil {
				cancel(err) // the others may wait for this one
			}
		})
	}
	all.Wait()
	finished := time.Now()
	if err := errors.Join(context.Cause(running), front.Close()); err != nil {
		return done, err
	}
	done.took = finished.Sub(b.since).Seconds()
	if len(b.waits) != len(i.clients) {
		return done, fmt.Errorf("%d clients have received the package %d times", len(i.clients), len(b.waits))
	}
	done.longest = slices.Max(b.waits).Seconds()
	after, err := i.downloads()
	if err == nil && after == before {
		err = errors.New("the package is not in the origin's log")
	}
	done.downloads = float64(after - before)
	return done, err
}

// initialize runs `init` with a folder of its own, which it removes. Clients have the lowest
// priority: elsewhere they do not run on the machine of the mirror.
func (i *installer) initialize(ctx context.Context, n int, binary, mirror string) (err error) {
	home := i.lab.path(fmt.Sprintf("client%02d", n))
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	work, temporary, configuration := filepath.Join(home, "work"), filepath.Join(home, "tmp"), filepath.Join(home, "cli.tfrc")
	for _, dir := range []string{work, temporary} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	p := i.provider
	required := fmt.Sprintf("terraform {\n\trequired_providers {\n\t\t%s = {\n\t\t\tsource = \"%s/%s/%s\"\n\t\t}\n\t}\n}\n", p.typ, p.hostname, p.namespace, p.typ)
	installation := fmt.Sprintf("provider_installation {\n\tnetwork_mirror {\n\t\turl = %q\n\t}\n}\n", mirror)
	err = errors.Join(os.WriteFile(filepath.Join(work, "main.tf"), []byte(required), 0o644), os.WriteFile(configuration, []byte(installation), 0o644))
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "nice", "-n", "19", "taskset", "-c", i.lab.cores.all, binary, "init", "-no-color", "-input=false")
	command.Dir = work
	command.Env = append(i.lab.environment(home), "TMPDIR="+temporary, "TF_CLI_CONFIG_FILE="+configuration, "CHECKPOINT_DISABLE=1",
		"TF_REGISTRY_CLIENT_TIMEOUT=60") // of documents, while the others start
	_, err = timeOf(command)
	return err
}

// downloads returns how often the origin has been asked for the package.
func (i *installer) downloads() (count int, err error) {
	log, err := os.ReadFile(i.origin.log)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(log) {
		var entry struct {
			Request struct{ Method, URI string }
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			return 0, fmt.Errorf("%w: %s", err, line)
		}
		path, _, _ := strings.Cut(entry.Request.URI, "?")
		if entry.Request.Method == "GET" && strings.HasSuffix(path, "/"+i.name) {
			count++
		}
	}
	return count, nil
}

// A barrier holds the answers to clients back until all have connected, and then
// measures how long each waits for the package. Clients have a connection for the
// documents before, and another for the package.
type barrier struct {
	ended  <-chan struct{}
	opened chan struct{} // closed when all have connected

	mutex   sync.Mutex
	missing int       // clients that have not connected
	since   time.Time // when the last one has
	waits   []time.Duration
}

// pass sends a client what the server answers.
func (b *barrier) pass(client, server net.Conn) {
	const documents = 64 << 10 // bytes, more than all documents, and what TLS adds
	b.arrive()
	select {
	case <-b.opened:
	case <-b.ended:
		return
	}
	began := time.Now()
	if _, err := io.CopyN(client, server, documents); err != nil {
		return
	}
	b.mutex.Lock()
	b.waits = append(b.waits, time.Since(began))
	b.mutex.Unlock()
	io.Copy(client, server)
}

// arrive counts a connection, and opens the barrier at the last one.
func (b *barrier) arrive() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.missing--
	if b.missing == 0 {
		b.since = time.Now()
		close(b.opened)
	}
}
