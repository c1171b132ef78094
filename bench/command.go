package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// timeCommand is how long a command takes from its start to its end, its
// output thrown away.
func timeCommand(ctx context.Context, command ...string) (float64, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stderr = os.Stderr
	began := time.Now()
	if err := c.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w", command[0], err)
	}
	return time.Since(began).Seconds(), nil
}

// find is what the warm start is compared with: the least that has to be done
// to know whether a tree is still the one that it was.
func find(ctx context.Context, root string) (float64, error) {
	return timeCommand(ctx, "find", root, "-type", "f", "-printf", `%s %T@\n`)
}
