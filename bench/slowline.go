package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"time"
)

// A slowLine is a slower way to a server than the loopback interface: it passes on
// what comes, as it is, at so many bytes a second for each connection.
type slowLine struct {
	net.Listener
	to          string
	rate        float64
	connections sync.WaitGroup
}

// gigabit is what a line of 1 Gbit/s carries, in bytes a second.
const gigabit = 125e6

// newSlowLine listens for connections to the server of a URL, and returns the URL by
// which it is reached.
func newSlowLine(server string, rate float64) (*slowLine, string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	l := &slowLine{Listener: listener, to: u.Host, rate: rate}
	l.connections.Go(l.serve)
	u.Host = listener.Addr().String()
	return l, u.String(), nil
}

func (l *slowLine) serve() {
	for {
		client, err := l.Accept()
		if err != nil {
			return // closed
		}
		l.connections.Go(func() {
			defer client.Close()
			server, err := net.Dial("tcp", l.to)
			if err != nil {
				return
			}
			defer server.Close()
			go func() {
				io.Copy(server, client)
				server.Close() // the client has hung up
			}()
			io.Copy(&pacedWriter{to: client, rate: l.rate}, server)
		})
	}
}

// Close waits for connections to end.
func (l *slowLine) Close() {
	l.Listener.Close()
	l.connections.Wait()
}

// A pacedWriter writes no faster than its rate on the whole, after an idle time
// too.
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
