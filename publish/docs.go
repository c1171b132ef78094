package publish

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Limits of documentation. The public registry shows a thousand pages of 500 kB.
const (
	maxDocFiles = 5000
	maxDocFile  = 8 << 20         // bytes
	maxDocTotal = 64 << 20        // bytes
	maxDocTar   = 2 * maxDocTotal // bytes, with headers, padding and what is left out
	maxDocDepth = 8
	maxDocName  = 200 // bytes, of each part of a path
)

// putDocs takes the documentation of a release. It replaces the documentation that is
// there, since no lock file has a hash of it.
func (p *Publisher) putDocs(ctx context.Context, files tree.Tree, f File, u Upload) (Result, error) {
	if u.Bodiless {
		return Result{}, ErrNothing // the digest of a published archive is not kept
	}
	s := stage{address: f.Address, version: f.Version, part: files.Providers}
	r, err := p.receive(ctx, s.part, f, u)
	if err != nil {
		return Result{}, err
	}
	defer s.part.RemoveIfEmpty(stagingPath())
	defer r.Discard()
	result, err := p.takeDocs(ctx, files, s, f, r)
	p.measure(s, u.Subject, r.size)
	if err == nil && result.Outcome != Waiting {
		p.awaitScan(ctx, f.Address) // unchanged pages may have been written a moment ago
	}
	return result, err
}

// takeDocs puts an archive of documentation into the stage, and its pages into the release if
// that is published. It must not wait for a client.
func (p *Publisher) takeDocs(ctx context.Context, folders tree.Tree, s stage, f File, r *received) (Result, error) {
	unlock, err := p.lock(ctx, s.part, s.lockName())
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	pages, err := readDocs(ctx, r, r.size, f.Name)
	if err != nil {
		return Result{}, err
	}
	ctx = context.WithoutCancel(ctx) // the client has sent everything
	present, err := p.presentRelease(folders, f.Address, f.Version)
	if err != nil {
		return Result{}, err
	}
	if present.exists && p.sameDocs(ctx, s.part, path.Join(present.folder, docsFolder), pages) {
		if err := s.removeAll(); err != nil { // other documentation that has failed on its way would replace it
			return Result{}, err
		}
		return f.unchanged(r.sum), nil
	}
	if err := s.stageDocs(ctx, f, r); err != nil {
		if c, readErr := s.read(); !present.exists && readErr == nil && c.empty() {
			s.removeAll()
		}
		return Result{}, err
	}
	if present.exists {
		if err := p.unpackDocs(ctx, s, f.Name, present.folder); err != nil {
			p.changed(f.Address) // some pages may be there all the same
			return Result{}, err
		}
		s.removeAll() // tidy removes what remains
		return f.added(r.sum), nil
	}
	c, err := p.read(ctx, folders, s, present)
	if err != nil {
		return Result{}, err
	}
	result := Result{Outcome: Waiting}
	result.Publication, err = c.describe(p.options.Staging)
	result.File, result.SHA256 = f.Name, r.sum.String()
	return result, err
}

// stageDocs keeps an archive of documentation in the stage, as the client sent it, in place of the
// one that is there. That goes last, since its publisher relies on it. Its pages are written into a
// release before the release is complete, so that both appear together, and into a published
// release in place of its own pages.
func (s stage) stageDocs(ctx context.Context, f File, r *received) error {
	if _, err := r.Rename(ctx, s.path(f.Name)); err != nil {
		return tree.StorageError(err)
	}
	for _, name := range docsArchives {
		if name == f.Name {
			continue
		}
		if err := s.part.Remove(s.path(name)); err != nil {
			return tree.StorageError(err)
		}
	}
	return nil
}

// docs returns the staged archive, or nil if there is none. If an interrupted stageDocs has
// left two, it is the one that came last.
func (s stage) docs() (last *tree.Entry, err error) {
	entries, err := s.part.Entries(s.path())
	for _, e := range entries {
		if e.IsFile() && slices.Contains(docsArchives, e.Name) && (last == nil || e.Info.ModTime().After(last.Info.ModTime())) {
			last = &e
		}
	}
	return last, err
}

// installDocs puts the staged documentation, if there is any, into the folder of a release.
func (p *Publisher) installDocs(ctx context.Context, s stage, release string) error {
	packed, err := s.docs()
	if err != nil || packed == nil {
		return err
	}
	return p.unpackDocs(ctx, s, packed.Name, release)
}

// unpackDocs replaces the documentation in the folder of a release by a staged archive. If it is
// interrupted, Run completes it.
func (p *Publisher) unpackDocs(ctx context.Context, s stage, name, release string) error {
	packed, size, err := s.copyDocs(ctx, name)
	if err != nil {
		return tree.StorageError(err)
	}
	defer packed.Discard()
	pages, err := readDocs(ctx, packed, size, name)
	if err != nil {
		return err
	}
	p.unpacking.Lock()
	defer p.unpacking.Unlock()
	return s.part.ReplaceFolder(ctx, pages.files(ctx), path.Join(release, docsFolder), s.path(docsFolder))
}

// copyDocs copies a staged archive to a temporary file, which is read in many small parts, each of which
// would be a request to a bucket.
func (s stage) copyDocs(ctx context.Context, name string) (t tree.TemporaryFile, size int64, err error) {
	f, _, err := s.part.Open(s.path(name))
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if t, err = s.part.NewTemporary(ctx, stagingPath(name)); err != nil {
		return nil, 0, err
	}
	if size, err = io.Copy(t, tree.WithContext(ctx, f)); err != nil {
		t.Discard()
		return nil, 0, err
	}
	return t, size, nil
}

// docs are the files of an archive of documentation, which are read from it again when they are
// needed.
type docs struct {
	packed io.ReaderAt
	size   int64
	name   string // of the archive
	folder string // of the documentation in the archive, with a slash; empty: the root

	sizes map[string]int64 // in bytes, by the paths below docs/, with slashes
}

// CheckDocs returns the Refusal of an archive of documentation, or ErrInterrupted if
// ctx ends before it is read. The archive has the name under which it is published.
func CheckDocs(ctx context.Context, f io.ReaderAt, size int64, name string) error {
	_, err := readDocs(ctx, f, size, name)
	return err
}

// readDocs checks an archive of documentation. Its pages are at its root, in docs, or in
// website/docs.
func readDocs(ctx context.Context, f io.ReaderAt, size int64, name string) (docs, error) {
	c := docChecker{sizes: make(map[string]int64), folded: make(map[string]string)}
	err := walkDocs(ctx, f, size, name, c.add)
	var bad *Refusal
	var unreadable *archive.PackageError
	var disk *fs.PathError
	switch {
	case errors.As(err, &bad):
		return docs{}, bad
	case errors.As(err, &unreadable):
		return docs{}, refused("%s: %s", name, unreadable.Detail)
	case ctx.Err() != nil:
		return docs{}, ErrInterrupted
	case errors.As(err, &disk):
		return docs{}, tree.StorageError(err)
	case err != nil:
		return docs{}, refused("%s cannot be read to its end: pack it again (%v)", name, err)
	}
	pages := docs{packed: f, size: size, name: name}
	pages.folder, pages.sizes = c.inFolder()
	if !slices.ContainsFunc(slices.Collect(maps.Keys(pages.sizes)), isPage) {
		return docs{}, refused("%s has no page of documentation: pack the folder docs, with index.md in it", name)
	}
	return pages, pages.checkFolders()
}

// files returns the files by their paths below docs/. Reading fails if the archive has changed.
func (d docs) files(ctx context.Context) tree.Documents {
	return func(visit func(name string, content []byte) error) error {
		return walkDocs(ctx, d.packed, d.size, d.name, func(name string, _ fs.FileMode, content io.Reader) error {
			below, ok := strings.CutPrefix(docName(name), d.folder)
			size, known := d.sizes[below]
			if !ok || !known {
				return nil
			}
			b := make([]byte, size)
			if _, err := io.ReadFull(content, b); err != nil {
				return err
			}
			return visit(below, b)
		})
	}
}

// walkDocs calls visit with the entries of an archive that are no folders.
func walkDocs(ctx context.Context, f io.ReaderAt, size int64, name string, visit func(name string, mode fs.FileMode, content io.Reader) error) error {
	if name == docsZip {
		return walkDocsZip(ctx, f, size, visit)
	}
	z, err := gzip.NewReader(io.NewSectionReader(f, 0, size))
	if err != nil {
		return err
	}
	bounded := &io.LimitedReader{R: z, N: maxDocTar + 1}
	err = archive.WalkTar(bounded, func(header *tar.Header, content io.Reader) error {
		mode := header.FileInfo().Mode()
		switch header.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
			return ctx.Err()
		case tar.TypeLink:
			mode |= fs.ModeIrregular
		}
		return cmp.Or(ctx.Err(), visit(header.Name, mode, content))
	})
	if bounded.N <= 0 {
		return refused("it unpacks to more than %d bytes: leave out what is not documentation", int64(maxDocTar))
	}
	return err
}

func walkDocsZip(ctx context.Context, f io.ReaderAt, size int64, visit func(string, fs.FileMode, io.Reader) error) error {
	z, err := archive.OpenZip(ctx, f, size)
	if err != nil {
		return err
	}
	for _, entry := range z.File {
		if entry.Mode().IsDir() {
			continue
		}
		content, err := entry.Open()
		if err != nil {
			return err
		}
		err = visit(entry.Name, entry.Mode(), content)
		if err = cmp.Or(err, content.Close()); err != nil {
			return err
		}
	}
	return nil
}

// docName returns the name of an entry as the name of a file in a folder.
func docName(entry string) string { return strings.TrimPrefix(entry, "./") }

func isPage(name string) bool {
	return slices.Contains([]string{".md", ".markdown"}, path.Ext(name))
}

// A docChecker checks the files of an archive, and adds up their sizes.
type docChecker struct {
	sizes  map[string]int64 // in bytes, by name
	total  int64
	folded map[string]string // names by their lower-case form
}

// add checks a file and reads it, unless a system or an editor has left it behind.
func (c *docChecker) add(name string, mode fs.FileMode, content io.Reader) error {
	clean := docName(name)
	if isLeftBehind(clean) {
		return nil
	}
	if err := checkDocName(clean); err != nil {
		return err
	}
	switch folded := strings.ToLower(clean); {
	case !mode.IsRegular():
		return refused("%.200q is not a regular file: pack the file itself", name)
	case len(c.sizes) >= maxDocFiles:
		return refused("there are more than %d files: leave out what is not documentation", maxDocFiles)
	case c.folded[folded] != "":
		return refused("%.200q and %.200q are one file on some systems: rename one", c.folded[folded], clean)
	default:
		c.folded[folded] = clean
	}
	n, err := io.Copy(io.Discard, io.LimitReader(content, maxDocFile+1))
	switch c.total += n; {
	case err != nil:
		return err
	case n > maxDocFile:
		return refused("%.200q is larger than %d bytes: leave it out", name, maxDocFile)
	case c.total > maxDocTotal:
		return refused("the files are larger than %d bytes together: leave out what is not documentation", maxDocTotal)
	}
	c.sizes[clean] = n
	return nil
}

// inFolder returns the folder with the documentation of a repository, if any, and the sizes of the
// files in it. Otherwise it returns all.
func (c *docChecker) inFolder() (folder string, sizes map[string]int64) {
	for _, folder := range []string{"website/docs/", "docs/"} {
		sizes := make(map[string]int64)
		for name, size := range c.sizes {
			if below, ok := strings.CutPrefix(name, folder); ok {
				sizes[below] = size
			}
		}
		if len(sizes) > 0 {
			return folder, sizes
		}
	}
	return "", c.sizes
}

// isLeftBehind reports whether a system or an editor has made a file, so that its
// publisher did not mean to pack it.
func isLeftBehind(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "__MACOSX" || part != "." && part != ".." && strings.HasPrefix(part, ".") || strings.HasSuffix(part, "~") {
			return true
		}
	}
	return false
}

// checkDocName refuses a name that on any system leads out of its folder or cannot be a
// file's.
func checkDocName(name string) error {
	if !utf8.ValidString(name) || !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, `\:*?"<>|`) || strings.ContainsFunc(name, unicode.IsControl) {
		return refused("%.200q is not the name of a file below its folder, on every system: rename it", name)
	}
	parts := strings.Split(name, "/")
	if len(parts) > maxDocDepth || slices.ContainsFunc(parts, func(p string) bool { return len(p) > maxDocName }) {
		return refused("%.200q is too long or too deep: a path has %d parts of %d bytes at most", name, maxDocDepth, maxDocName)
	}
	return nil
}

// checkFolders refuses a name that a file and a folder have in common.
func (d docs) checkFolders() error {
	files := make(map[string]bool, len(d.sizes))
	for name := range d.sizes {
		files[strings.ToLower(name)] = true
	}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				return refused("%.200q is a file and a folder: rename one", dir)
			}
		}
	}
	return nil
}

// sameDocs reports whether a folder has exactly these files.
func (p *Publisher) sameDocs(ctx context.Context, part tree.Part, dir string, pages docs) bool {
	sizes := make(map[string]int64, len(pages.sizes))
	err := part.Walk(ctx, dir, func(name string, info fs.FileInfo) { sizes[strings.TrimPrefix(name, dir+"/")] = info.Size() })
	if err != nil || !maps.Equal(sizes, pages.sizes) {
		return false
	}
	p.unpacking.Lock()
	defer p.unpacking.Unlock()
	return nil == pages.files(ctx).InParallel(ctx, func(name string, content []byte) error {
		now, err := part.ReadFile(path.Join(dir, name), maxDocFile)
		if err == nil && !bytes.Equal(now, content) {
			err = fs.ErrExist
		}
		return err
	})
}
