package tree

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
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

// UploadName is the name of the file that marks a version's folder as uploaded file by file.
// It sorts after all names of a release's files.
const UploadName = "upload.json"

// IncompleteUpload reports whether a version's folder with files of these names is still
// being uploaded, so that nothing in it counts. checksums is the name of its SHA256SUMS.
func IncompleteUpload(checksums string, names []string) bool {
	return slices.Contains(names, UploadName) && !slices.Contains(names, checksums)
}

// IsIncompleteUpload is IncompleteUpload for the folder of a provider's version in a scan.
func IsIncompleteUpload(typ, version string, entries []Entry) bool {
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == UploadName })
	if i < 0 {
		return false
	}
	checksums := address.ChecksumsName(typ, version)
	return !slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == checksums })
}

// ErrInTheWay means that the folder of a version has files already.
var ErrInTheWay = errors.New("there is something in the folder of the version")

// An upload is the content of the file UploadName.
type upload struct {
	Format    int    `json:"format"`
	Checksums string `json:"sha256sums"` // its sha256
}

const uploadFormat = 1 // there is no other format yet

// InstallFolder moves a complete folder to the folder of a version, both paths in the part,
// so that readers of the tree see all of it or nothing. from has the whole release, with a
// SHA256SUMS of the name checksums, and to must not exist. In a Bucket, from is still there
// afterwards, and copied has the files in to, by name. If that is interrupted, it leaves an
// IncompleteUpload, which the same call completes. The error is ErrInTheWay, or a
// StorageError, such as ErrReserved for a folder that was made a moment ago and is still
// empty.
func (p Part) InstallFolder(ctx context.Context, from, to, checksums string) (copied map[string]fs.FileInfo, err error) {
	if p.Bucket() == nil {
		return nil, p.renameFolder(from, to)
	}
	content, err := p.ReadFile(path.Join(from, checksums), MaxDocument)
	if err == nil && content == nil {
		err = StorageError(fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	b := newBucketFs(p.Bucket())
	source, target := path.Join(p.Dir, from), path.Join(p.Dir, to)
	files, err := b.below(ctx, source)
	if err != nil {
		return nil, StorageError(err)
	}
	err = b.upload(ctx, target, folderUpload{
		checksums: checksums, content: content,
		others: slices.DeleteFunc(files, func(name string) bool { return name == checksums }),
		put: func(ctx context.Context, name string) error {
			return b.bucket.Copy(ctx, path.Join(source, name), path.Join(target, name))
		},
	})
	if err != nil {
		return nil, err
	}
	infos, err := p.ReadDir(to)
	copied = make(map[string]fs.FileInfo, len(infos))
	for _, info := range infos {
		copied[info.Name()] = info
	}
	return copied, err
}

// InstallDocuments is InstallFolder for small documents by name, SHA256SUMS among them.
func (p Part) InstallDocuments(ctx context.Context, documents map[string][]byte, to, checksums string) error {
	if p.Bucket() != nil {
		b := newBucketFs(p.Bucket())
		target := path.Join(p.Dir, to)
		others := slices.Sorted(maps.Keys(documents))
		return b.upload(ctx, target, folderUpload{
			checksums: checksums, content: documents[checksums],
			others: slices.DeleteFunc(others, func(name string) bool { return name == checksums }),
			put: func(_ context.Context, name string) error {
				return replace(b.bucket, path.Join(target, name), documents[name])
			},
		})
	}
	hidden := TemporaryName(to)
	var err error
	for name, content := range documents {
		err = cmp.Or(err, p.WriteFile(path.Join(hidden, name), content))
	}
	if err == nil {
		err = p.renameFolder(hidden, to)
	}
	if err != nil {
		p.Fs.RemoveAll(path.Join(p.Dir, hidden))
	}
	return err
}

// RemoveFolder removes a version's folder, at once for all readers of the tree. checksums is
// the name of its SHA256SUMS, which need not exist. The error is a StorageError.
func (p Part) RemoveFolder(ctx context.Context, dir, checksums string) error {
	if p.Bucket() == nil {
		hidden := path.Join(p.Dir, TemporaryName(dir))
		if err := p.Fs.Rename(path.Join(p.Dir, dir), hidden); err != nil {
			return StorageError(err)
		}
		return StorageError(p.Fs.RemoveAll(hidden))
	}
	b := newBucketFs(p.Bucket())
	folder := path.Join(p.Dir, dir)
	files, err := b.below(ctx, folder)
	if err != nil || len(files) == 0 {
		return StorageError(err)
	}
	if !slices.Contains(files, UploadName) {
		if err := replace(b.bucket, path.Join(folder, UploadName), encodeUpload(nil)); err != nil {
			return err
		}
	}
	for i := range files {
		files[i] = path.Join(folder, files[i])
	}
	first, last := path.Join(folder, checksums), path.Join(folder, UploadName)
	files = slices.DeleteFunc(files, func(name string) bool { return name == first || name == last })
	for _, names := range [][]string{{first}, files, {last}} {
		if err := b.removeFiles(ctx, names); err != nil {
			return StorageError(err)
		}
	}
	return nil
}

// RemoveUpload removes the files that an interrupted InstallFolder has left in a Bucket. If
// the upload was of the release with this SHA256SUMS, it removes them immediately. It
// removes those of another release only if no file has been added to the folder for as long
// as an upload takes between two files. Until then the error is ErrReserved, since an
// operator may be copying the folder of another Bucket. If the release is whole, the error
// is ErrInTheWay. checksums is the name of its SHA256SUMS, and content is nil if it is not
// known.
func (p Part) RemoveUpload(ctx context.Context, dir, checksums string, content []byte) error {
	b := newBucketFs(p.Bucket())
	folder := path.Join(p.Dir, dir)
	var names []string
	var last time.Time
	err := b.bucket.Files(ctx, folder, func(name string, info fs.FileInfo) error {
		names = append(names, name[len(folder)+1:])
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
		return nil
	})
	switch {
	case err != nil:
		return StorageError(StoreError(err))
	case len(names) == 0:
		return nil
	case !IncompleteUpload(checksums, names):
		return ErrInTheWay
	}
	claim, err := fs.ReadFile(b.bucket, path.Join(folder, UploadName))
	switch {
	case err != nil:
		return StorageError(StoreError(err))
	case (content == nil || !bytes.Equal(claim, encodeUpload(content))) && time.Since(last) < reservedFor:
		return ErrReserved
	}
	return p.RemoveFolder(ctx, dir, checksums)
}

// renameFolder installs a folder on a disk.
func (p Part) renameFolder(from, to string) error {
	p.SyncFolder(from)
	switch err := p.placeFolder(from, to); {
	case errors.Is(err, fs.ErrExist): // another writer was faster
		return ErrInTheWay
	case err != nil:
		return StorageError(err)
	}
	p.SyncFolder(path.Dir(to))
	return nil
}

// A folderUpload has the files to upload to a version's folder in a Bucket.
type folderUpload struct {
	checksums string // the name of SHA256SUMS
	content   []byte // of it
	others    []string
	put       func(ctx context.Context, name string) error // puts another file
}

// upload installs a folder in a Bucket.
func (b bucketFs) upload(ctx context.Context, folder string, u folderUpload) error {
	complete, err := b.claim(ctx, folder, u)
	if err != nil || complete {
		return err
	}
	if err := inBucket(ctx, u.others, u.put); err != nil {
		return StorageError(err)
	}
	_, err = b.bucket.Create(ctx, path.Join(folder, u.checksums), bytes.NewReader(u.content))
	if errors.Is(err, fs.ErrExist) {
		return ErrInTheWay
	}
	return StorageError(StoreError(err))
}

// claim marks the folder for a release, which its SHA256SUMS identifies, and removes files
// of an interrupted upload that are not part of the release. complete reports whether that
// upload was whole after all.
func (b bucketFs) claim(ctx context.Context, folder string, u folderUpload) (complete bool, err error) {
	files, err := b.below(ctx, folder)
	if err != nil {
		return false, StorageError(err)
	}
	name, claim := path.Join(folder, UploadName), encodeUpload(u.content)
	if !slices.Contains(files, UploadName) {
		if len(files) > 0 {
			return false, ErrInTheWay
		}
		_, err := b.bucket.Create(ctx, name, bytes.NewReader(claim))
		if errors.Is(err, fs.ErrExist) {
			return false, ErrInTheWay
		}
		return false, StorageError(StoreError(err))
	}
	present, err := fs.ReadFile(b.bucket, name)
	switch {
	case err != nil:
		return false, StorageError(StoreError(err))
	case !bytes.Equal(present, claim):
		return false, ErrInTheWay
	case slices.Contains(files, u.checksums):
		return true, nil
	}
	var stale []string
	for _, file := range files {
		if file != UploadName && !slices.Contains(u.others, file) {
			stale = append(stale, path.Join(folder, file))
		}
	}
	return false, StorageError(b.removeFiles(ctx, stale))
}

func encodeUpload(checksums []byte) []byte {
	u := upload{Format: uploadFormat}
	if checksums != nil {
		u.Checksums = wire.SHA256Of(checksums).String()
	}
	content, _ := json.Marshal(u) // cannot fail
	return append(content, '\n')
}
