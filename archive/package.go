package archive

import (
	"archive/zip"
	"context"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// readPackage reads the files in a provider's zip for their hashes, unless they have been
// walked. It keeps no content in memory.
func (d *Digest) readPackage(ctx context.Context, f io.ReaderAt, size int64, typ string, w walked) error {
	z, err := openZip(ctx, f, size)
	if err != nil {
		return err
	}
	files, err := unpack(z.File)
	if err != nil {
		return err
	}
	program := files.program(typ)
	if program == nil {
		return tree.Findingf(tree.NoBinary, "there is no file %s%s at the root of the zip: pack the provider's binary there", ProviderPrefix, typ)
	}
	detail := PackageDetail{program: modeOf(program)}
	var packed wire.FileHashes
	if d.FileHashes, packed, err = files.hashes(ctx, z.File, w.entries); err != nil {
		return archiveFinding(ctx, err)
	}
	if packed != d.FileHashes {
		detail.PackedHashes = packed
	}
	d.Content = detail.encode()
	return nil
}

// An unpackedZip has the files of a zip as clients unpack it, by their cleaned paths. Of two
// entries with one path, the last one stays, with its content and its mode.
type unpackedZip map[string]*zip.File

// unpack determines which files clients unpack, and refuses a zip that they cannot unpack.
func unpack(entries []*zip.File) (unpackedZip, error) {
	files := make(unpackedZip, len(entries))
	names := make([]string, len(entries))
	for i, entry := range entries {
		folder := entry.FileInfo().IsDir()
		if names[i] = unpackedName(entry.Name, folder); !folder {
			files[names[i]] = entry
		}
	}
	if name := fileAndFolder(names); name != "" {
		return nil, tree.Findingf(tree.BadArchive, "%.200q in it is a file and a folder, so that no client can unpack it: pack it again", name)
	}
	return files, nil
}

// unpackedName returns the path to which clients unpack an entry. The path of a folder ends in a
// slash.
func unpackedName(name string, folder bool) string {
	name = path.Clean(name)
	if folder {
		name += "/"
	}
	return name
}

// fileAndFolder returns a name that is a file and a folder among the unpacked names of an archive's
// entries, which it sorts; empty if there is none.
func fileAndFolder(names []string) string {
	// In sorted order, the content of a folder follows the folder's name. Walking from each
	// file up to the root instead would take minutes for a megabyte of long names.
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, "/") {
			continue
		}
		folder := name + "/"
		i, _ := slices.BinarySearch(names, folder)
		if name == "." || i < len(names) && strings.HasPrefix(names[i], folder) {
			return name
		}
	}
	return ""
}

// ProviderPrefix begins the name of the program in a provider's package.
const ProviderPrefix = "terraform-provider-"

// isProviderFile reports whether clients look for the provider under this name.
func isProviderFile(name, typ string) bool {
	rest, ok := strings.CutPrefix(name, ProviderPrefix+typ)
	return ok && !strings.Contains(rest, "/") && (rest == "" || rest[0] == '_' || rest[0] == '.')
}

// program finds the provider in the unpacked zip as clients do: at its root, the first by
// name (checklist 58).
func (u unpackedZip) program(typ string) *zip.File {
	var first string
	for name := range u {
		if isProviderFile(name, typ) && (first == "" || name < first) {
			first = name
		}
	}
	return u[first]
}

// A programMode says whether clients can run the provider that they have unpacked.
type programMode byte

const (
	programExecutable programMode = iota
	programNotExecutable
	programWithoutMode // the zip was made on a system without the executable bit
)

// Systems on which a zip's entry was made (PKWARE's APPNOTE, section 4.4.2). Zips made on
// other systems have no executable bit.
const (
	madeOnUnix  = 3
	madeOnMacOS = 19
)

// modeOf returns the mode of a program that a client has unpacked, which is the mode it was
// packed with.
func modeOf(program *zip.File) programMode {
	switch by := program.CreatorVersion >> 8; {
	case by != madeOnUnix && by != madeOnMacOS:
		return programWithoutMode
	case program.Mode()&0o100 == 0:
		return programNotExecutable
	}
	return programExecutable
}

// hashes returns what clients compute: the hashes of the files as unpacked, which lock files
// have, and the hashes of the zip's entries, which Terraform compares with the lock file before
// unpacking. They differ when there are entries for folders, names that
// are not clean, or two entries of one name. Every entry is read to its end that has not been
// walked.
func (u unpackedZip) hashes(ctx context.Context, entries []*zip.File, w walkedEntries) (unpacked, packed wire.FileHashes, err error) {
	sums := make(map[*zip.File]fileSum, len(entries))
	byName := make(map[string]*zip.File, len(entries))
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		if sums[entry], err = w.digest(ctx, entry); err != nil {
			return "", "", err
		}
		names = append(names, entry.Name)
		byName[entry.Name] = entry
	}
	packed = hashFiles(names, func(name string) fileSum { return sums[byName[name]] })
	unpacked = hashFiles(slices.Collect(maps.Keys(u)), func(name string) fileSum { return sums[u[name]] })
	return unpacked, packed, nil
}

// digest returns the digest of an entry's content.
func (w walkedEntries) digest(ctx context.Context, entry *zip.File) (sum fileSum, err error) {
	if !strings.HasSuffix(entry.Name, "/") { // a folder has no content, whatever there is in its place
		if e := w.find(entry); e != nil {
			return e.sum, nil
		}
	}
	r, err := entry.Open()
	if err != nil {
		return sum, err
	}
	defer r.Close()
	h := newFileHash()
	if _, err := tree.HashFile(h, tree.WithContext(ctx, r)); err != nil {
		return sum, err
	}
	return sumOf(h), nil
}

// A PackageDetail has properties that most packages share. Its zero value describes a
// program that can be run, in a zip with one hash.
type PackageDetail struct {
	program      programMode
	PackedHashes wire.FileHashes // the hashes of the zip's entries, if they differ from the hashes of its files
}

// FindingOn says why a package is withheld for a platform; nil if it is not.
func (d PackageDetail) FindingOn(p address.Platform) *tree.Finding {
	if p.OS == "windows" || d.program != programNotExecutable {
		return nil
	}
	return tree.Findingf(tree.NotExecutable, "the provider in the zip is not executable, which clients notice when they run it: chmod +x it and pack it again")
}

// LacksMode reports whether the provider was packed on a system without executable bits, so
// that only some clients can run it.
func (d PackageDetail) LacksMode() bool { return d.program == programWithoutMode }

// encode returns the detail in the form that the memo keeps; nil for most packages.
func (d PackageDetail) encode() []byte {
	if d == (PackageDetail{}) {
		return nil
	}
	return append([]byte{byte(d.program)}, d.PackedHashes...)
}

// PackageDetailOf returns the detail in the content of a package's digest.
func PackageDetailOf(content []byte) (d PackageDetail) {
	if len(content) > 0 {
		d.program, d.PackedHashes = programMode(content[0]), wire.FileHashes(content[1:])
	}
	return d
}
