package lockfile

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile limits the size of a configuration's file, in bytes. Generated files can be
// large.
const maxFile = 16 << 20

// folders gives access to the folders of a configuration or a package. Paths are clean,
// and have the form of the operating system.
type folders interface {
	// list returns the names of the files in a folder, in order. The error is
	// fs.ErrNotExist if there is no such folder.
	list(dir string) ([]string, error)

	// read returns the content of a file, which has at most maxFile bytes.
	read(name string) ([]byte, error)

	// file returns the path of a file in a folder.
	file(dir, name string) string

	// join returns the path of a local module that is called in a folder. ok is false
	// if clients refuse the call because the path leads out.
	join(dir, source string) (path string, ok bool)

	// shown returns the path of a file or a folder for messages.
	shown(name string) string
}

// disk has the configurations of users. Local modules may be anywhere.
type disk struct{}

func (disk) list(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (disk) read(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s: it is not a regular file of at most %d bytes", name, maxFile)
	}
	return os.ReadFile(name)
}

func (disk) file(dir, name string) string { return filepath.Join(dir, name) }

func (disk) join(dir, source string) (string, bool) {
	return filepath.Join(dir, filepath.FromSlash(source)), true
}

func (disk) shown(name string) string { return name }

// MaxPackageFile limits the size of a package's configuration file, in bytes.
const MaxPackageFile = 1 << 20

// Further limits for a package, whose author is not the user. HCL's parser is
// recursive, with some 10 KB of stack for each level, and a stack that overflows ends
// the process. So the number of characters that can nest is limited.
const (
	maxPackageBytes = 64 << 20 // of all files
	maxNesting      = 20_000   // characters of nesting in a file
	nesting         = "([{!-?"
)

// A Package has the configuration files of a version of a module. The zero value is
// empty.
type Package struct {
	// Name of the version in messages.
	Name string

	// Folder of the module; empty for the root.
	Folder string

	files map[string][]byte // by path
	bytes int
}

// Wants reports whether a package needs a file of this path.
func (p *Package) Wants(name string) bool {
	for extension, tofu := range moduleFiles {
		if strings.HasSuffix(name, extension) || strings.HasSuffix(name, tofu) {
			return true
		}
	}
	return false
}

// Add adds a file. If the file is too large, the error is meant for users.
func (p *Package) Add(name string, content []byte) error {
	name = path.Clean(name)
	if p.files == nil {
		p.files = make(map[string][]byte)
	}
	if p.bytes += len(content); p.bytes > maxPackageBytes {
		return fmt.Errorf("its configuration files are larger than %d bytes together", maxPackageBytes)
	}
	p.files[name] = content
	return nil
}

func (p *Package) list(dir string) (names []string, err error) {
	for name := range p.files {
		if path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	if len(names) == 0 && !p.has(dir) {
		return nil, fs.ErrNotExist
	}
	return names, nil
}

// has reports whether there is a file below a folder.
func (p *Package) has(dir string) bool {
	for name := range p.files {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return dir == "."
}

func (p *Package) read(name string) ([]byte, error) {
	content := p.files[name]
	if len(content) > MaxPackageFile {
		return nil, fmt.Errorf("%s: it is larger than %d bytes", p.shown(name), MaxPackageFile)
	}
	nested := 0
	for _, c := range content {
		if strings.IndexByte(nesting, c) >= 0 {
			nested++
		}
	}
	if nested > maxNesting {
		return nil, fmt.Errorf("%s: there is too much in it to be read", p.shown(name))
	}
	return content, nil
}

func (p *Package) file(dir, name string) string { return path.Join(dir, name) }

func (p *Package) join(dir, source string) (string, bool) {
	joined := path.Join(dir, source)
	return joined, joined != ".." && !strings.HasPrefix(joined, "../")
}

// shown returns the path in the form of a call's source.
func (p *Package) shown(name string) string {
	if name == "." {
		return p.Name
	}
	return p.Name + "//" + name
}

// submodules returns the folders of a package that have modules by convention.
func (p *Package) submodules() (dirs []string) {
	below := path.Join(p.Folder, "modules")
	for name := range p.files {
		if dir := path.Dir(name); path.Dir(dir) == below && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}
