// Command serve serves the sample tree in testdata/registry on this machine:
//
//	go run ./testdata/serve [flags of caddy-terraform-registry]
//
// It is small, so that it starts at once. It shows the progress of two builds that take minutes
// the first time: the server, and a provider that runs, which is a program for this machine's
// platform. To publish that provider, it only puts the program into the tree.
package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

const (
	version = "1.0.0"
	listen  = "127.0.0.1:8443" // modules need a hostname with a dot, and localhost has none
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(flags []string) error {
	fmt.Println("Building Caddy with the registry. The first time, this takes some minutes.")
	folder := filepath.Join("testdata", "serve")
	caddy := filepath.Join(folder, "caddy"+suffix())
	if err := build(".", caddy, nil, "-tags", "nobadger,nomysql,nopgx", "./xcaddy"); err != nil {
		return fmt.Errorf("building Caddy: %w", err)
	}
	root := filepath.Join("testdata", "registry")
	demo := filepath.Join(root, "providers", "acme", "demo")
	if err := publish(filepath.Join(demo, version), filepath.Join(demo, "0.1.0", "docs")); err != nil {
		return err
	}

	log, err := os.Create(filepath.Join(folder, "caddy.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Printf("Starting. Caddy's log is %s; Ctrl-C ends it.\n\n", log.Name())
	server := exec.Command(caddy, append([]string{"terraform-registry",
		"--root", root, "--listen", listen, "--internal-certs"}, flags...)...)
	server.Stdin, server.Stdout, server.Stderr = os.Stdin, os.Stdout, log
	// The server is interrupted by the terminal, too, and ends by itself.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := server.Start(); err != nil {
		return err
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		for s := range terminated {
			server.Process.Signal(s)
		}
	}()
	if err := server.Wait(); err != nil {
		return fmt.Errorf("the server has ended (%w):\n%s", err, lastLine(log.Name()))
	}
	return nil
}

// suffix returns the suffix of programs.
func suffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// lastLine returns the last line of a file, which says why a command has failed.
func lastLine(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	content = bytes.TrimSpace(content)
	return string(content[bytes.LastIndexByte(content, '\n')+1:])
}

// publish builds the sample provider and packs it into dir, with a copy of its
// documentation, unless it is there.
func publish(dir, docs string) error {
	target := filepath.Join(dir, fmt.Sprintf("terraform-provider-demo_%s_%s_%s.zip", version, runtime.GOOS, runtime.GOARCH))
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	fmt.Printf("Building the sample provider acme/demo %s for %s_%s.\n", version, runtime.GOOS, runtime.GOARCH)
	scratch, err := os.MkdirTemp("", "terraform-provider-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	binary := filepath.Join(scratch, "terraform-provider-demo_v"+version+suffix())
	err = build(filepath.Join("testdata", "provider"), binary, []string{"CGO_ENABLED=0"}, "-trimpath",
		"-ldflags", "-s -w -X main.typeName=demo -X main.version="+version, ".")
	if err != nil {
		return fmt.Errorf("building the sample provider: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "docs")); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "docs"), os.DirFS(docs)); err != nil {
		return fmt.Errorf("copying the documentation of the sample provider: %w", err)
	}
	// Written under a temporary name and renamed: a half file never appears.
	if err := pack(target+".tmp", binary); err != nil {
		return fmt.Errorf("packing the sample provider: %w", err)
	}
	return os.Rename(target+".tmp", target)
}

func pack(target, binary string) error {
	in, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	defer out.Close()
	z := zip.NewWriter(out)
	header := &zip.FileHeader{Name: filepath.Base(binary), Method: zip.Deflate}
	header.SetMode(0o755)
	w, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, in); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return out.Close()
}
