package e2e_test

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Packaging is how a module's version is stored at a path: as a folder, or as
// an archive with an extension after the version.
type Packaging func(t *testing.T, path string, files map[string]string)

// moduleFiles returns a module with a submodule, with different outputs.
func moduleFiles(address, version string) map[string]string {
	return map[string]string{
		"main.tf":                `output "text" { value = "` + address + " " + version + `" }` + "\n",
		"README.md":              "# " + address + "\n",
		"modules/subnet/main.tf": `output "text" { value = "subnet of ` + address + " " + version + `" }` + "\n",
	}
}

func asFolder(t *testing.T, path string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		writeFile(t, filepath.Join(path, filepath.FromSlash(name)), content)
	}
}

func asZip(t *testing.T, path string, files map[string]string) {
	t.Helper()
	create(t, path+".zip", func(w io.Writer) error {
		packed := zip.NewWriter(w)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			f, err := packed.Create(name)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(f, files[name]); err != nil {
				return err
			}
		}
		return packed.Close()
	})
}

func asTarGz(t *testing.T, path string, files map[string]string) {
	t.Helper()
	tarGz(t, path+".tar.gz", files)
}

func asTgz(t *testing.T, path string, files map[string]string) {
	t.Helper()
	tarGz(t, path+".tgz", files)
}

// asHostedTarGz and asHostedZip are archives as code hosts make them from a
// tag: with a single top-level folder, and a header by git archive that names
// the commit.
func asHostedTarGz(t *testing.T, path string, files map[string]string) {
	t.Helper()
	tarGz(t, path+".tar.gz", inFolder(path, files), tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "70e004b"}})
}

func asHostedZip(t *testing.T, path string, files map[string]string) {
	t.Helper()
	asZip(t, path, inFolder(path, files))
}

func inFolder(path string, files map[string]string) map[string]string {
	moved := make(map[string]string)
	for name, content := range files {
		moved["terraform-aws-vpc_"+filepath.Base(path)+"+x/"+name] = content
	}
	return moved
}

func tarGz(t *testing.T, path string, files map[string]string, before ...tar.Header) {
	t.Helper()
	create(t, path, func(w io.Writer) error {
		compressed := gzip.NewWriter(w)
		packed := tar.NewWriter(compressed)
		for _, header := range before {
			if err := packed.WriteHeader(&header); err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}
			if err := packed.WriteHeader(header); err != nil {
				return err
			}
			if _, err := io.WriteString(packed, files[name]); err != nil {
				return err
			}
		}
		if err := packed.Close(); err != nil {
			return err
		}
		return compressed.Close()
	})
}

func create(t *testing.T, path string, write func(io.Writer) error) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := write(file); err != nil {
		t.Fatal(err)
	}
}
