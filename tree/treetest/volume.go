package treetest

import (
	"os"
	"testing"
)

// Unmount leaves an empty directory in place of a directory, as when a volume is not mounted any
// more. mount brings the files back. It fails the test if something was written meanwhile.
func Unmount(t testing.TB, dir string) (mount func()) {
	t.Helper()
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	volume := dir + ".volume"
	try(os.Rename(dir, volume))
	try(os.Mkdir(dir, 0o755))
	return func() {
		t.Helper()
		if err := os.Remove(dir); err != nil {
			t.Errorf("the empty directory cannot be removed: %v", err)
			try(os.RemoveAll(dir))
		}
		try(os.Rename(volume, dir))
	}
}

// Unmount is Unmount for all files of the bucket.
func (b *Bucket) Unmount(t testing.TB) (mount func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	objects := b.objects
	b.objects = make(map[string]object)
	return func() {
		t.Helper()
		if names := b.Names(); len(names) > 0 {
			t.Errorf("the empty bucket has %q", names)
		}
		b.mutex.Lock()
		defer b.mutex.Unlock()
		b.objects = objects
	}
}
