package index

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// modesOf are the modes of the files in a package.
func modesOf(t testing.TB, content []byte) map[string]int64 {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	modes := make(map[string]int64)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return modes
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[h.Name] = h.Mode
	}
}

func TestExecutables(t *testing.T) {
	type file struct {
		content string
		mode    fs.FileMode
	}
	const plain, runs = 0o644, 0o755
	for _, test := range []struct {
		rule  string
		files map[string]file
		want  []string // the executable ones
	}{
		{"by its content", map[string]file{
			"script": {"#!/bin/sh\n", plain}, "linux": {"\x7fELF\x02\x01\x01\x00\x00", plain}, "macos": {"\xcf\xfa\xed\xfe\x0c\x00\x00\x01", plain},
			"universal": {"\xca\xfe\xba\xbe\x00\x00\x00\x02", plain}, "universal64": {"\xca\xfe\xba\xbf\x00\x00\x00\x02", plain}, "main.tf": {"# a module\n", plain},
		}, []string{"linux", "macos", "script", "universal", "universal64"}},
		{"not what looks nearly like it", map[string]file{
			"A.class": {"\xca\xfe\xba\xbe\x00\x00\x00\x34\x00", plain}, "short": {"\x7fELF", plain}, "#": {"#", plain}, "note": {"# !", plain}, "empty": {"", plain},
		}, nil},
		{"by its mode", map[string]file{"run": {"x", runs}, "main.tf": {"x", plain}}, []string{"run"}},
		{"by its mode for anyone", map[string]file{"run": {"x", 0o654}, "main.tf": {"x", plain}}, []string{"run"}},
		{"not where the file system gives every file the same mode", map[string]file{"a": {"x", 0o777}, "main.tf": {"x", 0o777}, "script": {"#!/bin/sh\n", 0o777}}, []string{"script"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			os.Mkdir(filepath.Join(dir, "module"), 0o755)
			for name, f := range test.files {
				name = filepath.Join(dir, "module", name)
				if err := os.WriteFile(name, []byte(f.content), f.mode); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(name, f.mode); err != nil { // whatever the umask
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			part := Part{Fs: rootFs{root}, Dir: "."}
			var got []string
			for name, mode := range modesOf(t, content(t, part, packed(t, part))) {
				if mode == 0o755 {
					got = append(got, name)
				} else if mode != 0o644 {
					t.Errorf("%s has %o", name, mode)
				}
			}
			if slices.Sort(got); !slices.Equal(got, test.want) {
				t.Errorf("executable is %q", got)
			}
		})
	}
}

// A file whose mode has changed makes another package, also on a file system
// that tells nothing else of it.
func TestTheStampOfAFolderCoversModes(t *testing.T) {
	files := moduleFiles{"main.tf": "x", "run": "x"}
	stamps := make(map[stamp]bool)
	for _, mode := range []fs.FileMode{0o644, 0o755} {
		fsys := afero.NewMemMapFs()
		part := files.on(t, fsys, long, 0o644)
		fsys.Chmod("module/run", mode)
		fsys.Chtimes("module/run", long, long)
		walked, _, f := part.walkFolder("module", unwatched)
		if f != nil {
			t.Fatal(f)
		}
		stamps[stampFolder(walked)] = true
	}
	if len(stamps) != 2 {
		t.Error("the stamps are the same")
	}
}

// A secret withholds its folder, wherever it lies and whatever it is called, and
// the finding says which file it is.
func TestFoldersWithASecret(t *testing.T) {
	for rule, content := range privateKeys(t) {
		_, f := readModule(moduleFiles{"main.tf": "", "certs/server.txt": content}.inMemory(t))
		if f == nil || f.reason != Secret || !strings.Contains(f.detail, `"certs/server.txt" in it holds a private key`) || !strings.Contains(f.detail, ".terraformignore") {
			t.Errorf("with %s the finding is %+v", rule, f)
		}
	}
	_, f := readModule(moduleFiles{"main.tf": "", "release": testdata(t, "saved-plan")}.inMemory(t))
	if f == nil || f.reason != Secret || !strings.Contains(f.detail, `"release" in it holds a saved plan`) {
		t.Errorf("with a plan the finding is %+v", f)
	}
	key := privateKeys(t)["PKCS#8"]
	for rule, files := range map[string]moduleFiles{
		"ignored":                  {"main.tf": "", "a.pem": key, ".terraformignore": "*.pem"},
		"left out":                 {"main.tf": "", ".ssh/id_ed25519": key, "main.tf~": key},
		"far behind the beginning": {"main.tf": "", "a.bin": noise(inspectSize) + key},
	} {
		if _, f := readModule(files.inMemory(t)); f != nil {
			t.Errorf("with one that is %s the finding is %+v", rule, f)
		}
	}
}

// readModule reads the folder module as a scan does.
func readModule(part Part) (*archive, *finding) {
	a := &archive{part: part, path: "module"}
	if a.folder, a.leftOut, a.bad = part.walkFolder("module", unwatched); a.bad != nil {
		return a, a.bad
	}
	d, err := readFolder(context.Background(), a)
	if err != nil {
		return a, asFinding(err)
	}
	a.digest = d
	return a, nil
}

// An editor's lock is a symlink to nothing, and whatever is left out may be.
func TestWhatIsLeftOutIsNotLookedAt(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "module/modules/a"), 0o755)
	for _, name := range []string{"module/main.tf", "module/modules/a/main.tf", "module/.terraformignore"} {
		content := ""
		if strings.HasSuffix(name, "ignore") {
			content = "/local\n"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"module/.#main.tf": "me@host.12345:1767322800", "module/modules/a/.#main.tf": "me@host.12345:1767322800",
		"module/.terraform": "/var/cache/terraform", "module/terraform.tfstate": "loop", "module/.env": "../../../secrets", "module/local": "/home/me/local",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	files, left, f := Part{Fs: rootFs{root}, Dir: "."}.walkFolder("module", unwatched)
	if f != nil || len(files) != 3 || left.total != 6 {
		t.Errorf("packed is %+v, left out is %s, %v", files, left, f)
	}
}

// countingFs counts what is opened.
type countingFs struct {
	afero.Fs
	opened *int
}

func (c countingFs) Open(name string) (afero.File, error) {
	*c.opened++
	return c.Fs.Open(name)
}

// A range opens the files it reads and no others, whether the folder has been
// read by this scan, or is known from one before or from before a restart.
func TestARangeOfAPackingOpensWhatItReads(t *testing.T) {
	files := moduleFiles{"modules/acme/vpc/aws/1.0.0/run": "#!/bin/sh\n"}
	for i := range 300 {
		files[fmt.Sprintf("modules/acme/vpc/aws/1.0.0/%03d.tf", i)] = noise(1000 + i)
	}
	opened := 0
	fsys := countingFs{afero.NewMemMapFs(), &opened}
	files.on(t, fsys, long, 0o644)
	o := Options{Open: func() (Tree, error) {
		empty := Part{Fs: afero.NewMemMapFs(), Dir: "."}
		return Tree{Providers: empty, Keys: empty, Modules: Part{Fs: fsys, Dir: "module/modules"}}, nil
	}}
	address := address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	first, again := &scanner{options: o}, &scanner{options: o}
	var want []byte
	for _, test := range []struct {
		rule     string
		scanner  *scanner
		recalled int
	}{{"read", first, 0}, {"known", first, 1}, {"known from before a restart", again, 1}} {
		if test.scanner == again {
			if err := again.memo.decode(first.memo.encode("a tree"), "a tree"); err != nil {
				t.Fatal(err)
			}
		}
		s, err := test.scanner.scan(t.Context(), nil, nil)
		if err != nil || s.Recalled != test.recalled || s.Module(address) == nil {
			t.Fatalf("%s: %v, %+v", test.rule, err, s)
		}
		f := s.Module(address).Versions[0].Archive
		whole, err := s.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(whole)
		whole.Close()
		if err != nil || sha256Of(all) != f.SHA256 || want != nil && !bytes.Equal(all, want) {
			t.Fatalf("%s: the bytes differ, %v", test.rule, err)
		}
		if want = all; modesOf(t, all)["run"] != 0o755 {
			t.Errorf("%s: the script is not executable", test.rule)
		}

		opened = 0
		r, err := s.OpenRange(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Seek(0, io.SeekEnd); err != nil || opened != 0 {
			t.Errorf("%s: to open it and ask for its size opened %d files, %v", test.rule, opened, err)
		}
		p := make([]byte, 1)
		if _, err := r.(io.ReaderAt).ReadAt(p, f.Size/2); err != nil || p[0] != all[f.Size/2] || opened > 1 {
			t.Errorf("%s: to read a byte opened %d files, %v", test.rule, opened, err)
		}
		r.Close()
	}
	t.Run("a file in the range has changed", func(t *testing.T) {
		s, err := first.scan(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := s.Module(address).Versions[0].Archive
		name := "module/modules/acme/vpc/aws/1.0.0/000.tf"
		fsys.Chtimes(name, long.Add(time.Second), long.Add(time.Second))
		r, err := s.OpenRange(f)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		at := r.(io.ReaderAt)
		if _, err := at.ReadAt(make([]byte, 1), gzipHeaderSize+blockHeaderSize+tarBlock); err != ErrChanged {
			t.Errorf("in it the error is %v", err)
		}
		if _, err := at.ReadAt(make([]byte, 1), f.Size/2); err != nil {
			t.Errorf("in another the error is %v", err)
		}
		if _, err := s.Open(f); err != ErrChanged {
			t.Errorf("all of it is %v", err)
		}
	})
}
