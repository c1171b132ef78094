package index

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A provider's package may lie in the tree as clients unpack it, in a folder
// VERSION/OS_ARCH: filesystem mirrors and plugin caches are like that. It is
// offered as a zip that exists nowhere, see packageZip.

// addPackageFolder queues the unpacked package of a platform for reading, and
// reports whether the folder's name is one.
func (w *walker) addPackageFolder(p *providerFolder, part Part, report, version string, e entry) bool {
	os, arch, _ := strings.Cut(e.name, "_")
	platform, err := address.ParsePlatform(os, arch)
	if err != nil {
		return false
	}
	v, err := address.ParseProviderVersion(version)
	if err != nil {
		return false
	}
	typ := p.address.Name
	a := &archive{part: part, path: e.path, report: report, address: p.address, version: version}
	a.read = func(ctx context.Context, a *archive) (digest, error) {
		return readPackageFolder(ctx, a, typ, platform.OS)
	}
	r := p.release(v)
	r.packages = append(r.packages, &packageArchive{archive: a, name: providerPrefix + typ + "_" + version + "_" + platform.String() + ".zip", platform: platform})

	if a.folder, a.bad = w.walkPackageFolder(part, e.path); a.bad != nil {
		return true
	}
	if a.bad = checkPackageFolder(a.folder, typ); a.bad != nil {
		return true
	}
	a.stamp = stampFolder(a.folder)
	w.recallOrQueueFolder(a)
	return true
}

// checkPackageFolder looks for the provider among a folder's files, and whether
// a zip can hold them.
func checkPackageFolder(files []packedFile, typ string) *finding {
	left, program := int64(maxZipped), false
	for _, f := range files {
		switch {
		case f.size > left:
			return found(TooLarge, "its files have more than %d bytes: pack it as a zip", int64(maxZipped))
		case !utf8.ValidString(f.name):
			return found(BadName, "%q in it is not a name in UTF-8: rename it", f.name)
		case isProviderFile(f.name, typ) && f.size == 0:
			return found(Empty, "%s in it is empty: copy it again", f.name)
		}
		left -= f.size
		program = program || isProviderFile(f.name, typ)
	}
	if !program {
		return found(NoBinary, "there is no file %s%s in the folder: put the provider's binary there", providerPrefix, typ)
	}
	return nil
}

// walkPackageFolder finds the files of an unpacked package, ordered by their
// path in it. Only what is hidden or temporary is left out.
func (w *walker) walkPackageFolder(part Part, dir string) ([]packedFile, *finding) {
	var files []packedFile
	folders := 0
	var walk func(dir, prefix string, depth int) *finding
	walk = func(dir, prefix string, depth int) *finding {
		if folders++; depth > maxFolderDepth || folders > maxFolderFiles {
			return found(TooLarge, "it has too many folders in one another: is there a symlink to a parent?")
		}
		w.scan.watch.add(part, dir)
		entries, err := part.list(dir)
		if err != nil {
			return asFinding(err)
		}
		for _, e := range entries {
			name := path.Join(prefix, e.name)
			switch {
			case hiddenOrTemporary(e.name):
				continue
			case e.bad != nil:
				return found(e.bad.reason, "%q in it: %s", name, e.bad.detail)
			case e.info.IsDir():
				if f := walk(e.path, name, depth+1); f != nil {
					return f
				}
				continue
			case !e.info.Mode().IsRegular():
				return found(Unreadable, "%q in it is not a regular file: remove it", name)
			}
			if f := checkEntry(name); f != nil {
				return f
			}
			is := stampOf(e.info)
			files = append(files, packedFile{name: name, path: e.path, size: is.size, modTime: is.modTime, inode: is.inode, changed: is.changed})
			if len(files) > maxFolderFiles {
				return found(TooLarge, "it has more than %d files: is there a symlink to a parent?", maxFolderFiles)
			}
		}
		return nil
	}
	return files, walk(dir, "", 0)
}

// A zipMember is what a zip says of a file beside its name and size.
type zipMember struct {
	crc        uint32
	executable bool
}

// readPackageFolder reads the files of an unpacked package twice: for what the
// zip has to say of them, and as the zip.
func readPackageFolder(ctx context.Context, a *archive, typ, os string) (d digest, err error) {
	members := make([]zipMember, len(a.folder))
	names := make([]string, len(a.folder))
	sums := make(map[string]wire.SHA256, len(a.folder))
	for i, f := range a.folder {
		names[i] = f.name
		if members[i], sums[f.name], err = readMember(ctx, a, f); err != nil {
			return d, changedWhileRead(err)
		}
		if os != "windows" && isProviderFile(f.name, typ) {
			members[i].executable = true
		}
	}
	zipped := layOutZip(a.folder, members)
	r := zipped.open(a.part)
	defer r.Close()
	if d.sha256, err = digestFile(ctx, io.NewSectionReader(pacedReaderAt{r, a}, 0, zipped.size)); err != nil {
		return d, changedWhileRead(err)
	}
	d.size, d.content = zipped.size, encodeMembers(members)
	d.h1 = hash1(names, func(name string) wire.SHA256 { return sums[name] })
	return d, nil
}

// readMember reads one file of a folder to its end.
func readMember(ctx context.Context, a *archive, file packedFile) (m zipMember, sum wire.SHA256, err error) {
	f, err := a.part.openUnchanged(file.path, file.stamp())
	if err != nil {
		return m, sum, err
	}
	defer f.Close()
	var start [8]byte
	n, err := io.ReadFull(f, start[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return m, sum, err
	}
	m.executable = isExecutable(start[:n])
	crc, h := crc32.NewIEEE(), sha256.New()
	size, err := io.Copy(io.MultiWriter(crc, h), contextReader{ctx, io.MultiReader(bytes.NewReader(start[:n]), pacedFile{f, a})})
	if err != nil {
		return m, sum, err
	}
	if size != file.size {
		return m, sum, ErrChanged
	}
	m.crc = crc.Sum32()
	return m, wire.SHA256(h.Sum(nil)), nil
}

// encodeMembers writes what was read of a folder's files as the memo keeps it,
// in the order of the files.
func encodeMembers(members []zipMember) []byte {
	b := make([]byte, 0, 5*len(members))
	for _, m := range members {
		b = binary.LittleEndian.AppendUint32(b, m.crc)
		if m.executable {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

// decodeMembers reads what encodeMembers wrote of so many files.
func decodeMembers(b []byte, count int) []zipMember {
	members := make([]zipMember, count)
	for i := range min(count, len(b)/5) {
		members[i] = zipMember{binary.LittleEndian.Uint32(b[5*i:]), b[5*i+4] == 1}
	}
	return members
}
