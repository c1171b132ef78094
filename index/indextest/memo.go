package indextest

import (
	"bytes"
	"io"
	"io/fs"
)

// A Memo is a store of an index's memo, in memory.
type Memo struct {
	Content []byte // that was saved last; nil: nothing was
}

// Open implements memo.Store.
func (m *Memo) Open() (io.ReadSeekCloser, error) {
	if m.Content == nil {
		return nil, fs.ErrNotExist
	}
	return struct {
		io.ReadSeeker
		io.Closer
	}{bytes.NewReader(m.Content), io.NopCloser(nil)}, nil
}

// Save implements memo.Store.
func (m *Memo) Save(write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	m.Content = b.Bytes()
	return nil
}
