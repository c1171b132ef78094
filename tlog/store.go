package tlog

import "context"

// A Store has the files of a log. Names have slashes. Each method may be called by several
// instances at the same time.
type Store interface {
	// Create gives a file its content, all at once. The error is fs.ErrExist if there is a
	// file of this name. After any other error the file may have been created all the same,
	// even later.
	Create(ctx context.Context, name string, content []byte) error

	// Read returns the content of a file. Only fs.ErrNotExist means that there is none.
	Read(ctx context.Context, name string) ([]byte, error)

	// Exists reports whether there is a file.
	Exists(ctx context.Context, name string) (bool, error)

	// List returns the names of the files directly in a folder, which need not exist.
	List(ctx context.Context, dir string) ([]string, error)

	// Replace gives a file its content, whether it exists or not.
	Replace(ctx context.Context, name string, content []byte) error

	// Remove removes a file, which need not exist.
	Remove(ctx context.Context, name string) error
}

// An Anchor keeps the newest signed checkpoint at another place than the Store. So a Store
// that was restored from a backup is noticed.
type Anchor interface {
	// Load returns the checkpoint. Only fs.ErrNotExist means that there is none.
	Load(ctx context.Context) ([]byte, error)

	Store(ctx context.Context, checkpoint []byte) error
}
