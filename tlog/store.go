package tlog

import (
	"context"
	"time"
)

// A Store has the files of a log. Names have slashes. Each method may be called by several
// instances at the same time.
type Store interface {
	// Create gives a file its content, all at once. The error is fs.ErrExist if there is a
	// file of this name. After any other error the file may have been created all the same,
	// even later.
	Create(ctx context.Context, name string, content []byte) error

	// Read returns the content of a file. Only fs.ErrNotExist means that there is none.
	Read(ctx context.Context, name string) ([]byte, error)

	// Modified returns when a file was written. Only fs.ErrNotExist means that there is none.
	Modified(ctx context.Context, name string) (time.Time, error)

	// List returns the names of the files directly in a folder, which need not exist.
	List(ctx context.Context, dir string) ([]string, error)

	// Replace gives a file its content, whether it exists or not.
	Replace(ctx context.Context, name string, content []byte) error

	// Remove removes a file, which need not exist.
	Remove(ctx context.Context, name string) error

	// Sweep removes what instances that were killed have left.
	Sweep(ctx context.Context) error
}
