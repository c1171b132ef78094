package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build runs `go build` in a folder with more environment variables, and shows how many
// packages it has compiled so far. The total is unknown: most packages may be in Go's cache.
func build(folder, output string, env []string, args ...string) error {
	output, err := filepath.Abs(output)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"build", "-v", "-o", output}, args...)...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	printed, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	count, failures := 0, []string{}
	show := isTerminal(os.Stdout)
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		line := lines.Text()
		if strings.ContainsAny(line, " :") { // -v prints only the paths of packages
			if !strings.HasPrefix(line, "go: downloading ") {
				failures = append(failures, line)
				continue
			}
			line = strings.TrimPrefix(line, "go: ")
		} else if count++; show {
			line = fmt.Sprintf("%d packages compiled", count)
		}
		if show {
			fmt.Printf("\r\x1b[K  %.70s", line)
		}
	}
	if show {
		fmt.Print("\r\x1b[K")
	}
	if err := cmd.Wait(); err != nil {
		return errors.New(strings.Join(append(failures, err.Error()), "\n"))
	}
	return nil
}

// isTerminal reports whether a file is a terminal, or at least neither a file nor a
// pipe.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
