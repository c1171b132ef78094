package tree

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// Content is what a big package holds.
type Content int

const (
	// Program compresses to less than half, like the program that Go makes of
	// a provider.
	Program Content = iota

	// Noise does not compress, and is stored as it is.
	Noise
)

func (c Content) method() uint16 {
	if c == Noise {
		return zip.Store
	}
	return zip.Deflate
}

// end is an empty last block of a deflate stream.
func (c Content) end() []byte {
	if c == Noise {
		return nil
	}
	return []byte{0x03, 0x00}
}

// A piece is a part of a file. Packed pieces begin and end at a byte and refer
// to nothing before them, so any sequence of them is a deflate stream.
type piece struct{ plain, packed []byte }

const (
	pieceSize  = 1 << 20
	pieceCount = 16
)

var (
	programPieces = sync.OnceValues(func() ([]piece, error) { return makePieces(Program) })
	noisePieces   = sync.OnceValues(func() ([]piece, error) { return makePieces(Noise) })
)

func piecesOf(c Content) ([]piece, error) {
	if c == Noise {
		return noisePieces()
	}
	return programPieces()
}

func makePieces(c Content) ([]piece, error) {
	random := rand.New(rand.NewChaCha8([32]byte{byte(c)}))
	words := makeWords(random)
	var pieces []piece
	for range pieceCount {
		var p piece
		if c == Noise {
			p.plain = noise(random, pieceSize)
			p.packed = p.plain
		} else {
			p.plain = program(random, words)
			var err error
			if p.packed, err = pack(p.plain); err != nil {
				return nil, err
			}
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

func pack(plain []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err = w.Flush() // not Close: more follows
	return b.Bytes(), err
}

func noise(random *rand.Rand, size int) []byte {
	b := make([]byte, 0, size+8)
	for len(b) < size {
		b = binary.LittleEndian.AppendUint64(b, random.Uint64())
	}
	return b[:size]
}

// makeWords are what machine code repeats: instruction sequences and symbols.
func makeWords(random *rand.Rand) [][]byte {
	words := make([][]byte, 1<<12)
	for i := range words {
		words[i] = noise(random, 4+random.IntN(20))
	}
	return words
}

// program is words, the first ones most often, with operands in between.
func program(random *rand.Rand, words [][]byte) []byte {
	often := rand.NewZipf(random, 1.1, 8, uint64(len(words)-1))
	b := make([]byte, 0, pieceSize+32)
	for len(b) < pieceSize {
		b = append(b, words[often.Uint64()]...)
		if random.IntN(5) == 0 {
			b = append(b, byte(random.Uint32()), byte(random.Uint32()))
		}
	}
	return b[:pieceSize]
}
