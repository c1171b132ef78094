package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// modesOf returns the modes of the files in a package.
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
			part := disk.NewPart(root, "")
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

// A folder with a secret anywhere in it, under any name, is withheld, and the
// finding names the file.
func TestFoldersWithASecret(t *testing.T) {
	for rule, content := range privateKeys(t) {
		_, f := readModule(moduleFiles{"main.tf": "", "certs/server.txt": content}.inMemory(t))
		if f == nil || f.Reason != tree.Secret || !strings.Contains(f.Detail, `"certs/server.txt" in it holds a private key`) || !strings.Contains(f.Detail, ".terraformignore") {
			t.Errorf("with %s the finding is %+v", rule, f)
		}
	}
	_, f := readModule(moduleFiles{"main.tf": "", "release": testdata(t, "saved-plan")}.inMemory(t))
	if f == nil || f.Reason != tree.Secret || !strings.Contains(f.Detail, `"release" in it holds a saved plan`) {
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
func readModule(part tree.Part) (m *ModuleFolder, bad *tree.Finding) {
	m, _, err := readFolder(part)
	if err != nil {
		return m, tree.AsFinding(err)
	}
	return m, nil
}

func readFolder(part tree.Part) (*ModuleFolder, Digest, error) {
	m := &ModuleFolder{part: part}
	var bad *tree.Finding
	if m.files, m.leftOut, bad = walkFolder(part, "module", unwatched); bad != nil {
		return m, Digest{}, bad
	}
	d, err := m.Read(context.Background(), unpaced)
	return m, d, err
}

// A packedModule is the package of a folder as the index offers it.
type packedModule struct {
	Size   int64
	SHA256 wire.SHA256
	packed Packed
}

func packed(t testing.TB, part tree.Part) packedModule {
	t.Helper()
	m, d, err := readFolder(part)
	if err != nil {
		t.Fatal(err)
	}
	return packedModule{d.Size, d.SHA256, m.Pack(d)}
}

// openPacking opens the package like an answer that sends all of it.
func openPacking(part tree.Part, m packedModule) (PackedReader, error) {
	return OpenPacked(m.packed, part, m.Size)
}

func content(t testing.TB, part tree.Part, f packedModule) []byte {
	t.Helper()
	r, err := openPacking(part, f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The bytes are fixed forever, since clients and other tools' lock files record their
// digest. Neither another Go version nor another release may change them.
func TestPackedModuleBytesNeverChange(t *testing.T) {
	f := packed(t, aModule.inMemory(t))
	if got, want := f.SHA256.String(), "c8e9e2a06907aa2fc81d38a93c8b6a149c4145a5ac8ad72768d83c9496b1b7e8"; got != want {
		t.Errorf("the sha256 is %s, not %s", got, want)
	}
}

func TestPackedModuleBytesAreTheSameEverywhere(t *testing.T) {
	part := aModule.inMemory(t)
	f := packed(t, part)
	want := content(t, part, f)
	if wire.SHA256Of(want) != f.SHA256 || int64(len(want)) != f.Size {
		t.Fatalf("what is read is not what was digested")
	}
	untidy := maps.Clone(aModule)
	for _, name := range []string{".git/config", "modules/a/.git", ".terraform/modules/modules.json", "main.tf~", "x.tmp", "modules/.y.part"} {
		untidy[name] = "x"
	}
	for rule, part := range map[string]tree.Part{
		"read again":                        part,
		"on a disk":                         aModule.on(t, afero.NewBasePathFs(afero.NewOsFs(), t.TempDir()), time.Now(), 0o600),
		"in another folder with other bits": aModule.on(t, afero.NewBasePathFs(afero.NewOsFs(), t.TempDir()), long.Add(time.Hour), 0o777),
		"with what is no part of a module":  untidy.inMemory(t),
	} {
		t.Run(rule, func(t *testing.T) {
			if got := content(t, part, packed(t, part)); !bytes.Equal(got, want) {
				t.Error("the bytes differ")
			}
		})
	}
}

func TestPackedModuleCanBeUnpacked(t *testing.T) {
	part := aModule.inMemory(t)
	job := content(t, part, packed(t, part))

	t.Run("by Go", func(t *testing.T) {
		z, err := gzip.NewReader(bytes.NewReader(job))
		if err != nil {
			t.Fatal(err)
		}
		got := make(moduleFiles)
		var names []string
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			got[h.Name] = string(b)
			names = append(names, h.Name)
			want := int64(0o644)
			if strings.HasPrefix(string(b), "#!") {
				want = 0o755
			}
			if h.Mode != want || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(time.Unix(0, 0)) {
				t.Errorf("%s has %o %d:%d %q %s", h.Name, h.Mode, h.Uid, h.Gid, h.Uname, h.ModTime)
			}
		}
		if !slices.IsSorted(names) {
			t.Errorf("the order is %q", names)
		}
		if _, err := io.Copy(io.Discard, z); err != nil {
			t.Errorf("gzip's trailer: %v", err)
		}
		if !maps.Equal(got, aModule.clean()) {
			t.Errorf("unpacked is %q", slices.Sorted(maps.Keys(got)))
		}
		if _, err := digestModule(t.Context(), fileOf(job), int64(len(job)), "tar.gz"); err != nil {
			t.Errorf("a registry that is given the archive says: %v", err)
		}
	})
	t.Run("by tar", func(t *testing.T) {
		dir := t.TempDir()
		c := exec.Command("tar", "-xzf", "-", "-C", dir)
		c.Stdin = bytes.NewReader(job)
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v\n%s", err, out)
		}
		for name, want := range aModule.clean() {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || string(b) != want {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Deflate's blocks have 65535 bytes, a tar's blocks 512.
func TestPackedFileSizesAtBlockBoundaries(t *testing.T) {
	sizes := []int{0, 1, 511, 512, 513, 65535 - 2048, 65535 - 2047, 65535 - 1536, 65535 - 1535, 65534, 65535, 65536, 2*65535 - 1024, 2 * 65535, 3*65535 + 1}
	if !testing.Short() {
		sizes = append(sizes, 512*65535-2048) // makes the tar end with a block
	}
	for _, size := range sizes {
		want := noise(size)
		part := moduleFiles{"a.bin": want, "b.tf": ""}.inMemory(t) // reading noise as configuration would take long
		f := packed(t, part)
		if size == 512*65535-2048 && f.packed.(*packing).tar%blockSize != 0 {
			t.Errorf("the tar has %d bytes", f.packed.(*packing).tar)
		}
		b := content(t, part, f)
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(z)
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("of %d bytes %d are unpacked, %v", size, len(got), err)
		}
		if _, err := io.Copy(io.Discard, z); err != nil {
			t.Errorf("with %d bytes gzip's trailer: %v", size, err)
		}
		if int64(len(b)) != f.Size {
			t.Errorf("with %d bytes the size is %d, not %d", size, len(b), f.Size)
		}
	}
}

func TestPackedModuleCanBeReadAtAnyOffset(t *testing.T) {
	part := aModule.inMemory(t)
	f := packed(t, part)
	want := content(t, part, f)
	r, err := openPacking(part, f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	random := rand.New(rand.NewPCG(1, 2))
	at := r
	for range 2000 {
		from := random.Int64N(f.Size)
		p := make([]byte, min(random.Int64N(100_000), f.Size-from))
		if n, err := at.ReadAt(p, from); n != len(p) || err != nil && err != io.EOF || !bytes.Equal(p, want[from:from+int64(n)]) {
			t.Fatalf("%d bytes at %d: %d, %v", len(p), from, n, err)
		}
	}
	if end, err := r.Seek(0, io.SeekEnd); end != f.Size || err != nil {
		t.Errorf("the end is at %d, %v", end, err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("behind the end is %d, %v", n, err)
	}
	if _, err := r.Seek(-8, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || !bytes.Equal(rest, want[len(want)-8:]) {
		t.Errorf("the last bytes are %x, %v", rest, err)
	}
}
