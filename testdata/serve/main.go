// Command serve serves the sample tree in testdata/registry on this machine:
//
//	go run ./testdata/serve [flags of caddy terraform-registry]
//
// A provider that runs is a program of this machine's platform, so it is built
// first and put into the tree, which is all that publishing takes.
package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddy-terraform/caddy-terraform-registry"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

const version = "1.0.0"

func main() {
	root := filepath.Join("testdata", "registry")
	if err := publish(filepath.Join(root, "providers", "acme", "demo")); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	// Modules need a hostname with a dot in it, which localhost has not.
	os.Args = append([]string{"caddy", "terraform-registry",
		"--root", root, "--listen", "127.0.0.1:8443", "--internal-certs"}, os.Args[1:]...)
	caddycmd.Main()
}

// publish builds the sample provider and packs it into dir, unless it is there.
func publish(dir string) error {
	target := filepath.Join(dir, fmt.Sprintf("terraform-provider-demo_%s_%s_%s.zip", version, runtime.GOOS, runtime.GOARCH))
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	fmt.Printf("building the sample provider acme/demo %s for %s_%s …\n", version, runtime.GOOS, runtime.GOARCH)
	scratch, err := os.MkdirTemp("", "terraform-provider-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	binary := filepath.Join(scratch, "terraform-provider-demo_v"+version)
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.Command("go", "build", "-C", filepath.Join("testdata", "provider"), "-trimpath",
		"-ldflags", "-s -w -X main.typeName=demo -X main.version="+version, "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the sample provider: %w", err)
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
