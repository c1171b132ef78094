package moduledoc

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Collector takes the files of a package, in any order and in one pass, and keeps the
// files that describe its modules, up to a limit. The zero value is ready for use.
type Collector struct {
	// Short makes it keep only the files that a Summary needs.
	Short bool

	// Folder of the package in which the module lies, if it is known beforehand. Empty: the
	// module lies at the root of the package or in the only folder there, and all files must
	// be seen to know which. Until then both are collected.
	Folder string

	root, inFolder collection
	top            string // the first folder with a file in it
}

// A collection has the files kept of a package, with paths relative to one folder.
type collection struct {
	modules map[string]*moduleFiles // by path
	license map[string][]byte       // by name

	files, configuration, readmes int            // number of files, and bytes
	judging                       int            // the effort spent so far on finding files that clients refuse
	tooMany                       map[string]int // modules left out, by their folder
}

// moduleFiles are the files of one module.
type moduleFiles struct {
	configuration map[string][]byte // by name
	readmes       map[string]Readme // by name
	problems      []Problem
	refused       map[string]*Problem // of configuration, by name; nil for files that clients accept
}

// Add takes a file of the package. It reads content only if the file is wanted, up to a
// limit. The error is an error of reading.
func (c *Collector) Add(name string, content io.Reader) error {
	into, p := c.place(name)
	switch into {
	case nil:
		return nil
	case &c.inFolder:
		if c.top == "" {
			c.top, _, _ = strings.Cut(path.Clean(name), "/")
		}
	case &c.root:
		if p.kind == configuration && p.module == "" {
			c.inFolder = collection{} // the module is at the root
		}
	}
	return into.add(p, content, c.Short)
}

// Wants reports whether Add would read a file of that name.
func (c *Collector) Wants(name string) bool {
	into, _ := c.place(name)
	return into != nil
}

// place returns the place of a file, or nil if the file is not wanted.
func (c *Collector) place(name string) (*collection, place) {
	name = path.Clean(name)
	if len(name) > maxName || !fs.ValidPath(name) || !isPrintable(name) {
		return nil, place{}
	}
	p, ok := placeOf(name)
	if c.Folder != "" {
		if rest, in := strings.CutPrefix(name, c.Folder+"/"); in {
			p, ok = placeOf(rest)
			return c.inFolder.ifWanted(ok), p
		}
		return c.root.ifWanted(ok && p.kind == license), p
	}
	if ok {
		return &c.root, p
	}
	top, rest, nested := strings.Cut(name, "/")
	if !nested || strings.HasPrefix(top, ".") || top == "__MACOSX" || c.top != "" && c.top != top || c.root.isModule("") {
		return nil, place{}
	}
	p, ok = placeOf(rest)
	return c.inFolder.ifWanted(ok), p
}

// ifWanted returns the collection, or nil if it does not want the file.
func (c *collection) ifWanted(wanted bool) *collection {
	if !wanted {
		return nil
	}
	return c
}

// Package describes the collected files. folder is the Folder, or the only folder at the
// root of the package if the module lies there; empty for the root itself.
func (c *Collector) Package(folder string) *Package {
	from := &c.root
	if folder != "" && (folder == c.Folder || folder == c.top) {
		from = &c.inFolder
	}
	p := &Package{License: recognizeLicense(from.license)}
	if p.License == "" {
		p.License = recognizeLicense(c.root.license) // the licence may lie beside the folder
	}
	for _, at := range slices.Sorted(maps.Keys(from.modules)) {
		files := from.modules[at]
		switch {
		case at == "":
			p.Root = files.read(at)
		case len(files.configuration) == 0 && len(files.problems) == 0:
			// a folder of other things with a README
		case strings.HasPrefix(at, "modules/"):
			p.Submodules = append(p.Submodules, files.read(at))
		default:
			p.Examples = append(p.Examples, files.read(at))
		}
	}
	p.Refused = from.refused()
	for _, folder := range slices.Sorted(maps.Keys(from.tooMany)) {
		p.Root.Problems = append(p.Root.Problems, Problem{File: folder, Text: fmt.Sprintf("Only the first %d folders in it are read.", maxModules)})
	}
	return p
}

// refused returns the files that clients refuse, by path.
func (c *collection) refused() (found []Problem) {
	for _, at := range slices.Sorted(maps.Keys(c.modules)) {
		files := c.modules[at].refused
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if p := files[name]; p != nil {
				found = append(found, *p)
			}
		}
	}
	return found
}

// Summary returns the short form of Package.
func (c *Collector) Summary(folder string) Summary { return c.Package(folder).Summary() }

// A place says where a file lies in a package, and of which kind it is.
type place struct {
	module string // the path of the module
	name   string // of the file in it
	kind   kind
}

type kind int

const (
	configuration kind = iota
	readme
	license
)

// placeOf returns the place of a wanted file.
func placeOf(name string) (p place, ok bool) {
	dir, base := path.Split(name)
	p = place{module: strings.TrimSuffix(dir, "/"), name: base}
	if p.module != "" {
		folder, module, nested := strings.Cut(p.module, "/")
		if !nested || folder != "modules" && folder != "examples" || strings.Contains(module, "/") || strings.HasPrefix(module, ".") {
			return p, false
		}
	}
	switch {
	case IsConfiguration(base):
		p.kind = configuration
	case readmeRank(base) >= 0:
		p.kind = readme
	case p.module == "" && isLicense(base):
		p.kind = license
	default:
		return p, false
	}
	return p, true
}

// IsConfiguration reports whether clients read a file of this name as configuration.
// They skip the files that editors and operating systems leave behind.
func IsConfiguration(name string) bool {
	name = path.Base(name)
	return !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "#") && configurationSuffix(name) != ""
}

// configurationSuffix returns the suffix of a configuration file's name, or "" for others.
func configurationSuffix(name string) string {
	for _, suffix := range []string{".tf", ".tofu", ".tf.json", ".tofu.json"} {
		if strings.HasSuffix(name, suffix) {
			return suffix
		}
	}
	return ""
}

// isModule reports whether there is configuration at a path.
func (c *collection) isModule(at string) bool {
	m := c.modules[at]
	return m != nil && len(m.configuration) > 0
}

// module returns the files of a module, or nil if there are too many modules.
func (c *collection) module(at string) *moduleFiles {
	m := c.modules[at]
	if m != nil {
		return m
	}
	if folder, _, nested := strings.Cut(at, "/"); nested {
		n := 0
		for other := range c.modules {
			if strings.HasPrefix(other, folder+"/") {
				n++
			}
		}
		if n >= maxModules {
			if c.tooMany == nil {
				c.tooMany = make(map[string]int)
			}
			c.tooMany[folder]++
			return nil
		}
	}
	if c.modules == nil {
		c.modules = make(map[string]*moduleFiles)
	}
	m = &moduleFiles{configuration: make(map[string][]byte), readmes: make(map[string]Readme)}
	c.modules[strings.Clone(at)] = m
	return m
}

// add reads a file. A later file of the same name replaces it, as when clients unpack the
// package.
func (c *collection) add(p place, content io.Reader, short bool) error {
	if p.kind == license {
		return c.addLicense(p.name, content)
	}
	m := c.module(p.module)
	if m == nil {
		return nil
	}
	name := strings.Clone(p.name)
	switch {
	case p.kind == readme && short && strings.HasPrefix(p.module, "examples/"): // READMEs of examples are only counted
		return nil
	case p.kind == readme:
		return c.addReadme(m, name, content, short)
	}
	if err := c.addConfiguration(m, p, content); err != nil {
		return err
	}
	c.judge(m, p)
	if short && strings.HasPrefix(p.module, "examples/") {
		m.configuration[name] = nil
	}
	return nil
}

// judge finds out whether clients refuse an added file.
func (c *collection) judge(m *moduleFiles, p place) {
	left := maxEffort - c.judging
	found := refusal(path.Join(p.module, p.name), m.configuration[p.name], &left)
	c.judging = maxEffort - left
	if m.refused == nil {
		m.refused = make(map[string]*Problem)
	}
	m.refused[strings.Clone(p.name)] = found
}

func (c *collection) addConfiguration(m *moduleFiles, p place, content io.Reader) error {
	if old, twice := m.configuration[p.name]; twice {
		c.configuration -= len(old)
		delete(m.configuration, p.name)
		c.files--
	}
	leaveOut := func(format string, arguments ...any) {
		m.configuration[p.name] = nil // the file exists, but its content is not known
		m.problem(path.Join(p.module, p.name), 0, format, arguments...)
	}
	if c.files++; c.files > maxFiles {
		if c.files == maxFiles+1 {
			leaveOut("The package has more than %d files of configuration: this one and those after it are left out.", maxFiles)
		}
		return nil
	}
	b, err := readUpTo(content, maxFile+1)
	switch {
	case err != nil:
		return err
	case len(b) > maxFile:
		leaveOut("The file is larger than %d bytes and is left out.", maxFile)
	case c.configuration+len(b) > maxConfiguration:
		leaveOut("The package has more than %d bytes of configuration: this file is left out.", maxConfiguration)
	default:
		c.configuration += len(b)
		m.configuration[p.name] = b
	}
	return nil
}

func (c *collection) addReadme(m *moduleFiles, name string, content io.Reader, short bool) error {
	limit := maxReadme
	if short {
		limit = maxIntroduction
	}
	limit = min(limit, maxReadmes-c.readmes)
	b, err := readUpTo(content, limit+1)
	if err != nil {
		return err
	}
	r := newReadme(name, b, limit)
	c.readmes += len(r.Content) - len(m.readmes[name].Content)
	m.readmes[name] = r
	return nil
}

func (c *collection) addLicense(name string, content io.Reader) error {
	if len(c.license) >= 10 {
		return nil
	}
	b, err := readUpTo(content, maxLicense)
	if err != nil {
		return err
	}
	if c.license == nil {
		c.license = make(map[string][]byte)
	}
	c.license[strings.Clone(name)] = b
	return nil
}

// problem notes a part that could not be read, unless there are too many problems.
func (m *moduleFiles) problem(file string, line int, format string, arguments ...any) {
	if len(m.problems) < maxProblems {
		m.problems = append(m.problems, Problem{File: file, Line: line, Text: fmt.Sprintf(format, arguments...)})
	}
}

func readUpTo(r io.Reader, limit int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, int64(max(limit, 0))))
}

// isPrintable reports whether a name can be displayed.
func isPrintable(name string) bool {
	return utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
