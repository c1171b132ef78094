package tree

import (
	"context"
	"io/fs"

	"github.com/spf13/afero"
)

// ReadOnly has the methods of a Writer for a storage that cannot be written to.
type ReadOnly struct{}

var _ Writer = ReadOnly{}

// Write implements Writer.
func (ReadOnly) Write(string, []byte) error { return fs.ErrPermission }

// Move implements Writer.
func (ReadOnly) Move(string, string) error { return fs.ErrPermission }

// Remove implements Writer.
func (ReadOnly) Remove(string) error { return fs.ErrPermission }

// RemoveAll implements Writer.
func (ReadOnly) RemoveAll(string) error { return fs.ErrPermission }

// NewTemporary implements Writer.
func (ReadOnly) NewTemporary(context.Context, string) (TemporaryFile, error) {
	return nil, StorageError(fs.ErrPermission)
}

// Install implements Writer.
func (ReadOnly) Install(context.Context, string, string, string) (map[string]fs.FileInfo, error) {
	return nil, StorageError(fs.ErrPermission)
}

// InstallDocuments implements Writer.
func (ReadOnly) InstallDocuments(context.Context, map[string][]byte, string, string) error {
	return StorageError(fs.ErrPermission)
}

// ReplaceFolder implements Writer.
func (ReadOnly) ReplaceFolder(context.Context, Documents, string, string) error {
	return fs.ErrPermission
}

// RemoveFolder implements Writer.
func (ReadOnly) RemoveFolder(context.Context, string, string) error { return fs.ErrPermission }

// RemoveUnfinished implements Writer.
func (ReadOnly) RemoveUnfinished(context.Context, string, string, []byte) error { return nil }

// RemoveTemporaries implements Writer.
func (ReadOnly) RemoveTemporaries(context.Context, string, int) int { return 0 }

// nowhere is a storage without files.
type nowhere struct{ ReadOnly }

func (nowhere) Sub(string) Storage                           { return nowhere{} }
func (nowhere) Path() string                                 { return "" }
func (nowhere) Stat(string) (fs.FileInfo, error)             { return nil, fs.ErrNotExist }
func (nowhere) Open(string) (afero.File, fs.FileInfo, error) { return nil, nil, fs.ErrNotExist }
func (nowhere) List(string) ([]fs.FileInfo, error)           { return nil, fs.ErrNotExist }
func (nowhere) ReadDir(string) ([]fs.FileInfo, error)        { return nil, fs.ErrNotExist }
func (nowhere) ReadNames(string) ([]string, error)           { return nil, fs.ErrNotExist }

func (nowhere) Walk(context.Context, string, func(string, fs.FileInfo)) error { return nil }
