package archive

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A module may lie in the tree as a folder named after its version. It is offered as a
// .tar.gz computed from the files in the folder: see packing.

// moduleRules leave out of a module's package the files that no module needs and the files
// that its .terraformignore names.
type moduleRules struct {
	ignored *ignoreRules
	leftOut nameList
}

func (r *moduleRules) begin(p tree.Part, entries []tree.Entry) *tree.Finding {
	i := slices.IndexFunc(entries, func(e tree.Entry) bool { return e.Name == ignoreName })
	if i < 0 {
		return nil
	}
	if bad := entries[i].Bad; bad != nil {
		return badIgnoreRules(bad)
	}
	var err error
	if r.ignored, err = readIgnoreRules(p, entries[i].Path()); err != nil {
		return badIgnoreRules(err)
	}
	return nil
}

func (r *moduleRules) leavesOut(e tree.Entry, name string, in folderMatch) (leftOut bool, within folderMatch, bad *tree.Finding) {
	var err error
	switch {
	case IsLeftOut(e.Name): // even a dangling symlink
		leftOut = true
	case e.Bad == nil && e.Info.IsDir():
		leftOut, within, err = r.ignored.ignoresFolder(name, in)
	default:
		leftOut, err = r.ignored.ignoresFile(name, in)
	}
	if err != nil {
		return false, within, badIgnoreRules(err)
	}
	if leftOut {
		r.leftOut.add(name)
	}
	return leftOut, within, nil
}

// A ModuleFolder is a module that lies in a tree as a folder.
type ModuleFolder struct {
	part      tree.Part
	files     []File
	leftOut   *nameList // the names that are not among the files
	names     packageNames
	subfolder string   // the only folder in it, if the module lies there
	packing   *packing // nil until it is needed
}

// Stamp changes whenever a file in the folder may have changed.
func (m *ModuleFolder) Stamp() tree.Stamp { return stampFolder(m.files) }

// FirstFile returns the path of a file in the folder; empty if there is none, or no folder.
func (m *ModuleFolder) FirstFile() string {
	if m == nil {
		return ""
	}
	return firstFile(m.files)
}

// Folder returns the folder of the package in which the module lies; empty for its root.
func (m *ModuleFolder) Folder() string { return m.subfolder }

// LeftOut names in short the files in the folder that are not in the package; empty if there
// are none.
func (m *ModuleFolder) LeftOut() string { return m.leftOut.String() }

// Recall sets the results of an earlier reading of the folder.
func (m *ModuleFolder) Recall(d Digest) {
	executables, _ := splitModuleContent(d.Content)
	recallExecutables(m.files, executables)
}

// Pack returns the package of a folder that has been read. It returns nil if the folder
// cannot be packed.
func (m *ModuleFolder) Pack(d Digest) Packed {
	if m.packing == nil {
		if k, err := packFolder(m.files); err == nil { // files as they were read
			k.checksum = d.Checksum
			m.packing = k
		}
	}
	if m.packing == nil {
		return nil
	}
	return m.packing
}

// walkFolder finds the files of a module folder to pack, ordered by their path in the
// archive, and the names left out. It calls visit for each folder before reading it.
func walkFolder(p tree.Part, dir string, visit func(dir string)) (files []File, leftOut *nameList, bad *tree.Finding) {
	var rules moduleRules
	files, bad = walkPacked(p, dir, &rules, visit)
	disregardUniformModes(files)
	return files, &rules.leftOut, bad
}

// FindModule finds the files of a module folder and the module among them, or returns why it
// is withheld. It calls visit for each folder before reading it.
func FindModule(part tree.Part, dir string, visit func(dir string)) (m *ModuleFolder, bad *tree.Finding) {
	m = &ModuleFolder{part: part}
	if m.files, m.leftOut, bad = walkFolder(part, dir, visit); bad != nil {
		return m, bad
	}
	var finder moduleFinder
	for _, f := range m.files {
		finder.add(f.Name)
	}
	m.subfolder, bad = finder.module()
	m.names = finder.names()
	return m, bad
}

// disregardUniformModes disregards the executable bits if every file has them, as on file
// systems without modes, such as on Windows or a USB stick.
//
// Whether a file is executable in the package depends on its content alone where the file
// system or version control keeps no modes, and on its mode as well where they do. A folder
// has the same package on all machines of one kind, and on machines of both kinds if its
// executables begin like a script or a program.
func disregardUniformModes(files []File) {
	if slices.ContainsFunc(files, func(f File) bool { return !f.byMode }) {
		return
	}
	for i := range files {
		files[i].byMode = false
	}
}

// Read reads the beginning of each file of the folder, and then the whole package. It calls
// wait before each read of the package. The error is a *tree.Finding if the folder is at
// fault.
func (m *ModuleFolder) Read(ctx context.Context, wait func()) (Digest, error) {
	docs := moduledoc.Collector{Short: true}
	err := inspectFiles(ctx, m.part, m.files, func(file *File, start []byte, content io.Reader) error {
		if err := docs.Add(file.Name, content); err != nil {
			return err
		}
		return refuseSecret(file, start)
	})
	if err != nil {
		return Digest{}, changedWhileRead(err)
	}
	k, err := packFolder(m.files)
	if err != nil {
		return Digest{}, err
	}
	r := &packingReader{packing: k, folderReader: folderReader{part: m.part}, sums: newContentSums(len(k.files))}
	defer r.Close()
	sum, err := tree.DigestFile(ctx, io.NewSectionReader(pacedReaderAt{r, wait}, 0, k.size()))
	if err != nil {
		return Digest{}, changedWhileRead(err)
	}
	m.packing = k
	content := encodeModuleContent(encodeExecutables(m.files), docs.Summary(m.subfolder))
	return Digest{SHA256: sum, FileHashes: r.sums.hashes(k.files), Size: k.size(), Checksum: k.checksum, Content: content}, nil
}

// inspectFiles sets which files are executable, and calls inspect with each file: with its
// beginning, and with its content from the start on.
func inspectFiles(ctx context.Context, p tree.Part, files []File, inspect func(file *File, start []byte, content io.Reader) error) error {
	buffer := make([]byte, inspectSize)
	for i := range files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading ended: %w", err)
		}
		if err := files[i].inspect(p, buffer, inspect); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) inspect(p tree.Part, buffer []byte, inspect func(file *File, start []byte, content io.Reader) error) error {
	opened, err := p.OpenUnchanged(f.Path, f.Stamp())
	if err != nil {
		return err
	}
	defer opened.Close()
	start, err := readStart(opened, buffer)
	if err != nil {
		return err
	}
	f.executable = f.byMode || isExecutable(start)
	return inspect(f, start, io.MultiReader(bytes.NewReader(start), opened))
}

// refuseSecret refuses a file that begins like a secret.
func refuseSecret(file *File, start []byte) error {
	if kind := secretByContent(start, file.Size); kind != "" {
		return tree.Findingf(tree.Secret, "%q in it holds %s, which everyone who downloads the module would get: remove it, or name it in the folder's %s", file.Name, kind, ignoreName)
	}
	return nil
}

// encodeExecutables returns one bit for each file, in the form that the memo keeps. With it,
// a folder is packed again without reading the beginning of every file.
func encodeExecutables(files []File) []byte {
	bits := make([]byte, (len(files)+7)/8)
	for i, f := range files {
		if f.executable {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return bits
}

// recallExecutables sets the bits that encodeExecutables returned.
func recallExecutables(files []File, bits []byte) {
	for i := range files {
		files[i].executable = i/8 < len(bits) && bits[i/8]&(1<<(i%8)) != 0
	}
}
