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
	"os"
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
	maxDocFile  = 8 << 20  // bytes
	maxDocTotal = 64 << 20 // bytes
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

// takeDocs reads an archive of documentation and puts its files into the stage or into
// the published release. The files are in memory meanwhile, so takeDocs reads one
// archive at a time, and must not wait for a client.
func (p *Publisher) takeDocs(ctx context.Context, folders tree.Tree, s stage, f File, r *received) (Result, error) {
	unlock, err := p.lockIn(ctx, s.part, s.lockName())
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	p.unpacking.Lock()
	defer p.unpacking.Unlock()
	files, err := readDocs(ctx, r.File, r.size, f.Name)
	if err != nil {
		return Result{}, err
	}
	ctx = context.WithoutCancel(ctx) // the client has sent everything
	present, err := p.presentRelease(folders, f.Address, f.Version)
	if err != nil {
		return Result{}, err
	}
	if present.exists && sameDocs(ctx, present.part, path.Join(present.folder, docsFolder), files) {
		return f.unchanged(r.sum), nil
	}
	if err := s.stageDocs(ctx, f, files, r); err != nil {
		if !present.exists {
			s.removeIfUnused()
		}
		return Result{}, err
	}
	if present.exists {
		if err := s.installDocs(ctx, present, files); err != nil {
			return Result{}, err
		}
		return f.added(r.sum), nil
	}
	_, needsSignature, err := p.keys(ctx, folders, present)
	if err != nil {
		return Result{}, err
	}
	c, err := s.read()
	if err != nil {
		return Result{}, err
	}
	result := Result{Outcome: Waiting}
	result.Publication, err = s.describe(c, needsSignature, p.options.Staging)
	result.File, result.SHA256 = f.Name, r.sum.String()
	return result, err
}

// stageDocs keeps documentation in the stage, as a whole or not at all.
func (s stage) stageDocs(ctx context.Context, f File, files []docFile, r *received) error {
	if s.part.InBucket() {
		return s.stageDocsArchive(ctx, f, r)
	}
	s.remove(s.path(newDocsFolder))
	err := eachDoc(files, func(f docFile) error { return writeNew(s.part, s.path(newDocsFolder, f.name), f.content) })
	if err != nil {
		s.remove(s.path(newDocsFolder))
		return tree.StorageError(err)
	}
	s.remove(s.path(docsFolder))
	return s.rename(s.path(newDocsFolder), s.path(docsFolder))
}

// docs returns the staged documentation, a folder or an archive, or nil if there is
// none.
func (s stage) docs() (fs.FileInfo, error) {
	if s.part.InBucket() {
		return s.docsArchive()
	}
	info, err := s.part.Stat(s.path(docsFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// addDocs puts the staged documentation into the release.
func (p *Publisher) addDocs(ctx context.Context, s stage) error {
	docs, err := s.docs()
	if err != nil || docs == nil {
		return err
	}
	if err := s.remove(s.release(docsFolder)); err != nil {
		return err
	}
	if s.part.InBucket() {
		p.unpacking.Lock()
		defer p.unpacking.Unlock()
		files, err := s.readDocs(ctx, docs)
		if err != nil {
			return err
		}
		return writeDocs(files, s.part, s.release(docsFolder))
	}
	return s.rename(s.path(docsFolder), s.release(docsFolder))
}

// eachDoc calls do for each file, for several at once.
func eachDoc(files []docFile, do func(docFile) error) error {
	var g errgroup.Group
	g.SetLimit(docWorkers)
	for _, f := range files {
		g.Go(func() error { return do(f) })
	}
	return g.Wait()
}

// docWorkers is how many files are read or written at once. Each waits for the disk or
// the store.
const docWorkers = 8

// writeNew writes a file into a folder that nothing reads before it is renamed.
func writeNew(part tree.Part, name string, content []byte) error {
	name = path.Join(part.Dir, name)
	if err := part.Fs.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := part.Fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return cmp.Or(err, f.Sync(), f.Close())
}

// installDocs replaces the documentation of a published release by the staged files. If
// it is interrupted, Run completes it.
func (s stage) installDocs(ctx context.Context, present *presentRelease, files []docFile) error {
	if s.part.InBucket() {
		return s.replaceDocs(ctx, present, files)
	}
	target := path.Join(present.folder, docsFolder)
	s.remove(s.path(oldDocsFolder))
	exists, err := present.part.Exists(target)
	if err == nil && exists {
		err = s.rename(target, s.path(oldDocsFolder))
	}
	if err != nil {
		return err
	}
	if err := s.rename(s.path(docsFolder), target); err != nil {
		_ = s.rename(s.path(oldDocsFolder), target)
		return err
	}
	present.part.SyncFolder(present.folder)
	s.removeAll()
	return nil
}

// removeIfUnused removes an empty stage.
func (s stage) removeIfUnused() {
	if c, err := s.read(); err == nil && c.empty() {
		s.removeAll()
	}
}

// A docFile is a file of documentation.
type docFile struct {
	name    string // below docs/, with slashes
	content []byte
}

// CheckDocs returns the Refusal of an archive of documentation, or ErrInterrupted if
// ctx ends before it is read. The archive has the name under which it is published.
func CheckDocs(ctx context.Context, f io.ReaderAt, size int64, name string) error {
	_, err := readDocs(ctx, f, size, name)
	return err
}

// readDocs reads an archive of documentation. Its pages are at its root, in docs, or in
// website/docs.
func readDocs(ctx context.Context, f io.ReaderAt, size int64, name string) (files []docFile, err error) {
	d := docReader{folded: make(map[string]string)}
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
	for _, prefix := range []string{"website/docs/", "docs/"} {
		if slices.ContainsFunc(d.files, func(f docFile) bool { return strings.HasPrefix(f.name, prefix) }) {
			d.files = slices.DeleteFunc(d.files, func(f docFile) bool { return !strings.HasPrefix(f.name, prefix) })
			for i := range d.files {
				d.files[i].name = strings.TrimPrefix(d.files[i].name, prefix)
			}
			break
		}
	}
	if !slices.ContainsFunc(d.files, func(f docFile) bool { return isPage(f.name) }) {
		return nil, refused("%s has no page of documentation: pack the folder docs, with index.md in it", name)
	}
	if err := d.checkFolders(); err != nil {
		return nil, err
	}
	return d.files, nil
}

func isPage(name string) bool {
	return slices.Contains([]string{".md", ".markdown"}, path.Ext(name))
}

// A docReader collects the files of an archive, within the limits.
type docReader struct {
	files  []docFile
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
	t := tar.NewReader(io.LimitReader(z, 2*maxDocTotal)) // with headers and padding
	for {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir || header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		mode := header.FileInfo().Mode()
		if header.Typeflag == tar.TypeLink {
			mode |= fs.ModeIrregular
		}
		if err := d.add(header.Name, mode, t); err != nil {
			return err
		}
	}
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
	case len(d.files) >= maxDocFiles:
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
	d.files = append(d.files, docFile{clean, b.Bytes()})
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
func (d *docReader) checkFolders() error {
	files := make(map[string]bool, len(d.files))
	for _, f := range d.files {
		files[strings.ToLower(f.name)] = true
	}
	for _, f := range d.files {
		for dir := path.Dir(strings.ToLower(f.name)); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				return refused("%.200q is a file and a folder: rename one", dir)
			}
		}
	}
	return nil
}

// sameDocs reports whether a folder has exactly these files.
func sameDocs(ctx context.Context, part tree.Part, dir string, files []docFile) bool {
	sizes := make(map[string]int64, len(files))
	err := part.WalkFiles(ctx, dir, func(name string, info fs.FileInfo) { sizes[name] = info.Size() })
	if err != nil || len(sizes) != len(files) {
		return false
	}
	err = eachDoc(files, func(f docFile) error {
		name := path.Join(dir, f.name)
		if size, ok := sizes[name]; !ok || size != int64(len(f.content)) {
			return fs.ErrExist
		}
		now, err := part.ReadFile(name, maxDocFile)
		if err == nil && !bytes.Equal(now, f.content) {
			err = fs.ErrExist
		}
		return err
	})
	return err == nil
}
