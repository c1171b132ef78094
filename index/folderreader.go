package index

import (
	"errors"
	"io"
	"path"

	"github.com/spf13/afero"
)

// A folderReader reads the files of a folder that is packed when it is asked for,
// for one reader at a time.
type folderReader struct {
	part    Part
	current afero.File // the one read last, kept open for the next read
	path    string
}

func (r *folderReader) Close() error {
	if r.current == nil {
		return nil
	}
	return r.current.Close()
}

func (r *folderReader) openFile(file *packedFile) (err error) {
	if r.current != nil && r.path == file.path {
		return nil
	}
	r.Close()
	r.path = file.path
	r.current, err = r.part.openUnchanged(file.path, file.stamp())
	return err
}

// readContent reads from the content of a file.
func (r *folderReader) readContent(p []byte, file *packedFile, offset int64) (int, error) {
	if err := r.openFile(file); err != nil {
		return 0, err
	}
	n, err := r.current.ReadAt(p[:min(int64(len(p)), file.size-offset)], offset)
	if n <= 0 && err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrChanged // shorter than it was
		}
		return 0, err
	}
	return n, nil
}

// readAcross fills p by calls of readSome, each of which reads up to a seam.
func readAcross(p []byte, offset int64, readSome func(p []byte, offset int64) (int, error)) (n int, err error) {
	for n < len(p) {
		m, err := readSome(p[n:], offset+int64(n))
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// filesUnchanged returns ErrChanged if a file is not the one any more that was
// packed. To list a folder costs a fraction of opening what is in it.
func (p Part) filesUnchanged(files []packedFile) error {
	stamps := make(map[string]stamp, len(files)) // of all in the folders listed
	listed := make(map[string]bool)
	for i := range files {
		file := &files[i]
		if dir := path.Dir(file.path); !listed[dir] {
			listed[dir] = true
			entries, err := p.list(dir)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if e.bad == nil {
					stamps[e.path] = stampOf(e.info)
				}
			}
		}
		if is, ok := stamps[file.path]; ok && is == file.stamp() {
			continue
		}
		f, err := p.openUnchanged(file.path, file.stamp()) // which knows what counts
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}
