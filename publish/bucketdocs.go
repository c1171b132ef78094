package publish

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// In a Bucket, documentation is staged as the archive that the client sent, because an
// archive appears in a Bucket whole. Its pages are written one by one. They are
// written into a release before the release is complete, so that both appear together,
// and over the pages of a published release. There a reader may see pages of both
// versions for a moment, but never misses a page that both have: pages that only the
// old version has are removed last.

var docsArchives = []string{docsZip, docsTarGz, docsTgz}

// stageDocsArchive keeps an archive in the stage.
func (s stage) stageDocsArchive(ctx context.Context, f File, r *received) error {
	for _, name := range docsArchives {
		if err := s.part.Fs.Remove(path.Join(s.part.Dir, s.path(name))); err != nil {
			return tree.StorageError(err)
		}
	}
	_, err := r.Rename(ctx, s.path(f.Name))
	return tree.StorageError(err)
}

// docsArchive returns the staged archive, or nil if there is none.
func (s stage) docsArchive() (fs.FileInfo, error) {
	entries, err := s.part.ReadDir(s.path())
	i := slices.IndexFunc(entries, func(e fs.FileInfo) bool { return slices.Contains(docsArchives, e.Name()) })
	if err != nil || i < 0 {
		return nil, err
	}
	return entries[i], nil
}

// readDocs reads the staged archive.
func (s stage) readDocs(ctx context.Context, packed fs.FileInfo) ([]docFile, error) {
	content, err := s.part.ReadFile(s.path(packed.Name()), maxDocs)
	if err != nil {
		return nil, err
	}
	return readDocs(ctx, bytes.NewReader(content), int64(len(content)), packed.Name())
}

// writeDocs writes pages to a folder.
func writeDocs(files []docFile, to tree.Part, dir string) error {
	return eachDoc(files, func(f docFile) error { return to.WriteFile(path.Join(dir, f.name), f.content) })
}

// replaceDocs replaces the documentation of a published release.
func (s stage) replaceDocs(ctx context.Context, present *presentRelease, files []docFile) error {
	part, dir := present.part, path.Join(present.folder, docsFolder)
	if err := writeDocs(files, part, dir); err != nil {
		return err
	}
	written := make(map[string]bool, len(files))
	for _, f := range files {
		written[path.Join(dir, f.name)] = true
	}
	var gone []string
	err := part.WalkFiles(ctx, dir, func(name string, _ fs.FileInfo) {
		if !written[name] {
			gone = append(gone, path.Join(part.Dir, name))
		}
	})
	if err != nil {
		return err
	}
	for _, name := range gone {
		err = errors.Join(err, part.Fs.Remove(name))
	}
	if err != nil {
		return tree.StorageError(err)
	}
	s.removeAll() // tidy removes what remains
	return nil
}

// completeDocs installs documentation that an interrupted request has left in the
// stage.
func (p *Publisher) completeDocs(ctx context.Context, s stage, present *presentRelease) error {
	docs, err := s.docs()
	if err != nil || docs == nil {
		return err
	}
	if !s.part.InBucket() {
		return s.installDocs(ctx, present, nil)
	}
	p.unpacking.Lock()
	defer p.unpacking.Unlock()
	files, err := s.readDocs(ctx, docs)
	if err != nil {
		return err
	}
	return s.installDocs(ctx, present, files)
}
