package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Work is the client process: it does the jobs that it reads until there are
// no more.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	jobs, results := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var j Job
		if err := jobs.Decode(&j); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r, err := run(ctx, j)
		if err != nil {
			r.Error = err.Error()
		}
		if err := results.Encode(r); err != nil {
			return err
		}
	}
}

// A Client is a client process as its parent sees it.
type Client struct {
	command *exec.Cmd
	in      io.WriteCloser
	jobs    *json.Encoder
	results *json.Decoder
}

// Start starts a client process with a command that calls Work. It uses one
// core.
func Start(ctx context.Context, command ...string) (*Client, error) {
	c := &Client{command: exec.CommandContext(ctx, command[0], command[1:]...)}
	c.command.Env = append(os.Environ(), "GOMAXPROCS=1")
	c.command.Stderr = os.Stderr
	var err error
	if c.in, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.jobs, c.results = json.NewEncoder(c.in), json.NewDecoder(out)
	return c, c.command.Start()
}

// Run has a job done. Jobs are done one after the other.
func (c *Client) Run(j Job) (r Result, err error) {
	if err := c.jobs.Encode(j); err != nil {
		return r, fmt.Errorf("the client process: %w", err)
	}
	if err := c.results.Decode(&r); err != nil {
		return r, fmt.Errorf("the client process: %w", err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("GET %s over %s: %s", j.Path, j.Protocol, r.Error)
	}
	if r.Answers == 0 && r.Bytes == 0 {
		return r, fmt.Errorf("GET %s over %s: no answer in %s", j.Path, j.Protocol, j.Duration)
	}
	return r, nil
}

// Close ends the process.
func (c *Client) Close() error {
	return errors.Join(c.in.Close(), c.command.Wait())
}
