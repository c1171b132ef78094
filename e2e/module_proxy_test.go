package e2e_test

import (
	archivezip "archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// moduleProxy offers the checkout as an unpublished version of its Go module,
// by a module proxy of plain files in the layout that `go help goproxy`
// describes. It returns the environment in which the go command, and tools that
// call it, find that version, and the version.
func moduleProxy(t *testing.T, path, checkout string) ([]string, module.Version) {
	t.Helper()
	var packed bytes.Buffer
	if err := zip.CreateFromDir(&packed, module.Version{Path: path, Version: "v0.0.0-test"}, checkout); err != nil {
		t.Fatal(err)
	}
	v := module.Version{Path: path, Version: "v0.0.0-test.h" + hashOfCode(t, packed.Bytes())}
	packed.Reset()
	if err := zip.CreateFromDir(&packed, v, checkout); err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	offer := func(name, content string) {
		writeFile(t, filepath.Join(dir, filepath.FromSlash(v.Path), "@v", name), content)
	}
	goMod, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]any{"Version": v.Version, "Time": time.Now().UTC()})
	if err != nil {
		t.Fatal(err)
	}
	offer("list", v.Version+"\n")
	offer(v.Version+".info", string(info))
	offer(v.Version+".mod", string(goMod))
	offer(v.Version+".zip", packed.String())

	forgetModule(t, v)
	return append(os.Environ(),
		"GOPROXY=file://"+filepath.ToSlash(dir)+","+goEnv(t, "GOPROXY"),
		"GONOSUMDB="+v.Path,
		"GOFLAGS=-mod=mod -modcacherw "+goEnv(t, "GOFLAGS"),
	), v
}

// hashOfCode returns a short hash of the files of a module without its tests and documents. The
// go command compiles each version of a module again.
func hashOfCode(t *testing.T, packed []byte) string {
	t.Helper()
	files, err := archivezip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for _, f := range files.File {
		name := f.Name[strings.Index(f.Name, "@"):]
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".md") || strings.Contains(name, "/e2e/") || strings.Contains(name, "/testdata/") {
			continue
		}
		fmt.Fprintln(h, name, f.CRC32, f.UncompressedSize64)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// forgetModule removes the version from the module cache after the test.
func forgetModule(t *testing.T, v module.Version) {
	t.Helper()
	cache := goEnv(t, "GOMODCACHE")
	t.Cleanup(func() {
		files, _ := filepath.Glob(filepath.Join(cache, "cache", "download", filepath.FromSlash(v.Path), "@v", v.Version+"*"))
		for _, path := range append(files, filepath.Join(cache, filepath.FromSlash(v.Path)+"@"+v.Version)) {
			if err := os.RemoveAll(path); err != nil {
				t.Error(err)
			}
		}
	})
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
