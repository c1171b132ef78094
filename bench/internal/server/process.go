package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options say what to run.
type Options struct {
	// Binary is Caddy with the registry; Prefix, which may be empty, is a
	// command that runs it.
	Binary string
	Prefix []string

	// Cores that it may use; 0 is all.
	Cores int

	// Dir is for the process alone. What it keeps there it finds again when it
	// is started again.
	Dir string

	Sites       []Site
	Certificate Certificate
}

// A Process is a running Caddy.
type Process struct {
	options   Options
	command   *exec.Cmd
	addresses map[string]string
	log       *log
	started   time.Time
	exited    chan struct{}
	err       error // once exited
}

// patience is how long a process gets to stop.
const patience = time.Minute

func inherited(i int) string { return "fd/" + strconv.Itoa(3+i) }

// Start starts the process and returns at once. Its ports accept connections
// already, which are answered when it serves.
func Start(ctx context.Context, o Options) (*Process, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	if len(o.socket()) > 100 {
		return nil, fmt.Errorf("%s is too long for a socket: set TMPDIR to something shorter", o.socket())
	}
	configuration, err := o.configuration()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.Dir, "caddy.json")
	if err := os.WriteFile(file, configuration, 0o600); err != nil {
		return nil, err
	}
	args := append(slices.Clone(o.Prefix), o.Binary, "run", "--config", file)
	p := &Process{
		options:   o,
		command:   exec.CommandContext(ctx, args[0], args[1:]...),
		addresses: make(map[string]string),
		exited:    make(chan struct{}),
	}
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGTERM) }
	p.command.WaitDelay = patience
	p.command.Env = o.environment()
	for _, site := range o.Sites {
		f, err := p.listen(site.Name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		p.command.ExtraFiles = append(p.command.ExtraFiles, f)
	}
	p.log = new(log)
	p.command.Stderr = p.log
	p.started = time.Now()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// listen opens the port of a site. Only the process is to have it, so that
// clients notice when the process ends.
func (p *Process) listen(name string) (*os.File, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	p.addresses[name] = l.Addr().String()
	return l.(*net.TCPListener).File()
}

// environment keeps the process to its folder: nothing of Caddy's that is on
// the machine is read or written.
func (o Options) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "CADDY") || strings.HasPrefix(name, "GO") || name == "HOME"
	})
	env = append(env, "HOME="+o.Dir, "XDG_DATA_HOME="+filepath.Join(o.Dir, "data"), "XDG_CONFIG_HOME="+filepath.Join(o.Dir, "config"))
	if o.Certificate.File != "" {
		env = append(env, "SSL_CERT_FILE="+o.Certificate.File) // of the process that this one asks
	}
	if o.Cores > 0 {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(o.Cores))
	}
	return env
}

// Address of a site.
func (p *Process) Address(site string) string { return p.addresses[site] }

// PID of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Started is when the process was started.
func (p *Process) Started() time.Time { return p.started }

// failure adds what the process said last to an error that may come from its
// end.
func (p *Process) failure(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; the server's last words:\n%s", err, p.log.tail())
}

// Stop ends the process as systemd would and waits for it.
func (p *Process) Stop() error {
	select {
	case <-p.exited:
		return p.failure(fmt.Errorf("the server had ended: %w", errors.Join(p.err)))
	default:
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(patience):
		p.command.Process.Kill()
		<-p.exited
		return p.failure(errors.New("the server did not stop"))
	}
}
