package e2e_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// moduleOfCode returns the URL of a document of a module of code.example.com, at the
// stand-in.
func moduleOfCode(address, document string) string {
	return "https://mirror.example.com/v1/registries/code.example.com/modules/" + address + "/" + document
}

// module downloads a module of code.example.com as clients do, and returns the files of
// its package and the folder in which the module lies.
func (r *Registry) module(t *testing.T, address, version string) (files map[string]string, folder string) {
	t.Helper()
	link := r.Get(t, moduleOfCode(address, version+"/download"))
	location := link.Header.Get("X-Terraform-Get")
	if link.Status != 204 || location == "" {
		t.Fatalf("%s %s: %d %s", address, version, link.Status, link.Body)
	}
	packed, folder, _ := strings.Cut(strings.TrimPrefix(location, "https://"), "//")
	answer := r.Get(t, "https://"+packed)
	if answer.Status != 200 {
		t.Fatalf("%s: %d %s", location, answer.Status, answer.Body)
	}
	return untarred(t, answer.Body), folder
}

// untarred returns the regular files of a .tar.gz, and what symlinks in it point to.
func untarred(t *testing.T, packed string) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for entries := tar.NewReader(compressed); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		switch header.Typeflag {
		case tar.TypeReg:
			content, err := io.ReadAll(entries)
			if err != nil {
				t.Fatal(err)
			}
			files[header.Name] = string(content)
		case tar.TypeSymlink:
			files[header.Name] = "-> " + header.Linkname
		}
	}
}

// removeModule removes the package of a module of code.example.com from the tree, as
// `prune` does, and returns when it is no longer served.
func (r *Registry) removeModule(t *testing.T, files *Tree, address, version string) {
	t.Helper()
	r.Settle(t)
	if err := os.Remove(files.Path("modules/code.example.com/" + address + "/" + version + ".tar.gz")); err != nil {
		t.Fatal(err)
	}
	r.Settle(t)
}

// unfetched returns the temporary files in the tree, without the records of origins.
func unfetched(files *Tree) []string {
	return slices.DeleteFunc(files.unfinished(), func(name string) bool { return strings.HasSuffix(name, ".source.json") })
}

// temporary returns the files that fetching modules has left in the folder for
// temporary files.
func (r *Registry) temporary(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(r.tmp())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
