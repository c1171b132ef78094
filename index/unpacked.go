package index

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// unpackedZip is a zip as clients have it once they have unpacked it, by the
// cleaned paths of its files. Of two entries with one path the last one stays,
// with its content and its mode.
type unpackedZip map[string]*zip.File

// unpack finds out what clients unpack, and refuses what they cannot.
func unpack(entries []*zip.File) (unpackedZip, error) {
	files := make(unpackedZip, len(entries))
	names := make([]string, len(entries)) // of all, those of folders with a slash
	for i, entry := range entries {
		names[i] = path.Clean(entry.Name)
		if !entry.FileInfo().IsDir() {
			files[names[i]] = entry
		} else {
			names[i] += "/"
		}
	}
	// What is in a folder is behind its name in order. To go up from each file to
	// the root instead would take minutes for a megabyte of names that are long.
	slices.Sort(names)
	for name := range files {
		folder := name + "/"
		i, _ := slices.BinarySearch(names, folder)
		if name == "." || i < len(names) && strings.HasPrefix(names[i], folder) {
			return nil, found(BadArchive, "%.200q in it is a file and a folder, so that no client can unpack it: pack it again", name)
		}
	}
	return files, nil
}

// A programMode says whether clients can run the provider that they unpacked.
type programMode byte

const (
	programExecutable programMode = iota
	programNotExecutable
	programWithoutMode // the zip was made on a system without the executable bit
)

// program finds the provider as clients do once they have unpacked the zip: at
// its root, the first by name (checklist 58).
func (u unpackedZip) program(typ string) *zip.File {
	var first string
	for name := range u {
		if isProviderFile(name, typ) && (first == "" || name < first) {
			first = name
		}
	}
	return u[first]
}

// isProviderFile tells the names under which clients find a provider.
func isProviderFile(name, typ string) bool {
	rest, ok := strings.CutPrefix(name, providerPrefix+typ)
	return ok && !strings.Contains(rest, "/") && (rest == "" || rest[0] == '_' || rest[0] == '.')
}

// Who made a zip's entry, PKWARE's APPNOTE section 4.4.2. All others know no
// executable bit.
const (
	madeOnUnix  = 3
	madeOnMacOS = 19
)

// modeOf tells whether who unpacks a file may run it: unpacked by a client, it
// has the mode it was packed with.
func modeOf(program *zip.File) programMode {
	switch by := program.CreatorVersion >> 8; {
	case by != madeOnUnix && by != madeOnMacOS:
		return programWithoutMode
	case program.Mode()&0o100 == 0:
		return programNotExecutable
	}
	return programExecutable
}

// hashes are the two that clients compute: of the files as unpacked, which lock
// files have, and of the zip's entries, which Terraform compares them with
// before it unpacks. They differ when there are entries for folders, names that
// are not clean, or two of one name. Every entry is read to its end.
func (u unpackedZip) hashes(ctx context.Context, entries []*zip.File) (unpacked, packed string, err error) {
	sums := make(map[*zip.File]wire.SHA256, len(entries))
	byName := make(map[string]*zip.File, len(entries))
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		r, err := entry.Open()
		if err != nil {
			return "", "", err
		}
		sums[entry], err = digestFile(ctx, r)
		r.Close()
		if err != nil {
			return "", "", err
		}
		names = append(names, entry.Name)
		byName[entry.Name] = entry
	}
	packed = hash1(names, func(name string) wire.SHA256 { return sums[byName[name]] })
	unpacked = hash1(slices.Collect(maps.Keys(u)), func(name string) wire.SHA256 { return sums[u[name]] })
	return unpacked, packed, nil
}

// hash1 is Hash1 of golang.org/x/mod/sumdb/dirhash, for files whose digests are
// known already.
func hash1(names []string, sum func(name string) wire.SHA256) string {
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		fmt.Fprintf(h, "%s  %s\n", sum(name), name)
	}
	return "h1:" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// A packageDetail is what there is to say of a package that most have not:
// whether its program can be run, and the hash of its entries where that is not
// the one of its files.
type packageDetail struct {
	program  programMode
	packedH1 string
}

// findingOn is why a package is withheld for a platform, nil if it is not.
func (d packageDetail) findingOn(p address.Platform) *finding {
	if p.OS == "windows" || d.program != programNotExecutable {
		return nil
	}
	return found(NotExecutable, "the provider in the zip is not executable, which clients notice when they run it: chmod +x it and pack it again")
}

// encode writes the detail as the memo keeps it, empty for most packages.
func (d packageDetail) encode() []byte {
	if d == (packageDetail{}) {
		return nil
	}
	return append([]byte{byte(d.program)}, d.packedH1...)
}

func decodePackageDetail(content []byte) (d packageDetail) {
	if len(content) > 0 {
		d.program, d.packedH1 = programMode(content[0]), string(content[1:])
	}
	return d
}
