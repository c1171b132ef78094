package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// patience is how long a process gets to start listening, and to stop.
const patience = time.Minute

// poll is the time between two looks at something that is expected to happen. It is
// short in comparison with everything that is measured by looking.
const poll = 2 * time.Millisecond

// A process is a server with a folder of its own.
type process struct {
	*exec.Cmd
	log    string // file with its standard error
	exited chan struct{}
	err    error // once exited
}

// start runs a server in dir, which also has its log.
func start(ctx context.Context, dir string, env []string, files []*os.File, command ...string) (*process, error) {
	p := &process{
		Cmd:    exec.CommandContext(ctx, command[0], command[1:]...),
		log:    filepath.Join(dir, "log"),
		exited: make(chan struct{}),
	}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.Dir, p.Env, p.ExtraFiles, p.Stderr = dir, env, files, log
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
	p.WaitDelay = patience
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.Wait()
		close(p.exited)
	}()
	return p, nil
}

// stop ends the process as systemd would, and waits for it.
func (p *process) stop() error {
	select {
	case <-p.exited:
		return p.failure(fmt.Errorf("the server ended early: %w", errors.Join(p.err)))
	default:
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(patience):
		p.Process.Kill()
		<-p.exited
		return p.failure(errors.New("the server did not stop"))
	}
}

// failure adds the end of the log to an error.
func (p *process) failure(err error) error {
	const most = 2000
	log, _ := os.ReadFile(p.log)
	return fmt.Errorf("%w; the end of the server's log:\n%s", err, log[max(0, len(log)-most):])
}

// dial connects to a process that was just started, trying until it listens.
func (p *process) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(poll):
		case <-p.exited:
			return nil, p.failure(err)
		case <-ctx.Done():
			return nil, p.failure(err)
		}
	}
}

// nginxConfiguration follows nginx's manual for serving files fast.
const nginxConfiguration = `daemon off;
user %s;
worker_processes auto;
worker_rlimit_nofile 8192;
pid nginx.pid;
error_log stderr;
events { worker_connections 4096; }
http {
	access_log off;
	types { application/json json; application/zip zip; }
	sendfile on;
	tcp_nopush on;
	client_body_temp_path temporary;
	proxy_temp_path temporary;
	fastcgi_temp_path temporary;
	uwsgi_temp_path temporary;
	scgi_temp_path temporary;
	server {
		listen %s ssl http2;
		ssl_certificate %q;
		ssl_certificate_key %q;
		root %q;
	}
}
`

// startNginx serves a folder over TLS with HTTP/1.1 and HTTP/2, until the
// experiment ends.
func (l *lab) startNginx(ctx context.Context, binary, root string) (address string, pid int, err error) {
	account, err := user.Current()
	if err != nil {
		return "", 0, err
	}
	// nginx accepts no port 0. If another process takes the port first, nginx says so.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", 0, err
	}
	address = listener.Addr().String()
	listener.Close()
	dir, err := os.MkdirTemp(l.dir, "nginx")
	if err != nil {
		return "", 0, err
	}
	file := filepath.Join(dir, "nginx.conf")
	configuration := fmt.Sprintf(nginxConfiguration, account.Username, address, l.certificate.file, l.certificate.key, root)
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		return "", 0, err
	}
	p, err := start(ctx, dir, os.Environ(), nil, "taskset", "-c", l.cores.all, binary, "-p", dir, "-e", "stderr", "-c", file)
	if err != nil {
		return "", 0, err
	}
	l.cleanup(p.stop)
	conn, err := p.dial(ctx, "tcp", address)
	if err != nil {
		return "", 0, err
	}
	return address, p.Process.Pid, conn.Close()
}

// timeCommand runs a command to its end and returns how long that took, in seconds.
func timeCommand(ctx context.Context, command ...string) (float64, error) {
	return timeOf(exec.CommandContext(ctx, command[0], command[1:]...))
}

// timeOf is timeCommand for a command with an environment of its own.
func timeOf(c *exec.Cmd) (float64, error) {
	var output bytes.Buffer
	c.Stderr = &output
	began := time.Now()
	if err := c.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", strings.Join(c.Args[:min(len(c.Args), 2)], " "), err, output.Bytes())
	}
	return time.Since(began).Seconds(), nil
}
