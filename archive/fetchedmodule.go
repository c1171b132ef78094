package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
)

// A module that was fetched from its origin keeps its paths: it may lie in a folder of its
// package, beside other modules that it calls. The package records that folder, since the
// location that a registry answers with names it too.

// folderRecord is the record in a package's PAX global header that names the folder of the
// module, or rootFolder for the package's root. With it, clients need not guess from a
// package's only folder. PAX has a vendor's name in capitals before the dot.
const (
	folderRecord = "TERRAFORM.module"
	rootFolder   = "."
)

// commitRecord is the record where git archive puts the commit.
const commitRecord = "comment"

// maxFetched is how many bytes the files of a fetched module may have. Its symlinks can lead
// to the same large file thousands of times, and each of them is packed.
const maxFetched = 4 << 30

// A FetchedModule is a folder on the local disk with the unchanged files of a module from
// its origin.
type FetchedModule struct {
	// Dir has the files.
	Dir string

	// Commit of the repository, in hexadecimal. Empty if it is unknown.
	Commit string

	// Folder in Dir in which the module lies, with slashes; empty for Dir itself.
	Folder string

	// Published means that this registry is where the module is published: what PackModule leaves
	// out is left out, also by the .terraformignore in Folder. Clients of an origin get everything.
	Published bool
}

// Pack writes the package of the module: all files but git's, at the same paths. Unlike
// PackModule it leaves nothing else out, unless the module is Published. Symlinks are followed. The same files result in the same bytes. The error is a *PackageError if the
// files cannot be packed, and otherwise an error of ctx, of the folder, or of writing.
func (m FetchedModule) Pack(ctx context.Context, to io.Writer) error {
	root, err := os.OpenRoot(m.Dir)
	if err != nil {
		return tree.WithoutPath(err)
	}
	defer root.Close()
	path, err := filepath.Abs(m.Dir)
	if err != nil {
		return err
	}
	return m.pack(ctx, disk.NewPart(root, path), to)
}

func (m FetchedModule) pack(ctx context.Context, part tree.Part, to io.Writer) error {
	var rules packingRules = fetchedRules{}
	if m.Published {
		rules = &publishedRules{folder: m.Folder}
	}
	files, bad := walkPacked(part, ".", rules, func(string) {})
	if bad != nil {
		return packingError(bad)
	}
	left := int64(maxFetched)
	for _, file := range files {
		if left -= file.Size; left < 0 {
			return asPackageError(tree.Findingf(tree.TooLarge, "its files have more than %d bytes, with those that symlinks lead to", int64(maxFetched)))
		}
	}
	unchecked := func(*File, []byte, io.Reader) error { return nil }
	if err := inspectFiles(ctx, part, files, unchecked); err != nil {
		return packingError(err)
	}
	about, err := m.globalHeader()
	if err != nil {
		return err
	}
	k, err := packAfter(about, files)
	if err != nil {
		return asPackageError(err)
	}
	r := &packingReader{packing: k, folderReader: folderReader{part: part}, sums: newContentSums(len(files))}
	defer r.Close()
	_, err = io.Copy(to, tree.WithContext(ctx, io.NewSectionReader(r, 0, k.size())))
	return err
}

// packingError returns a *PackageError for a finding about the files. A fault that may be over
// a moment later says nothing about them. Unlike for AsModuleError, a lasting one does: the
// files are the module's, and nobody mends them here.
func packingError(err error) error {
	var bad *tree.Finding
	switch {
	case !errors.As(err, &bad):
		return err
	case bad.Reason == tree.BeingWritten:
		return tree.ErrChanged
	case bad.Passes():
		return fmt.Errorf("%w: %s", tree.ErrNotWritable, bad.Detail)
	}
	return asPackageError(bad)
}

// globalHeader is the beginning of the package.
func (m FetchedModule) globalHeader() ([]byte, error) {
	records := map[string]string{folderRecord: cmp.Or(m.Folder, rootFolder)}
	if m.Commit != "" {
		records[commitRecord] = m.Commit
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: records})
	if err == nil {
		err = w.Flush()
	}
	return b.Bytes(), err
}

// fetchedRules leave out git's own files, in the repository and in each submodule, and
// dangling symlinks: a repository may have links to files that appear when it is built,
// which no module needs.
type fetchedRules struct{}

func (fetchedRules) begin(tree.Part, []tree.Entry) *tree.Finding { return nil }

func (fetchedRules) leavesOut(e tree.Entry, _ string, _ folderMatch) (leftOut bool, within folderMatch, bad *tree.Finding) {
	return e.Name == ".git" || e.Gone, folderMatch{}, nil
}

// publishedRules leave out what fetchedRules and moduleRules do. The .terraformignore is the one of the
// module, and is about the files in its folder.
type publishedRules struct {
	folder string
	moduleRules
}

func (r *publishedRules) begin(p tree.Part, entries []tree.Entry) *tree.Finding {
	if r.folder == "" {
		return r.moduleRules.begin(p, entries)
	}
	entries, err := p.Entries(r.folder)
	if err != nil {
		return tree.AsFinding(err)
	}
	return r.moduleRules.begin(p, entries)
}

func (r *publishedRules) leavesOut(e tree.Entry, name string, in folderMatch) (leftOut bool, within folderMatch, bad *tree.Finding) {
	if e.Gone {
		return true, folderMatch{}, nil
	}
	relative, inside := name, true
	if r.folder != "" {
		relative, inside = strings.CutPrefix(name, r.folder+"/")
	}
	if !inside {
		return IsLeftOut(e.Name), folderMatch{}, nil
	}
	return r.moduleRules.leavesOut(e, relative, in)
}

// useFolder takes the folder of the module that the package records; empty if it records
// none.
func (m *moduleFinder) useFolder(folder string) {
	if m.recorded = folder; folder != rootFolder {
		m.docs.Folder = folder
	}
}

// recordedFolder returns the recorded folder if clients find a module there.
func (m *moduleFinder) recordedFolder() (folder string, bad *tree.Finding) {
	if m.recorded == rootFolder {
		if !m.inFolder {
			return "", noConfiguration()
		}
		return "", nil
	}
	safe := fs.ValidPath(m.recorded)
	for segment := range strings.SplitSeq(m.recorded, "/") {
		safe = safe && safeInURL(segment)
	}
	switch {
	case !safe:
		return "", tree.Findingf(tree.NoConfiguration, "its header has %.200q for the folder of the module, which clients cannot find by a URL: pack it without that header, the module at the archive's root", m.recorded)
	case !m.inFolder:
		return "", tree.Findingf(tree.NoConfiguration, "its header says that the module is in %q, where there is no .tf file: pack it without that header, the module at the archive's root", m.recorded)
	}
	return m.recorded, nil
}
