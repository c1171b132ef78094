package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// craftedEntry is an entry of a crafted zip.
type craftedEntry struct {
	name, localName string // localName: in its own header, if it differs
	method          uint16
	flags           uint16
	localFlags      uint16 // in its own header, if they differ
	content, packed []byte // packed: the bytes in the zip, if they differ
	size            uint32 // if it is not the size of the content
	checksum        uint32 // if it is not the checksum of the content
	descriptor      []byte // after the packed bytes
	extra           []byte // in its own header
	at              int    // the offset of its header in the directory, if positive
	packedSize      uint32 // in the directory, if it differs
	attributes      uint32
}

// craft makes a zip that no program makes.
func craft(before string, entries []craftedEntry, between, after string) []byte {
	var b, directory bytes.Buffer
	put := func(to *bytes.Buffer, values ...any) {
		for _, v := range values {
			binary.Write(to, binary.LittleEndian, v)
		}
	}
	b.WriteString(before)
	for _, e := range entries {
		packed, size, checksum, local, at := e.packed, e.size, e.checksum, e.localName, b.Len()
		if packed == nil {
			packed = e.content
		}
		if size == 0 {
			size = uint32(len(e.content))
		}
		if checksum == 0 {
			checksum = crc32.ChecksumIEEE(e.content)
		}
		if local == "" {
			local = e.name
		}
		if e.at > 0 {
			at = e.at
		}
		own := e.flags
		if e.localFlags != 0 {
			own = e.localFlags
		}
		described := own&hasDescriptor != 0
		put(&b, []byte(entrySignature), uint16(20), own, e.method, uint32(0))
		if described {
			put(&b, uint32(0), uint32(0), uint32(0))
		} else {
			put(&b, checksum, uint32(len(packed)), size)
		}
		put(&b, uint16(len(local)), uint16(len(e.extra)), []byte(local), e.extra, packed, e.descriptor)
		packedSize := e.packedSize
		if packedSize == 0 {
			packedSize = uint32(len(packed))
		}
		put(&directory, []byte("PK\x01\x02"), uint16(madeOnUnix<<8|20), uint16(20), e.flags, e.method, uint32(0), checksum, packedSize, size,
			uint16(len(e.name)), uint16(0), uint16(0), uint16(0), uint16(0), e.attributes, uint32(at), []byte(e.name))
	}
	b.WriteString(between)
	at := b.Len()
	b.Write(directory.Bytes())
	put(&b, []byte("PK\x05\x06"), uint32(0), uint16(len(entries)), uint16(len(entries)), uint32(directory.Len()), uint32(at), uint16(len(after)), []byte(after))
	return b.Bytes()
}

// deflated packs a content.
func deflated(content string) []byte {
	z := zipOf("a", content)
	r, err := zip.NewReader(bytes.NewReader(z), int64(len(z)))
	if err != nil {
		panic(err)
	}
	raw, err := r.File[0].OpenRaw()
	if err != nil {
		panic(err)
	}
	b, err := io.ReadAll(raw)
	if err != nil {
		panic(err)
	}
	return b
}

// fields returns numbers as a zip has them.
func fields(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		binary.Write(&b, binary.LittleEndian, v)
	}
	return b.Bytes()
}

const program = "a provider\na provider\na provider\n"

// zipsByHand are zips that are not as they should be, or seldom are. All of them are small.
func zipsByHand() map[string][]byte {
	const mode = 0o100755 << 16
	body := deflated(program)
	sum, packed, size := crc32.ChecksumIEEE([]byte(program)), uint32(len(body)), uint32(len(program))
	entry := craftedEntry{name: binaryName, method: zip.Deflate, content: []byte(program), packed: body, attributes: mode}
	with := func(change func(*craftedEntry)) craftedEntry {
		e := entry
		change(&e)
		return e
	}
	described := func(descriptor []byte) craftedEntry {
		return with(func(e *craftedEntry) { e.flags, e.descriptor = hasDescriptor, descriptor })
	}
	tf := craftedEntry{name: "main.tf", content: []byte("variable \"a\" {}\n"), attributes: 0o100644 << 16}
	one := func(e craftedEntry) []byte { return craft("", []craftedEntry{e, tf}, "", "") }
	signature := []byte(descriptorSignature)
	quoted := craft("", []craftedEntry{entry, tf}, "", "")
	all := map[string][]byte{
		"as it should be":                       one(entry),
		"bytes before":                          craft("#!/bin/sh\n", []craftedEntry{entry, tf}, "", ""),
		"bytes between the entries and the end": craft("", []craftedEntry{entry, tf}, "hidden", ""),
		"another entry that is not listed":      craft(string(one(entry)[:len(body)+30+len(binaryName)]), []craftedEntry{tf, entry}, "", ""),
		"a comment":                             craft("", []craftedEntry{entry, tf}, "", "a comment"),
		"bytes behind":                          append(one(entry), "garbage"...),
		"two zips, one behind the other":        append(zipOf(binaryName, "other"), one(entry)...),
		"a zip in the comment":                  craft("", []craftedEntry{entry, tf}, "", string(zipOf(binaryName, "other"))),
		"another name in its own header":        one(with(func(e *craftedEntry) { e.localName = "terraform-provider-demo_v6.6.6" })),
		"a longer name in its own header":       one(with(func(e *craftedEntry) { e.localName = "../../terraform-provider-demo_v6.6.6" })),
		"a name that leaves":                    one(with(func(e *craftedEntry) { e.name = "../" + binaryName })),
		"a name that leaves, in its own header": one(with(func(e *craftedEntry) { e.localName = "../" + binaryName })),
		"one name twice":                        craft("", []craftedEntry{entry, with(func(e *craftedEntry) { e.content, e.packed = []byte("other"), deflated("other") }), tf}, "", ""),
		"one name twice, in the other order":    craft("", []craftedEntry{with(func(e *craftedEntry) { e.content, e.packed = []byte("other"), deflated("other") }), entry, tf}, "", ""),
		"a content that is listed twice":        craft("", []craftedEntry{entry, with(func(e *craftedEntry) { e.name, e.at = "copy", -1 }), tf}, "", ""),
		"stored":                                one(with(func(e *craftedEntry) { e.method, e.packed = zip.Store, nil })),
		"stored, with a wrong size":             one(with(func(e *craftedEntry) { e.method, e.packed, e.size = zip.Store, nil, 3 })),
		"stored, with a descriptor": one(with(func(e *craftedEntry) {
			e.method, e.packed, e.flags, e.descriptor = zip.Store, nil, hasDescriptor, fields(signature, sum, size, size)
		})),
		"a descriptor":                                  one(described(fields(signature, sum, packed, size))),
		"a descriptor without its signature":            one(described(fields(sum, packed, size))),
		"a descriptor of a zip64":                       one(described(fields(signature, sum, uint64(packed), uint64(size)))),
		"such a one without its signature":              one(described(fields(sum, uint64(packed), uint64(size)))),
		"a descriptor with another checksum":            one(described(fields(signature, sum+1, packed, size))),
		"a descriptor with another size":                one(described(fields(signature, sum, packed, size+1))),
		"a descriptor of nothing but a checksum":        one(described(fields(signature, sum))),
		"a descriptor that only the directory tells of": one(with(func(e *craftedEntry) { e.flags, e.localFlags = hasDescriptor, 1<<11 })),
		"a descriptor that the directory does not tell of": one(with(func(e *craftedEntry) {
			e.localFlags, e.descriptor = hasDescriptor, fields(signature, sum, packed, size)
		})),
		"no descriptor":                       one(described(nil)),
		"half a descriptor":                   one(described(fields(signature, sum, packed)[:9])),
		"another checksum":                    one(with(func(e *craftedEntry) { e.checksum = 1 })),
		"too large":                           one(with(func(e *craftedEntry) { e.size = size + 1 })),
		"too small":                           one(with(func(e *craftedEntry) { e.size = size - 1 })),
		"more packed bytes than are needed":   one(with(func(e *craftedEntry) { e.packed = append(bytes.Clone(body), "more"...) })),
		"fewer packed bytes in the directory": one(with(func(e *craftedEntry) { e.packedSize = packed - 2 })),
		"more packed bytes in the directory":  one(with(func(e *craftedEntry) { e.packedSize = packed + 10 })),
		"packed bytes that end too early":     one(with(func(e *craftedEntry) { e.packed = body[:len(body)-2] })),
		"packed bytes that are damaged":       one(with(func(e *craftedEntry) { e.packed = bytes.Repeat([]byte{0xa5}, len(body)) })),
		"encrypted":                           one(with(func(e *craftedEntry) { e.flags = isEncrypted })),
		"another method":                      one(with(func(e *craftedEntry) { e.method = 12 })),
		"an extra field":                      one(with(func(e *craftedEntry) { e.extra = fields(uint16(0xcafe), uint16(4), uint32(7)) })),
		"sizes in an extra field":             one(with(func(e *craftedEntry) { e.extra = fields(uint16(1), uint16(16), uint64(size), uint64(packed)) })),
		"an entry in the directory's middle":  one(with(func(e *craftedEntry) { e.at = len(quoted) - 60 })),
		"an entry in another's content":       one(with(func(e *craftedEntry) { e.at = 10 })),
		"a folder with a content":             craft("", []craftedEntry{entry, tf, {name: "docs/", content: []byte("x")}}, "", ""),
		"a folder with a packed content":      craft("", []craftedEntry{entry, tf, {name: "docs/", method: zip.Deflate, packed: deflated("x")}}, "", ""),
		"a folder by its mode":                craft("", []craftedEntry{entry, tf, {name: "docs", attributes: 0o40755 << 16}}, "", ""),
		"a folder that looks like values":     craft("", []craftedEntry{entry, tf, {name: "prod.tfvars/", attributes: 0o40755 << 16}}, "", ""),
		"a symlink":                           craft("", []craftedEntry{entry, tf, {name: "link", content: []byte("main.tf"), attributes: 0o120777 << 16}}, "", ""),
		"no entry":                            craft("", nil, "", ""),
		"nothing but headers":                 quoted[:len(quoted)-22],
		"a private key":                       craft("", []craftedEntry{entry, tf, {name: "k", content: []byte("-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("QUJD", 12) + "\n")}}, "", ""),
		"a state":                             zipOf("main.tf", "x", "terraform.tfstate", "{}", binaryName, program),
		"a module that does not parse":        zipOf("main.tf", "resource {", binaryName, program),
		"values":                              zipOf("main.tf", "", "prod.tfvars", "a = 1", "README.md", "# VPC\n\nA VPC.", binaryName, program),
		"only in a folder":                    zipOf("vpc/main.tf", "variable \"a\" {}", "vpc/modules/a/main.tf", "", "vpc/"+binaryName, program),
		"no zip":                              []byte("<html>404 not found</html>"),
		"the end of a zip64":                  zip64End(0, 1<<40),
		"the end of a zip64 of nothing":       zip64End(0, 0),
		"a wrong size in the directory":       declaring(100, 10),
	}
	// Quoted overlap (David Fifield's bomb): the content of the first is the header of the
	// second in a stored block, and then the content of the second.
	inner := craft("", []craftedEntry{entry}, "", "")[:30+len(binaryName)+len(body)]
	quote := fields(uint8(0), uint16(30+len(binaryName)), ^uint16(30+len(binaryName)))
	overlapping := append(bytes.Clone(quote), inner...)
	all["quoted overlap"] = craft("", []craftedEntry{
		{name: "a", method: zip.Deflate, packed: overlapping, content: append(bytes.Clone(inner[:30+len(binaryName)]), program...)},
		with(func(e *craftedEntry) { e.at = 31 + len(quote) }), tf,
	}, "", "")
	return all
}

// largeZips are bombs, and zips at the limits.
func largeZips() map[string][]byte {
	many := func(n int) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := range n {
			z.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i, "/")})
		}
		w, _ := z.Create(binaryName)
		io.WriteString(w, program)
		z.Close()
		return b.Bytes()
	}
	bomb := deflated(strings.Repeat("\x00", 32<<20))
	var same []craftedEntry
	for i := range 20 {
		same = append(same, craftedEntry{name: fmt.Sprint(i), method: zip.Deflate, packed: bomb, size: 32 << 20, checksum: 1})
	}
	return map[string][]byte{
		"as many entries as there may be": many(maxEntries - 1),
		"65,535 entries":                  many(65_534),
		"more entries than 65,535":        many(70_000),
		"a bomb":                          craft("", same, "", ""),
		"a bomb that claims to be small": craft("", []craftedEntry{
			{name: binaryName, method: zip.Deflate, packed: bomb, size: 10, checksum: 1},
			{name: "b", method: zip.Deflate, packed: bomb, size: 10, checksum: 1},
		}, "", ""),
		"a large file": zipOf(binaryName, strings.Repeat("0123456789abcdef", 1<<18), "main.tf", ""),
	}
}

// recordedZips are zips made by programs.
func recordedZips(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "zips", "*.zip"))
	if err != nil || len(files) < 10 {
		t.Fatalf("there are %v, %v", files, err)
	}
	all := make(map[string][]byte)
	for _, name := range files {
		if all[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// tarsOfAllKinds are packages of modules in the other format. All of them are small.
func tarsOfAllKinds() map[string][]byte {
	good := gzipOf(tarOfFiles("main.tf", "variable \"a\" {}\n", "README.md", "# VPC\n\nA VPC."))
	damaged := bytes.Clone(good)
	damaged[len(damaged)/2] ^= 0xff
	return map[string][]byte{
		"a module":           good,
		"damaged":            damaged,
		"bytes behind":       append(bytes.Clone(good), "garbage"...),
		"two gzips":          append(bytes.Clone(good), gzipOf([]byte("x"))...),
		"no module":          gzipOf(tarOfFiles("README.md", "x")),
		"a state":            gzipOf(tarOfFiles("main.tf", "", "terraform.tfstate", "{}")),
		"a name that leaves": gzipOf(tarOf(named("../main.tf")...)),
		"no tar":             gzipOf([]byte(strings.Repeat("no tar", 200))),
		"no gzip":            tarOfFiles("main.tf", ""),
		"a folder":           gzipOf(tarOf(named("vpc/", "vpc/main.tf")...)),
		"a link":             gzipOf(tarOf(tar.Header{Name: "main.tf", Typeflag: tar.TypeReg}, tar.Header{Name: "b.tf", Typeflag: tar.TypeSymlink, Linkname: "main.tf"})),
		"a file and folder":  gzipOf(tarOf(named("main.tf", "docs", "docs/index.md")...)),
		"a file with holes":  withSparse("disk.img", 1<<20, "x"),
		"an unknown type":    gzipOf(tarOf(tar.Header{Name: "main.tf", Typeflag: tar.TypeReg}, tar.Header{Name: "x", Typeflag: 'Z', Size: 1})),
		"a link that leaves": gzipOf(tarOf(tar.Header{Name: "main.tf", Typeflag: tar.TypeReg}, tar.Header{Name: "b", Typeflag: tar.TypeSymlink, Linkname: "../x"})),
	}
}

// largeTar is a package of a module that unpacks to more than any package may.
func largeTar() []byte {
	headers := append(tarHeader(tar.Header{Name: "main.tf", Typeflag: tar.TypeReg}), tarHeader(tar.Header{Name: "large", Typeflag: tar.TypeReg, Size: freeUnpacked + 1})...)
	return append(append(gzipOf(headers), zerosOf(freeUnpacked)...), gzipOf(make([]byte, 3*tarBlock))...)
}

// An outcome is the result of a check for its caller.
type outcome struct {
	digest any
	err    string
}

func outcomeOf(digest any, err error) outcome {
	if err == nil {
		return outcome{digest, ""}
	}
	var bad *PackageError
	errors.As(err, &bad)
	return outcome{digest, fmt.Sprintf("%#v: %v", bad, err)}
}

// inPieces writes a content in pieces of random sizes.
func inPieces(to io.Writer, content []byte, random *rand.Rand) {
	for len(content) > 0 {
		n := 1 + random.IntN(min(len(content), 1<<random.IntN(18)))
		to.Write(content[:n])
		content = content[n:]
	}
}

var onLinux = address.Platform{OS: "linux", Arch: "amd64"}

// checksAgree checks a package in all ways, and compares the outcomes with the one of a file
// that nothing is known of but its sha256.
func checksAgree(t *testing.T, content []byte, random *rand.Rand, check func(a *Arriving, f afero.File, size int64, known wire.SHA256) (any, error), begin func() *Arriving) outcome {
	t.Helper()
	size, sum := int64(len(content)), wire.SHA256Of(content)
	from := outcomeOf(check(nil, fileOf(content), size, sum))
	if whole := outcomeOf(check(nil, fileOf(content), size, wire.SHA256{})); !reflect.DeepEqual(whole, from) {
		t.Errorf("walked while it is hashed: %+v\nfrom the file: %+v", whole, from)
	}
	a := begin()
	defer a.Close()
	inPieces(a, content, random)
	if arrived := outcomeOf(check(a, fileOf(content), size, sum)); !reflect.DeepEqual(arrived, from) {
		t.Errorf("while it arrives: %+v\nfrom the file: %+v", arrived, from)
	}
	return from
}

func packagesAgree(t *testing.T, content []byte, random *rand.Rand) outcome {
	t.Helper()
	return checksAgree(t, content, random, func(a *Arriving, f afero.File, size int64, known wire.SHA256) (any, error) {
		return a.CheckPackage(context.Background(), f, size, "demo", onLinux, known)
	}, NewArrivingPackage)
}

func modulesAgree(t *testing.T, name string, content []byte, random *rand.Rand) outcome {
	t.Helper()
	return checksAgree(t, content, random, func(a *Arriving, f afero.File, size int64, known wire.SHA256) (any, error) {
		d, err := a.CheckModule(context.Background(), f, size, name, known)
		return d, err
	}, func() *Arriving { return NewArrivingModule(name) })
}

// Whatever an archive is like, checking it while it arrives has the same outcome as reading
// the file: the digest, the doubts, or the refusal.
func TestArrivingPackagesAreCheckedLikeFiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	small := zipsByHand()
	maps.Copy(small, recordedZips(t))
	for _, rule := range slices.Sorted(maps.Keys(small)) {
		t.Run(rule, func(t *testing.T) {
			content := small[rule]
			packagesAgree(t, content, random)
			modulesAgree(t, "1.0.0.zip", content, random)
			modulesAgree(t, "1.0.0.tar.gz", content, random)
			if testing.Short() {
				return
			}
			for n := range content { // as of an upload that was cut off
				packagesAgree(t, content[:n], random)
				modulesAgree(t, "1.0.0.zip", content[:n], random)
				if t.Failed() {
					t.Fatalf("cut off after %d bytes", n)
				}
			}
		})
	}
	for rule, content := range tarsOfAllKinds() {
		t.Run("tar: "+rule, func(t *testing.T) {
			modulesAgree(t, "1.0.0.tar.gz", content, random)
			modulesAgree(t, "1.0.0.tgz", content, random)
			for n := range content {
				if n < 1000 && !testing.Short() {
					modulesAgree(t, "1.0.0.tar.gz", content[:n], random)
				}
			}
		})
	}
	t.Run("tar: a file that is nearly all holes", func(t *testing.T) {
		modulesAgree(t, "1.0.0.tar.gz", withSparse("disk.img", 8<<30-1, "x"), random)
	})
	t.Run("tar: a pipe that says it is large", func(t *testing.T) {
		pipe := tarHeader(tar.Header{Name: "p", Typeflag: tar.TypeFifo, Size: freeUnpacked + 1})
		if o := modulesAgree(t, "1.0.0.tar.gz", gzipOf(append(pipe, tarOfFiles("main.tf", "")...)), random); o.err == "" {
			t.Error("it is accepted")
		}
	})
	t.Run("tar: more than may be first", func(t *testing.T) { modulesAgree(t, "1.0.0.tar.gz", largeTar(), random) })
	if testing.Short() {
		return
	}
	for rule, content := range largeZips() {
		t.Run(rule, func(t *testing.T) {
			packagesAgree(t, content, random)
			modulesAgree(t, "1.0.0.zip", content, random)
		})
	}
}

// manyZeros makes a .tar.gz that unpacks to more than its first bytes alone would allow.
func manyZeros(noise string) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	t := tar.NewWriter(z)
	zeros := make([]byte, 1<<20)
	add := func(name string, n int, content []byte) {
		t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(n * len(content))})
		for range n {
			t.Write(content)
		}
	}
	add("main.tf", 0, nil)
	add("noise", 3<<20/len(noise), []byte(noise))
	add("zeros", freeUnpacked>>20, zeros)
	t.Close()
	z.Close()
	return b.Bytes()
}

// The content of packages as usual programs make them is not read from the file. Of others it
// is. A file that nothing is known of is read once.
func TestWhichPackagesAreNotReadAgain(t *testing.T) {
	noise := make([]byte, 256<<10)
	rand.NewChaCha8([32]byte{}).Read(noise)
	body := string(noise)
	releaser := func() []byte { // as GoReleaser packs
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, name := range []string{"LICENSE", "README.md", binaryName} {
			h := &zip.FileHeader{Name: name, Method: zip.Deflate}
			h.SetMode(0o755)
			w, _ := z.CreateHeader(h)
			io.WriteString(w, body)
		}
		z.Close()
		return b.Bytes()
	}()
	stored := craft("", []craftedEntry{{name: binaryName, content: noise, attributes: 0o100755 << 16}, {name: "main.tf", content: []byte("")}}, "", "")
	module := zipOf("main.tf", "", "README.md", body)
	type row struct {
		rule    string
		module  string // its name; empty: a provider's package
		content []byte
		again   bool
	}
	rows := []row{
		{"GoReleaser's", "", releaser, false},
		{"stored", "", stored, false},
		{"bytes before", "", append([]byte("#!"), releaser...), true},
		{"a module's zip", "1.0.0.zip", zipOf("main.tf", "variable \"a\" {}", "README.md", body), false},
		{"a module's zip with an empty file of unknown size", "1.0.0.zip", module, true},
		{"a module's tar", "1.0.0.tar.gz", gzipOf(tarOfFiles("main.tf", "", "README.md", body)), false},
	}
	if !testing.Short() {
		rows = append(rows, row{"a module's tar that unpacks to much", "1.0.0.tar.gz", manyZeros(body), false})
	}
	for _, test := range rows {
		t.Run(test.rule, func(t *testing.T) {
			var read atomic.Int64
			f, size := treetest.CountedFile{File: fileOf(test.content), Bytes: &read}, int64(len(test.content))
			a, check := NewArrivingPackage(), func(a *Arriving, known wire.SHA256) error {
				_, err := a.CheckPackage(t.Context(), f, size, "demo", onLinux, known)
				return err
			}
			if test.module != "" {
				a, check = NewArrivingModule(test.module), func(a *Arriving, known wire.SHA256) error {
					_, err := a.CheckModule(t.Context(), f, size, test.module, known)
					return err
				}
			}
			defer a.Close()
			a.Write(test.content)
			err := check(a, wire.SHA256Of(test.content))
			if again := read.Load() > int64(len(noise)/2); err != nil || again != test.again {
				t.Errorf("%d bytes of %d were read from the file, %v", read.Load(), size, err)
			}
			read.Store(0)
			err = check(nil, wire.SHA256{})
			if again := read.Load() > size+int64(len(noise)/2); err != nil || again != test.again {
				t.Errorf("%d bytes of %d were read of a file that nothing is known of, %v", read.Load(), size, err)
			}
		})
	}
}

// A sender is not slowed down by a package whose walk has ended, and a package that is given
// up leaves no goroutine waiting.
func TestArrivingPackagesThatAreNotWalked(t *testing.T) {
	noise := bytes.Repeat([]byte("no zip"), 2*arrivingChunk*arrivingChunks)
	a := NewArrivingPackage()
	if n, err := a.Write(noise); n != len(noise) || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	a.Close()
	a.Close()
	<-a.done

	b := NewArrivingPackage()
	b.Write(zipOf(binaryName, strings.Repeat(program, 1000))[:100])
	b.Close()
	<-b.done

	NewArrivingPackage().Close()
}

// A file that was not watched while it arrived is read.
func TestNothingArrives(t *testing.T) {
	content := zipOf(binaryName, program)
	var a *Arriving
	defer a.Close()
	if n, err := a.Write(content); n != len(content) || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	for _, known := range []wire.SHA256{{}, wire.SHA256Of(content)} {
		d, err := a.CheckPackage(t.Context(), fileOf(content), int64(len(content)), "demo", onLinux, known)
		if err != nil || d.SHA256 != wire.SHA256Of(content) || len(d.FileHashes) == 0 {
			t.Errorf("got %+v, %v", d, err)
		}
	}
	if _, err := a.CheckModule(t.Context(), fileOf(content), int64(len(content)), "1.0.0.zip", wire.SHA256{}); err == nil {
		t.Error("a module without configuration is accepted")
	}
}

// The memory for packages that arrive is used again.
func TestArrivingPackagesShareMemory(t *testing.T) {
	const packages, most = 20, arrivingChunk * arrivingChunks
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	content := make([]byte, most)
	for range packages {
		arrived := make(chan struct{})
		a := newArriving(func(r io.Reader) walked {
			<-arrived
			io.Copy(io.Discard, r)
			return walked{}
		})
		a.Write(content)
		close(arrived)
		if _, err := a.wait(t.Context(), most); err != nil {
			t.Fatal(err)
		}
		a.Close()
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > packages*most/2 {
		t.Errorf("%d bytes were allocated for %d of %d packages", n, most, packages)
	}
}

// A walk that panics has seen nothing.
func TestWalksThatPanic(t *testing.T) {
	content := zipOf(binaryName, program)
	a := newArriving(func(io.Reader) walked { panic("a parser has failed") })
	defer a.Close()
	a.Write(content)
	d, err := a.CheckPackage(t.Context(), fileOf(content), int64(len(content)), "demo", onLinux, wire.SHA256Of(content))
	if err != nil || len(d.FileHashes) == 0 {
		t.Errorf("got %+v, %v", d, err)
	}
}

// A package of other bytes than have arrived is read from the file.
func TestArrivingPackagesOfAnotherSize(t *testing.T) {
	content := zipOf(binaryName, program)
	a := NewArrivingPackage()
	defer a.Close()
	a.Write(content[:len(content)-1])
	d, err := a.CheckPackage(t.Context(), fileOf(content), int64(len(content)), "demo", onLinux, wire.SHA256Of(content))
	if err != nil || len(d.FileHashes) == 0 {
		t.Errorf("got %+v, %v", d, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := newArriving(func(io.Reader) walked { <-t.Context().Done(); return walked{} })
	c.Write(content)
	if _, err := c.CheckPackage(ctx, fileOf(content), int64(len(content)), "demo", onLinux, wire.SHA256Of(content)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzArriving(f *testing.F) {
	for _, content := range zipsByHand() {
		f.Add(content, uint64(0))
	}
	for _, content := range recordedZips(f) {
		f.Add(content, uint64(1))
	}
	for _, content := range tarsOfAllKinds() {
		f.Add(content, uint64(2))
	}
	f.Fuzz(func(t *testing.T, content []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, seed))
		packagesAgree(t, content, random)
		modulesAgree(t, "1.0.0.zip", content, random)
		modulesAgree(t, "1.0.0.tar.gz", content, random)
	})
}
