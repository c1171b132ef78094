package main

import (
	"archive/zip"
	"compress/flate"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
)

// writeZip writes a provider package. Its binary is the line seed and, if size is not
// 0, a part of the content or more than all of it, so that the zip has about size bytes.
func writeZip(w io.Writer, binary, seed string, size int64, content func() ([]byte, error)) error {
	written := &counter{Writer: w}
	z := zip.NewWriter(written)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	header := &zip.FileHeader{Name: binary, Modified: modified}
	header.SetMode(0o755)
	if size > 0 {
		header.Method = zip.Deflate
	}
	entry, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(entry, seed+"\n"); err != nil {
		return err
	}
	for written.bytes < size {
		content, err := content()
		if err != nil {
			return err
		}
		for piece := range slices.Chunk(content, 1<<20) {
			if written.bytes >= size {
				break
			}
			if _, err := entry.Write(piece); err != nil {
				return err
			}
		}
	}
	return z.Close()
}

// program is this program, as good an example as any provider.
var program = sync.OnceValues(func() ([]byte, error) {
	file, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// noise does not compress.
var noise = sync.OnceValues(func() ([]byte, error) {
	content := make([]byte, 16<<20)
	_, err := rand.NewChaCha8([32]byte{}).Read(content)
	return content, err
})

// A counter counts what is written.
type counter struct {
	io.Writer
	bytes int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.bytes += int64(n)
	return n, err
}
