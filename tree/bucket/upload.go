package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// On a disk the folder of a version appears at once, by a rename. In a Bucket its files
// appear one by one. Other instances may list the folder at any moment, and may need several
// requests to do so. Two files keep them from seeing a part of a release:
//
//   - UploadName is written first. From then on the folder counts only if it has a
//     SHA256SUMS. The file stays.
//   - SHA256SUMS is written last, and makes the release part of the tree.
//
// Stores list names in order. SHA256SUMS sorts before all files that were written before it,
// so a listing that contains it contains all of the release. UploadName sorts after all
// files that were written after it, so a listing that contains a package contains UploadName
// too, and its reader waits for SHA256SUMS.

// A folderUpload has the files to upload to a version's folder in a Bucket.
type folderUpload struct {
	checksums string // the name of SHA256SUMS
	content   []byte // of it
	others    []string
	put       func(ctx context.Context, name string) error // puts another file
}

func newFolderUpload(checksums string, content []byte, files []string, put func(context.Context, string) error) folderUpload {
	others := slices.DeleteFunc(files, func(name string) bool { return name == checksums })
	return folderUpload{checksums, content, others, put}
}

// upload installs a folder of the part. If something is in its way, it calls makeRoom and
// tries once more.
func (d Folder) upload(ctx context.Context, dir string, u folderUpload, makeRoom func() error) error {
	complete, err := d.claim(ctx, dir, u)
	if errors.Is(err, tree.ErrInTheWay) {
		if err = makeRoom(); err == nil {
			complete, err = d.claim(ctx, dir, u)
		}
	}
	if err != nil || complete {
		return err
	}
	if err := inBucket(ctx, u.others, u.put); err != nil {
		return tree.StorageError(err)
	}
	return d.createForUpload(ctx, path.Join(dir, u.checksums), u.content)
}

func (d Folder) createForUpload(ctx context.Context, name string, content []byte) error {
	_, err := d.bucket.Create(ctx, d.path(name), bytes.NewReader(content))
	if errors.Is(err, fs.ErrExist) {
		return tree.ErrInTheWay
	}
	return tree.StorageError(storeError(err))
}

// claim marks the folder for a release, which its SHA256SUMS identifies, and removes files
// of an interrupted upload that are not part of the release. complete reports whether that
// upload was whole after all.
func (d Folder) claim(ctx context.Context, dir string, u folderUpload) (complete bool, err error) {
	files, err := d.below(ctx, dir)
	if err != nil {
		return false, tree.StorageError(err)
	}
	name, claim := path.Join(dir, tree.UploadName), encodeUpload(u.content)
	if !slices.Contains(files, tree.UploadName) {
		if len(files) > 0 {
			return false, tree.ErrInTheWay
		}
		return false, d.createForUpload(ctx, name, claim)
	}
	present, err := tree.Part{Storage: d}.ReadFile(name, tree.MaxDocument)
	switch {
	case err != nil:
		return false, err
	case !bytes.Equal(present, claim):
		return false, tree.ErrInTheWay
	case slices.Contains(files, u.checksums):
		return true, nil
	}
	stale := slices.DeleteFunc(files, func(file string) bool { return file == tree.UploadName || slices.Contains(u.others, file) })
	return false, tree.StorageError(d.removeFiles(ctx, dir, stale))
}

// encodeUpload returns the content of the file tree.UploadName. There is no other format yet.
func encodeUpload(checksums []byte) []byte {
	sum := ""
	if checksums != nil {
		sum = wire.SHA256Of(checksums).String()
	}
	return fmt.Appendf(nil, "{\"format\":1,\"sha256sums\":%q}\n", sum)
}
