package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Capacities of lines of 1 Gbit/s and 100 Mbit/s, in bytes a second.
const (
	gigabit  = 125e6
	slowLine = gigabit / 10
)

// pullThrough has curl download a signed package from its origin, which is a registry
// too, over TLS and a line of 1 Gbit/s; and from a mirror with an empty tree that
// fetches the package from there. The mirror sends nothing before it has verified the
// whole package, so the time to the first byte is the time of the fill, or 3 s, after which
// the mirror sends what it has.
func pullThrough(ctx context.Context, l *lab, s subject) ([]row, error) {
	big := bigProvider("big", l.archive, 1)
	origin, err := l.origin(ctx, s, big)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(big.packageFile("", big.versions[0]))
	var rows []row
	for _, rate := range []struct {
		name     string
		capacity float64
		first    goal // in seconds
		last     goal
	}{
		{"1 Gbit/s", gigabit, goal{}, goal{atMost: 1.2}},
		{"100 Mbit/s", slowLine, goal{atMost: 3.1}, goal{atMost: 1.05}}, // a tenth for the request before
	} {
		slow, err := newLine(origin.addresses["origin-tls"], rate.capacity)
		if err != nil {
			return nil, err
		}
		l.cleanup(slow.Close)
		p := &pulled{lab: l, subject: s, base: "https://" + slow.Addr().String(), provider: big, name: name, root: l.path("filled-" + s.name)}
		l.cleanup(func() error { return os.RemoveAll(p.root) })
		what := fmt.Sprintf("pull-through of %s at %s, to the ", inBytes(l.archive), rate.name)
		ours := &recorded[transfer]{take: p.fill}
		theirs := &recorded[transfer]{take: func(ctx context.Context) (transfer, error) {
			return l.download(ctx, p.base+big.hosted().mirrorPath(name))
		}}
		rows = append(rows, row{
			what: what + "last byte", unit: "s", goal: rate.last, slowness: 8, cost: ours.measuring(transfer.untilLast),
			against: "`curl` from the origin", reference: theirs.measuring(transfer.untilLast),
		}, row{
			what: what + "first byte", unit: "s", goal: rate.first, slowness: 8, cost: ours.recorded(transfer.untilFirst),
		})
	}
	return rows, nil
}

// origin starts a registry that hosts a provider, signed, until the experiment ends.
func (l *lab) origin(ctx context.Context, s subject, p provider) (*caddy, error) {
	p = p.hosted()
	p.documents = signed
	published, err := l.folder("origin", func(dir string) error { return p.write(dir, l.key) })
	if err != nil {
		return nil, err
	}
	h := l.registry(published).with("hostname", []string{host})
	c, err := l.caddy(ctx, s, "origin", false, site{name: "origin", handler: h}, site{name: "origin-tls", tls: true, logged: true, handler: h})
	if err != nil {
		return nil, err
	}
	l.cleanup(c.stop)
	_, err = c.indexed(ctx, "origin", p)
	return c, err
}

// A pulled package comes through a mirror from its origin.
type pulled struct {
	lab      *lab
	subject  subject
	base     string // the URL of the origin
	provider provider
	name     string
	root     string // of the mirror
}

// fill has curl download the package from a mirror with an empty tree.
func (p *pulled) fill(ctx context.Context) (t transfer, err error) {
	if err := errors.Join(os.RemoveAll(p.root), os.MkdirAll(filepath.Join(p.root, "providers"), 0o755)); err != nil {
		return t, err
	}
	mirror := p.lab.registry(p.root).with("upstream", []any{map[string]any{"hostnames": []string{p.provider.hostname}, "url": p.base}})
	err = p.lab.fresh(ctx, p.subject, mirror, func(c *caddy) error {
		// Like clients, it asks for the release before it asks for the package.
		listed := func(a *answer) bool { return a.ok() && bytes.Contains(a.body, []byte(p.name)) }
		if _, err := c.await(ctx, "site", p.provider.mirrorPath(p.provider.versions[0]+".json"), listed); err != nil {
			return err
		}
		t, err = p.lab.download(ctx, "http://"+c.addresses["site"]+p.provider.mirrorPath(p.name))
		return err
	})
	return t, err
}

// A transfer has the times that curl reports for a download, in seconds.
type transfer struct{ first, total float64 }

func (t transfer) untilFirst() float64 { return t.first }
func (t transfer) untilLast() float64  { return t.total }

// download has curl write a file, without the user's configuration, and removes the
// file.
func (l *lab) download(ctx context.Context, url string) (t transfer, err error) {
	file := l.path("downloaded")
	defer os.Remove(file)
	c := exec.CommandContext(ctx, "curl", "--disable", "--noproxy", "*", "--silent", "--show-error", "--fail",
		"--cacert", l.certificate.file, "--output", file, "--write-out", "%{time_starttransfer} %{time_total}", url)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err == nil {
		_, err = fmt.Sscan(string(out), &t.first, &t.total)
	}
	if err != nil {
		return t, fmt.Errorf("curl %s: %w", url, err)
	}
	return t, nil
}

// newLine opens a slow line to a server. It limits the bytes a second of each connection.
func newLine(address string, rate float64) (*relay, error) {
	return newRelay(address, func(client, server net.Conn) {
		io.Copy(&pacedWriter{to: client, rate: rate}, server)
	})
}

// A relay is a proxy before a server. It passes on what clients send.
type relay struct {
	net.Listener
	address     string
	pass        func(client, server net.Conn) // what the server sends
	connections sync.WaitGroup
}

func newRelay(address string, pass func(client, server net.Conn)) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{Listener: listener, address: address, pass: pass}
	r.connections.Go(r.serve)
	return r, nil
}

func (r *relay) serve() {
	for {
		client, err := r.Accept()
		if err != nil {
			return // closed
		}
		r.connections.Go(func() {
			defer client.Close()
			server, err := net.Dial("tcp", r.address)
			if err != nil {
				return
			}
			defer server.Close()
			go func() {
				io.Copy(server, client)
				server.Close() // the client has closed the connection
			}()
			r.pass(client, server)
		})
	}
}

// Close waits for connections to end.
func (r *relay) Close() error {
	err := r.Listener.Close()
	r.connections.Wait()
	return err
}

// A pacedWriter writes no faster than its rate, after an idle time either.
type pacedWriter struct {
	to    io.Writer
	rate  float64
	ready time.Time // when the line has sent what was written
}

func (w *pacedWriter) Write(p []byte) (int, error) {
	if now := time.Now(); w.ready.Before(now) {
		w.ready = now
	}
	w.ready = w.ready.Add(time.Duration(float64(len(p)) / w.rate * float64(time.Second)))
	if ahead := time.Until(w.ready); ahead > time.Millisecond {
		time.Sleep(ahead)
	}
	return w.to.Write(p)
}
