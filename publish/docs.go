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

	"golang.org/x/sync/errgroup"

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
// that is published. The pages are in memory meanwhile, so takeDocs reads one archive at a
// time, and must not wait for a client.
func (p *Publisher) takeDocs(ctx context.Context, folders tree.Tree, s stage, f File, r *received) (Result, error) {
	unlock, err := p.lock(ctx, s.part, s.lockName())
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	p.unpacking.Lock()
	defer p.unpacking.Unlock()
	pages, err := readDocs(ctx, r, r.size, f.Name)
	if err != nil {
		return Result{}, err
	}
	ctx = context.WithoutCancel(ctx) // the client has sent everything
	present, err := p.presentRelease(folders, f.Address, f.Version)
	if err != nil {
		return Result{}, err
	}
	if present.exists && sameDocs(ctx, s.part, path.Join(present.folder, docsFolder), pages) {
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
		if err := s.replaceDocs(ctx, present.folder, pages); err != nil {
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
	p.unpacking.Lock()
	defer p.unpacking.Unlock()
	content, err := readListed(s.part, packed.Path(), maxDocs)
	if err != nil {
		return err
	}
	pages, err := readDocs(ctx, bytes.NewReader(content), int64(len(content)), packed.Name)
	if err != nil {
		return err
	}
	return s.replaceDocs(ctx, release, pages)
}

// replaceDocs replaces the documentation in the folder of a release. If it is interrupted, Run
// completes it.
func (s stage) replaceDocs(ctx context.Context, release string, pages docs) error {
	return s.part.ReplaceFolder(ctx, pages, path.Join(release, docsFolder), s.path(docsFolder))
}

// docs are files of documentation, by their paths below docs/, with slashes.
type docs map[string][]byte

// CheckDocs returns the Refusal of an archive of documentation, or ErrInterrupted if
// ctx ends before it is read. The archive has the name under which it is published.
func CheckDocs(ctx context.Context, f io.ReaderAt, size int64, name string) error {
	_, err := readDocs(ctx, f, size, name)
	return err
}

// readDocs reads an archive of documentation. Its pages are at its root, in docs, or in
// website/docs.
func readDocs(ctx context.Context, f io.ReaderAt, size int64, name string) (docs, error) {
	d := docReader{pages: make(docs), folded: make(map[string]string)}
	var err error
	if name == docsZip {
		err = d.readZip(ctx, f, size)
	} else {
		err = d.readTarGz(io.NewSectionReader(f, 0, size))
	}
	var bad *Refusal
	var unreadable *archive.PackageError
	var disk *fs.PathError
	switch {
	case errors.As(err, &bad):
		return nil, bad
	case errors.As(err, &unreadable):
		return nil, refused("%s: %s", name, unreadable.Detail)
	case ctx.Err() != nil:
		return nil, ErrInterrupted
	case errors.As(err, &disk):
		return nil, tree.StorageError(err)
	case err != nil:
		return nil, refused("%s cannot be read to its end: pack it again (%v)", name, err)
	}
	pages := d.pages.unpacked()
	if !slices.ContainsFunc(slices.Collect(maps.Keys(pages)), isPage) {
		return nil, refused("%s has no page of documentation: pack the folder docs, with index.md in it", name)
	}
	return pages, pages.checkFolders()
}

// unpacked returns the files in the folder with the documentation of a repository, if any.
func (d docs) unpacked() docs {
	for _, prefix := range []string{"website/docs/", "docs/"} {
		in := make(docs)
		for name, content := range d {
			if below, ok := strings.CutPrefix(name, prefix); ok {
				in[below] = content
			}
		}
		if len(in) > 0 {
			return in
		}
	}
	return d
}

func isPage(name string) bool {
	return slices.Contains([]string{".md", ".markdown"}, path.Ext(name))
}

// A docReader collects the files of an archive, within the limits.
type docReader struct {
	pages  docs
	total  int64
	folded map[string]string // names by their lower-case form
}

func (d *docReader) readZip(ctx context.Context, f io.ReaderAt, size int64) error {
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
		err = d.add(entry.Name, entry.Mode(), content)
		if err = cmp.Or(err, content.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (d *docReader) readTarGz(f io.Reader) error {
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	bounded := &io.LimitedReader{R: z, N: maxDocTar + 1}
	err = archive.WalkTar(bounded, d.addTarEntry)
	if bounded.N <= 0 {
		return refused("it unpacks to more than %d bytes: leave out what is not documentation", int64(maxDocTar))
	}
	return err
}

func (d *docReader) addTarEntry(header *tar.Header, content io.Reader) error {
	mode := header.FileInfo().Mode()
	switch header.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeLink:
		mode |= fs.ModeIrregular
	}
	return d.add(header.Name, mode, content)
}

// add adds a file, unless a system or an editor has left it behind.
func (d *docReader) add(name string, mode fs.FileMode, content io.Reader) error {
	clean := strings.TrimPrefix(name, "./")
	if isLeftBehind(clean) {
		return nil
	}
	if err := checkDocName(clean); err != nil {
		return err
	}
	switch folded := strings.ToLower(clean); {
	case !mode.IsRegular():
		return refused("%.200q is not a regular file: pack the file itself", name)
	case len(d.pages) >= maxDocFiles:
		return refused("there are more than %d files: leave out what is not documentation", maxDocFiles)
	case d.folded[folded] != "":
		return refused("%.200q and %.200q are one file on some systems: rename one", d.folded[folded], clean)
	default:
		d.folded[folded] = clean
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(content, maxDocFile+1))
	switch d.total += n; {
	case err != nil:
		return err
	case n > maxDocFile:
		return refused("%.200q is larger than %d bytes: leave it out", name, maxDocFile)
	case d.total > maxDocTotal:
		return refused("the files are larger than %d bytes together: leave out what is not documentation", maxDocTotal)
	}
	d.pages[clean] = b.Bytes()
	return nil
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
	files := make(map[string]bool, len(d))
	for name := range d {
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
func sameDocs(ctx context.Context, part tree.Part, dir string, pages docs) bool {
	sizes := make(map[string]int64, len(pages))
	err := part.Walk(ctx, dir, func(name string, info fs.FileInfo) { sizes[name] = info.Size() })
	if err != nil || len(sizes) != len(pages) {
		return false
	}
	var g errgroup.Group
	g.SetLimit(docWorkers)
	for name, content := range pages {
		g.Go(func() error {
			name := path.Join(dir, name)
			if size, ok := sizes[name]; !ok || size != int64(len(content)) {
				return fs.ErrExist
			}
			now, err := part.ReadFile(name, maxDocFile)
			if err == nil && !bytes.Equal(now, content) {
				err = fs.ErrExist
			}
			return err
		})
	}
	return g.Wait() == nil
}

// docWorkers is how many files are read at once. Each waits for the disk or the store.
const docWorkers = 8
