package upstream

import (
	"archive/tar"
	"archive/zip"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// An unpacker writes the entries of an archive into a folder. Links are made after all
// files, so that nothing is written through a link.
type unpacker struct {
	root  *os.Root
	limit int64 // bytes of all files…
	left  int64 // …and the bytes left until the limit

	// The written entries, by name in lower case: a disk may not distinguish case.
	entries map[string]entry
	names   int // bytes of all names
	links   []symlink

	inTop bool
	top   string

	commit string // commit named in the archive; empty if it names none
}

// An entry is a file or folder of an archive.
type entry struct {
	name string
	kind entryKind
}

type entryKind int

const (
	fileEntry entryKind = iota
	folderEntry
	linkEntry
)

type symlink struct{ name, target string }

// newUnpacker unpacks an archive to at most limit bytes. With inTop the one folder at
// its root is left out.
func newUnpacker(root *os.Root, limit int64, inTop bool) *unpacker {
	return &unpacker{root: root, limit: limit, left: limit, entries: make(map[string]entry), inTop: inTop}
}

func (u *unpacker) tooLarge() error {
	return refuse(ErrTooLarge, "the module's archive unpacks to more than %d bytes", u.limit)
}

// unpack writes all entries. The error is a refusal, or the error of reading or
// writing.
func (u *unpacker) unpack(ctx context.Context, f *os.File, size int64, format string) (err error) {
	switch format {
	case "zip":
		err = u.unpackZip(ctx, f, size)
	case "tar.gz":
		var z *gzip.Reader
		if z, err = gzip.NewReader(tree.WithContext(ctx, f)); err == nil {
			err = u.unpackTar(z)
		}
	case "tar.bz2":
		err = u.unpackTar(bzip2.NewReader(tree.WithContext(ctx, f)))
	default:
		err = refuse(ErrMalformed, "the module's archive is of a kind that is not read")
	}
	if err != nil {
		return err
	}
	for _, l := range u.links {
		if err := u.root.Symlink(l.target, l.name); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) unpackTar(r io.Reader) error {
	bounded := &io.LimitedReader{R: r, N: u.limit + 1}
	err := archive.WalkTar(bounded, u.addTar)
	if bounded.N <= 0 {
		return u.tooLarge()
	}
	return err
}

func (u *unpacker) addTar(h *tar.Header, content io.Reader) error {
	if archive.IsTarFile(h.Typeflag) {
		return u.addFile(h.Name, h.FileInfo().Mode(), content)
	}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader: // as git archive writes it
		if comment := h.PAXRecords["comment"]; git.IsCommit(comment) {
			u.commit = strings.ToLower(comment)
		}
		return nil
	case tar.TypeDir:
		_, err := u.add(h.Name, folderEntry)
		return err
	case tar.TypeSymlink:
		return u.addLink(h.Name, h.Linkname)
	case tar.TypeLink:
		return u.addCopy(h.Name, h.Linkname)
	}
	return refuse(ErrMalformed, "the module's archive has %.200q in it, which is neither a file nor a folder", h.Name)
}

func (u *unpacker) unpackZip(ctx context.Context, f *os.File, size int64) error {
	z, err := archive.OpenZip(ctx, f, size)
	if refused, is := errors.AsType[*archive.PackageError](err); is && refused.Reason == tree.TooLarge {
		return tooManyFiles()
	}
	if err != nil {
		return err
	}
	if git.IsCommit(z.Comment) {
		u.commit = strings.ToLower(z.Comment)
	}
	for _, member := range z.File {
		if err := u.addZip(member); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) addZip(member *zip.File) error {
	mode := member.Mode()
	if mode.IsDir() {
		_, err := u.add(member.Name, folderEntry)
		return err
	}
	if !mode.IsRegular() && mode.Type() != fs.ModeSymlink {
		return refuse(ErrMalformed, "the module's archive has %.200q in it, which is neither a file nor a folder", member.Name)
	}
	r, err := member.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if mode.IsRegular() {
		return u.addFile(member.Name, mode, r)
	}
	target, err := io.ReadAll(io.LimitReader(r, maxEntryName+1))
	if err != nil {
		return err
	}
	return u.addLink(member.Name, string(target))
}

// maxEntryName is the maximum length in bytes of a name in a package, and of a link's
// target. maxSegment is the maximum length of a file's name in its folder.
const (
	maxEntryName = 1 << 10
	maxSegment   = 255
)

// entryName returns the path of an entry, "." for the folder itself.
func entryName(name string) (string, error) {
	switch {
	case len(name) > maxEntryName:
		return "", refuse(ErrMalformed, "the module has a file whose name is longer than %d bytes", maxEntryName)
	case !utf8.ValidString(name) || strings.Contains(name, `\`) || strings.ContainsFunc(name, unicode.IsControl):
		return "", refuse(ErrMalformed, "the module has a file %.200q, whose name not every client can unpack", name)
	case strings.HasPrefix(name, "/") || slices.Contains(strings.Split(name, "/"), ".."):
		return "", refuse(ErrMalformed, "the module has a file %.200q, which leads out of the package", name)
	}
	name = path.Clean(name)
	if strings.Count(name, "/") > maxModuleDepth {
		return "", refuse(ErrMalformed, "the module has a file that is deeper than %d folders", maxModuleDepth)
	}
	for segment := range strings.SplitSeq(name, "/") {
		if len(segment) > maxSegment {
			return "", refuse(ErrMalformed, "the module has a file whose name is longer than %d bytes", maxSegment)
		}
	}
	return name, nil
}

// place returns the path for an entry, "." if the entry is not written.
func (u *unpacker) place(name string, kind entryKind) (string, error) {
	name, err := entryName(name)
	if err != nil || !u.inTop || name == "." {
		return name, err
	}
	top, rest, nested := strings.Cut(name, "/")
	if u.top == "" {
		u.top = top
	}
	switch {
	case top != u.top || !nested && kind != folderEntry:
		return "", refuse(ErrMalformed, "the origin says that the module's archive has one folder at its root, and there is more")
	case !nested:
		return ".", nil
	}
	return rest, nil
}

// add makes the folders above an entry, and the entry itself if it is a folder.
func (u *unpacker) add(name string, kind entryKind) (string, error) {
	name, err := u.place(name, kind)
	if err != nil || name == "." {
		return name, err
	}
	for i := range len(name) {
		if name[i] == '/' {
			if err := u.note(name[:i], folderEntry); err != nil {
				return "", err
			}
		}
	}
	if err := u.note(name, kind); err != nil {
		return "", err
	}
	dir := name
	if kind != folderEntry {
		dir = path.Dir(name)
	}
	return name, u.root.MkdirAll(dir, 0o755)
}

// note records a name. It refuses names that are there already, unless both are folders
// or both are files. Clients keep the last of several files, too.
func (u *unpacker) note(name string, kind entryKind) error {
	folded := strings.ToLower(name)
	have, known := u.entries[folded]
	switch {
	case known && have.name != name:
		return refuse(ErrMalformed, "the module has %.200q and %.200q, which are one file on many disks", have.name, name)
	case known && (have.kind != kind || kind == linkEntry):
		return refuse(ErrMalformed, "the module has %.200q twice", name)
	case known:
		return nil
	}
	if u.names += len(name); u.names > maxModuleNames || len(u.entries) >= maxArchiveFiles {
		return tooManyFiles()
	}
	u.entries[folded] = entry{name, kind}
	return nil
}

func (u *unpacker) addFile(name string, mode fs.FileMode, content io.Reader) error {
	name, err := u.add(name, fileEntry)
	if err != nil {
		return err
	}
	if name == "." {
		return refuse(ErrMalformed, "the module has a file without a name")
	}
	permissions := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		permissions = 0o755
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, permissions)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, u.left+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if u.left -= n; u.left < 0 {
		return u.tooLarge()
	}
	return nil
}

// addCopy unpacks a hard link as a file of its own, which is the same for readers.
func (u *unpacker) addCopy(name, target string) error {
	target, err := u.place(target, fileEntry)
	if err != nil {
		return err
	}
	if have, known := u.entries[strings.ToLower(target)]; !known || have != (entry{target, fileEntry}) {
		return refuse(ErrMalformed, "the module has a link %.200q to a file that is not before it", name)
	}
	f, err := u.root.Open(target)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if at, err := u.place(name, fileEntry); err != nil || at == target {
		return err
	}
	return u.addFile(name, info.Mode(), f)
}

// addLink records a symbolic link. Its target is checked later, when it is known
// whether the link is needed.
func (u *unpacker) addLink(name, target string) error {
	if target == "" || len(target) > maxEntryName || strings.ContainsRune(target, 0) {
		return refuse(ErrMalformed, "the module has a link %.200q that leads nowhere", name)
	}
	name, err := u.add(name, linkEntry)
	if err != nil {
		return err
	}
	if name == "." {
		return refuse(ErrMalformed, "the module has a file without a name")
	}
	u.links = append(u.links, symlink{name, target})
	return nil
}
