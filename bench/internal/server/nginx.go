package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// Nginx is a running nginx that serves a folder of static files over TLS, with
// HTTP/2 and HTTP/1.1.
type Nginx struct {
	Address string
	Version string
	command *exec.Cmd
	log     *log
}

// ErrNoNginx says that there is nothing to compare with.
var ErrNoNginx = errors.New("nginx is not installed")

// nginxConfiguration is what its manual has for serving files fast.
const nginxConfiguration = `daemon off;
user %s;
worker_processes auto;
worker_rlimit_nofile 8192;
pid nginx.pid;
error_log stderr;
events {
	worker_connections 4096;
}
http {
	access_log off;
	types {
		application/json json;
		application/zip zip;
	}
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

// StartNginx starts it with a folder of its own.
func StartNginx(ctx context.Context, dir, root string, certificate Certificate) (*Nginx, error) {
	binary, err := findNginx()
	if err != nil {
		return nil, err
	}
	account, err := user.Current()
	if err != nil {
		return nil, err
	}
	// It wants a number, and says so if another process is faster.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &Nginx{Address: l.Addr().String(), Version: versionOf(ctx, binary), log: new(log)}
	l.Close()
	file := filepath.Join(dir, "nginx.conf")
	configuration := fmt.Sprintf(nginxConfiguration, account.Username, n.Address, certificate.File, certificate.Key, root)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, []byte(configuration), 0o600)); err != nil {
		return nil, err
	}
	n.command = exec.CommandContext(ctx, binary, "-p", dir, "-e", "stderr", "-c", file)
	n.command.Cancel = func() error { return n.command.Process.Signal(syscall.SIGTERM) }
	n.command.WaitDelay = patience
	n.command.Stderr = n.log
	if err := n.command.Start(); err != nil {
		return nil, err
	}
	if err := n.await(ctx); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// await waits until it accepts connections.
func (n *Nginx) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.Address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(Poll):
		case <-ctx.Done():
			return fmt.Errorf("nginx does not listen: %w; its last words:\n%s", err, n.log.tail())
		}
	}
}

// findNginx looks where users who are not root do not, too.
func findNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		if binary, err := exec.LookPath(name); err == nil {
			return binary, nil
		}
	}
	return "", ErrNoNginx
}

func versionOf(ctx context.Context, binary string) string {
	out, _ := exec.CommandContext(ctx, binary, "-v").CombinedOutput()
	return cmp.Or(string(regexp.MustCompile(`[0-9][0-9.]+`).Find(bytes.TrimSpace(out))), "of an unknown version")
}

// PID of the process, whose children do the work.
func (n *Nginx) PID() int { return n.command.Process.Pid }

// Stop ends the process and waits for it.
func (n *Nginx) Stop() error {
	if err := n.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("nginx: %w; its last words:\n%s", err, n.log.tail())
	}
	stop := time.AfterFunc(patience, func() { n.command.Process.Kill() })
	defer stop.Stop()
	if err := n.command.Wait(); err != nil {
		return fmt.Errorf("nginx: %w; its last words:\n%s", err, n.log.tail())
	}
	return nil
}
