package archive

import (
	"bufio"
	"bytes"
	standard "compress/flate"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
)

// inflaters unpack one content after the other, since making them takes longer than unpacking.
type inflaters struct {
	standard io.ReadCloser
	other    flateReader
	byLittle *bufio.Reader
	asWalked *bufio.Reader
	byMuch   *bufio.Reader
}

func newInflaters() *inflaters {
	return &inflaters{
		standard: standard.NewReader(strings.NewReader("")), other: flate.NewReader(strings.NewReader("")).(flateReader),
		byLittle: bufio.NewReaderSize(nil, 64), asWalked: bufio.NewReaderSize(nil, 4096), byMuch: bufio.NewReaderSize(nil, 64<<10),
	}
}

// Zips are unpacked by another package than the one that clients use, since it is faster. For
// any bytes, both must unpack the same, refuse the same, and end at the same byte: what follows
// is the next entry.
func (in *inflaters) alike(t *testing.T, packed []byte) {
	t.Helper()
	inflate := func(r *bufio.Reader, from io.Reader) (content []byte, failed bool, left int) {
		r.Reset(bytes.NewReader(packed))
		from.(flate.Resetter).Reset(r, nil)
		content, err := io.ReadAll(io.LimitReader(from, 1<<20))
		rest, _ := io.Copy(io.Discard, r)
		return content, err != nil, int(rest)
	}
	want, refused, left := inflate(in.byLittle, in.standard)
	if len(want) == 1<<20 {
		return // both were stopped somewhere
	}
	for _, r := range []*bufio.Reader{in.byLittle, in.byMuch} {
		got, failed, rest := inflate(r, in.other)
		switch {
		case failed != refused:
			t.Fatalf("%x is refused: %t, by the standard library: %t", packed, failed, refused)
		case !failed && (!bytes.Equal(got, want) || rest != left):
			t.Fatalf("%x is %d bytes, and %d are left; for the standard library it is %d, and %d are left", packed, len(got), rest, len(want), left)
		}
	}
	// As a walk reads it.
	var to bytes.Buffer
	in.asWalked.Reset(bytes.NewReader(packed))
	in.other.Reset(in.asWalked, nil)
	_, err := in.other.WriteTo(&to)
	if rest, _ := io.Copy(io.Discard, in.asWalked); (err != nil) != refused || err == nil && (!bytes.Equal(to.Bytes(), want) || int(rest) != left) {
		t.Fatalf("%x is %d bytes, and %d are left, %v; for the standard library it is %d, and %d are left", packed, to.Len(), rest, err, len(want), left)
	}
}

// packings are contents as they are packed by all kinds of blocks.
func packings(random *rand.Rand) (all [][]byte) {
	noise := make([]byte, 300)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for _, content := range []string{"", "a", program, strings.Repeat("\x00", 70_000), string(noise), strings.Repeat(string(noise), 150)} {
		for _, level := range []int{standard.HuffmanOnly, standard.NoCompression, standard.BestSpeed, standard.DefaultCompression, standard.BestCompression} {
			var b bytes.Buffer
			w, err := standard.NewWriter(&b, level)
			if err != nil {
				panic(err)
			}
			io.WriteString(w, content[:len(content)/2])
			if random.IntN(2) == 0 {
				w.Flush()
			}
			io.WriteString(w, content[len(content)/2:])
			w.Close()
			all = append(all, b.Bytes())
		}
	}
	return all
}

func TestInflatingIsThatOfTheStandardLibrary(t *testing.T) {
	random, in := rand.New(rand.NewPCG(3, 4)), newInflaters()
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	for _, packed := range packings(random) {
		in.alike(t, packed)
		in.alike(t, append(bytes.Clone(packed), "what follows"...))
		for range rounds {
			changed := bytes.Clone(packed)
			for range 1 + random.IntN(3) { // most of what is decided is in the first bytes
				changed[random.IntN(min(len(changed), 1+random.IntN(200)))] ^= 1 << random.IntN(8)
			}
			in.alike(t, changed)
			in.alike(t, append(changed[:random.IntN(len(changed))], "what follows"...))
		}
	}
	for range 100 * rounds {
		b := make([]byte, 1+random.IntN(60))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		in.alike(t, b)
	}
}

func FuzzInflate(f *testing.F) {
	for _, packed := range packings(rand.New(rand.NewPCG(3, 4))) {
		if len(packed) < 1000 {
			f.Add(packed)
		}
	}
	f.Fuzz(func(t *testing.T, packed []byte) { newInflaters().alike(t, packed) })
}
