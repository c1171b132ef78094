package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Locks make processes change a file one after another. They end with their process.

// ErrLocked means that another process keeps a lock for longer than a change takes.
var ErrLocked = errors.New("another process is changing it: try again")

// lockPatience is how long to wait for other processes, which take only a moment.
const lockPatience = 10 * time.Second

// LockFile waits for the lock of a file, or for the end of ctx. A missing file is created. The
// file stays: removing it could remove one that another process is waiting for.
func LockFile(ctx context.Context, name string) (unlock func(), err error) {
	return lock(ctx, flock.New(name))
}

// Lock implements tree.Local. Parts of one root have the same lock.
func (d Folder) Lock(ctx context.Context) (unlock func(), err error) {
	none := func() {}
	if d.Disk == "" {
		return none, nil
	}
	// A lock of the folder itself needs no right to write, and leaves no file behind. After some
	// errors, flock would open a file with these permissions once more to write, which a folder
	// refuses with another error.
	folder := flock.New(d.Disk, flock.SetFlag(os.O_RDONLY), flock.SetPermissions(fs.ModeIrregular))
	if runtime.GOOS == "windows" { // it has locks of files alone
		folder = flock.New(filepath.Join(d.Disk, ".registry.lock"))
	}
	unlock, err = lock(ctx, folder)
	switch {
	case err == nil, errors.Is(err, ErrLocked), ctx.Err() != nil:
		return unlock, err
	case folderHasNoLocks(err):
		return none, nil
	}
	return nil, fmt.Errorf("locking the folder: %w", tree.WithoutPath(err))
}

// folderHasNoLocks reports whether locking a folder failed because its file system has no locks, or
// none of what is not open for writing, as NFS. After any other failure, another process may have the lock.
func folderHasNoLocks(err error) bool {
	if runtime.GOOS == "windows" {
		const invalidFunction = syscall.Errno(1) // of shares without locks
		// Who may change the folder of an address alone cannot make the file.
		return hasNoLocks(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, invalidFunction)
	}
	return hasNoLocks(err) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EBADF)
}

func lock(ctx context.Context, l *flock.Flock) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience, ErrLocked)
	defer cancel()
	if _, err := l.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return func() { l.Close() }, nil
}
