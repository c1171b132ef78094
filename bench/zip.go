package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"
)

// writeZip writes a provider package. Its binary is the line seed and, if size is
// not 0, so much of a program that the zip has about size bytes. That is compressed
// once for all packages, so that writing is as fast as the disk.
func writeZip(w io.Writer, binary, seed string, size int64) error {
	z := zip.NewWriter(w)
	header := &zip.FileHeader{Name: binary, Modified: modified}
	header.SetMode(0o755)
	seed += "\n"
	if size == 0 {
		entry, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = io.WriteString(entry, seed)
		return errors.Join(err, z.Close())
	}
	program, err := pieces()
	if err != nil {
		return err
	}
	packed, err := pack([]byte(seed))
	if err != nil {
		return err
	}
	content := []piece{{[]byte(seed), packed}}
	for i := 0; size > 0; i++ {
		p := program[i%len(program)]
		content = append(content, p)
		size -= int64(len(p.packed))
	}
	// An empty last block of a deflate stream, which Flush leaves open.
	content = append(content, piece{packed: []byte{0x03, 0x00}})

	header.Method = zip.Deflate
	sum := crc32.NewIEEE() // of a raw entry, the checksum comes before it
	for _, p := range content {
		sum.Write(p.plain)
		header.UncompressedSize64 += uint64(len(p.plain))
		header.CompressedSize64 += uint64(len(p.packed))
	}
	header.CRC32 = sum.Sum32()
	entry, err := z.CreateRaw(header)
	if err != nil {
		return err
	}
	for _, p := range content {
		if _, err := entry.Write(p.packed); err != nil {
			return err
		}
	}
	return z.Close()
}

// A piece is a part of a file. Packed pieces begin and end at a byte and refer to
// nothing before them, so that any sequence of them is part of a deflate stream.
type piece struct{ plain, packed []byte }

// pieces are the beginning of this program, as good an example as any provider.
var pieces = sync.OnceValues(func() ([]piece, error) {
	const size, most = 1 << 20, 16
	file, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []piece
	for plain := range slices.Chunk(program[:min(len(program), most*size)], size) {
		packed, err := pack(plain)
		if err != nil {
			return nil, err
		}
		all = append(all, piece{plain, packed})
	}
	return all, nil
})

func pack(plain []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(plain)
	err = errors.Join(err, w.Flush())
	return b.Bytes(), err
}
