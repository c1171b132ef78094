package disk

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestFreeSpace(t *testing.T) {
	dir := t.TempDir()
	free, err := FreeSpace(filepath.Join(dir, "not", "there", "yet"))
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("free space is not known on this system")
	}
	if err != nil || free <= 0 {
		t.Errorf("got %d, %v", free, err)
	}
	if _, err := FreeSpace("a\x00b"); err == nil {
		t.Error("an invalid path has free space")
	}
}
