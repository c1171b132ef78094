package indextest

import (
	"strings"

	"github.com/spf13/afero"
)

// A Gate is a file system that holds back zips with the text Path in their path, which may be empty:
// each can be opened once Opened yields a value or is closed.
type Gate struct {
	afero.Fs
	Path   string
	Opened chan struct{}
}

// Open implements afero.Fs.
func (g Gate) Open(name string) (afero.File, error) {
	if strings.Contains(name, g.Path) && strings.HasSuffix(name, ".zip") {
		<-g.Opened
	}
	return g.Fs.Open(name)
}
