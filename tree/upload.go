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
// appear one by one, and other instances list it at any moment, some of it in one request
// and the rest in a later one. So that nobody sees a part of a release:
//
//   - UploadName is written first. From then on the folder counts only if it has a
//     SHA256SUMS. The file stays.
//   - SHA256SUMS is written last, and makes the release one of the tree.
//
// Stores list names in their order. SHA256SUMS comes before everything that was written
// before it, so whoever sees it sees all of the release. UploadName comes after all that
// was written after it, so whoever sees a package sees UploadName too, and waits for
// SHA256SUMS.

// UploadName is the name of the file that says that a version's folder is uploaded file
// by file. It is greater than all names of a release's files.
const UploadName = "upload.json"

// IncompleteUpload reports whether a version's folder, with files of these names, is
// still being uploaded: nothing in it counts then. checksums is the name of its
// SHA256SUMS.
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

// ErrInTheWay: the folder of a version has files already.
var ErrInTheWay = errors.New("there is something in the folder of the version")

// An upload is what UploadName says of a folder.
type upload struct {
	Format    int    `json:"format"`
	Checksums string `json:"sha256sums"` // its sha256
}

const uploadFormat = 1 // the only one there is

// InstallFolder has a version's folder become another one, both as paths in the part, at
// once for everybody who reads the tree: from has the whole release, with a SHA256SUMS of
// the name checksums, and to must not exist. In a Bucket, from is still there afterwards,
// and copied are the files in to, by name; interrupted, it leaves an IncompleteUpload,
// which the same call completes. The error is ErrInTheWay, or one of StorageError, such as
// ErrReserved for a folder that was made a moment ago and has nothing in it yet.
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

// InstallDocuments is InstallFolder for small documents by name, one of which is
// SHA256SUMS.
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

// RemoveFolder removes a version's folder, at once for everybody who reads the tree.
// checksums is the name of its SHA256SUMS, which need not exist. The error is one of
// StorageError.
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

// RemoveUpload removes what an interrupted InstallFolder has left in a Bucket: of the release
// with this SHA256SUMS, or of any other one if nobody has written to the folder for as long
// as an upload takes between two files. Until then it is ErrReserved, since an operator may
// be copying the folder of another Bucket. ErrInTheWay: it is whole. checksums is the name of
// its SHA256SUMS, and content nil if it is not known.
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

// A folderUpload is what comes into a version's folder in a Bucket.
type folderUpload struct {
	checksums string // the name of SHA256SUMS
	content   []byte // of it
	others    []string
	put       func(ctx context.Context, name string) error // one of the others
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

// claim makes the folder that of a release, which is known by its SHA256SUMS, and removes
// what an interrupted upload of it has left and it does not have any more. complete
// reports whether that upload was whole after all.
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
