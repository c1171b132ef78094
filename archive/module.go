package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// readModule reads the entries of a module package for their hashes, unless they have been walked.
// It checks that a client can unpack the package and finds a module in it, and notes secrets.
func (d *Digest) readModule(ctx context.Context, f afero.File, size int64, format string, w walked) (err error) {
	m := w.module
	switch {
	case format == "zip":
		m, err = readZip(ctx, f, size, w)
	case m == nil:
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			m = newModuleFinder()
			err = tarEntries(ctx, f, size, format, m)
		}
	}
	if err != nil {
		return archiveFinding(ctx, err)
	}
	folder, bad := m.module()
	if bad != nil {
		return bad
	}
	facts := moduleFacts{
		Folder: folder, Secrets: m.secrets.first, SecretsTotal: m.secrets.total,
		Leaks: m.leaks.first, LeaksTotal: m.leaks.total, packageNames: m.names(),
		FileAndFolder: listedName(fileAndFolder(m.unpacked)),
	}
	d.Content = encodeModuleContent(facts.encode(), m.docs.Summary(folder))
	d.FileHashes = hashesOf(m.sums)
	return nil
}

// moduleFacts are the results of reading the entries of an archive.
type moduleFacts struct {
	Folder       string   `json:"folder,omitempty"`  // the folder of the module; empty for the root
	Secrets      []string `json:"secrets,omitempty"` // credentials by their name, the first ones
	SecretsTotal int      `json:"secrets_total,omitempty"`
	Leaks        []string `json:"leaks,omitempty"` // secrets for which a publication is refused
	LeaksTotal   int      `json:"leaks_total,omitempty"`

	FileAndFolder string `json:"file_and_folder,omitempty"` // a name that is both
	packageNames
}

// encode returns the facts in the form that the memo keeps; nil for most archives.
func (a moduleFacts) encode() []byte {
	b, _ := json.Marshal(a) // cannot fail
	if string(b) == "{}" {
		return nil
	}
	return b
}

// decodeFacts returns the facts in the content of an archive's digest.
func decodeFacts(content []byte) (a moduleFacts) {
	if b, _ := splitModuleContent(content); len(b) > 0 {
		json.Unmarshal(b, &a) // cannot fail on what encode returned
	}
	return a
}

// ModuleFolderIn returns the folder of the module in its package, by the content of the
// package's digest; empty for the root.
func ModuleFolderIn(content []byte) string { return decodeFacts(content).Folder }

// readZip reads the entries of a zip. What has been walked counts if the directory says
// exactly the same.
func readZip(ctx context.Context, f io.ReaderAt, size int64, w walked) (*moduleFinder, error) {
	z, err := openZip(ctx, f, size)
	if err != nil {
		return nil, err
	}
	if w.module != nil && w.entries.are(z.File) {
		return w.module, nil
	}
	m := newModuleFinder()
	return m, m.addMembers(z.File)
}

func (m *moduleFinder) addMembers(members []*zip.File) error {
	for _, member := range members {
		if err := m.addMember(member); err != nil {
			return err
		}
	}
	return nil
}

func (m *moduleFinder) addMember(member *zip.File) error {
	r, err := member.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if mode := member.Mode(); !mode.IsDir() {
		if err := m.inspect(member.Name, r, mode.IsRegular()); err != nil {
			return err
		}
		if !mode.IsRegular() { // the content of a symlink is its target
			m.addLink(path.Clean(member.Name), tar.TypeSymlink, string(m.start))
		}
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // the zip reader compares the CRC
		return err
	}
	m.addUnpacked(member.Name, member.Mode().IsDir())
	return nil
}

// addWalked adds a regular file of a zip that is walked, or a folder, which has no content.
func (m *moduleFinder) addWalked(name string, content io.Reader) error {
	if content != nil {
		if err := m.inspect(name, content, true); err != nil {
			return err
		}
	}
	m.addUnpacked(name, content == nil)
	return nil
}

// addUnpacked takes the name of an entry of an archive.
func (m *moduleFinder) addUnpacked(name string, folder bool) {
	m.unpacked = append(m.unpacked, unpackedName(name, folder))
	m.add(name)
}

// unknownSize is the size of a tar that is still arriving.
const unknownSize = -1

// tarEntries reads the entries of a compressed tar. It unpacks no more than an archive of the size
// may, or of as many bytes as have been read of one whose size is not known.
func tarEntries(ctx context.Context, f io.Reader, size int64, format string, m *moduleFinder) error {
	packed := &countingReader{r: tree.WithContext(ctx, f)}
	unpacked, err := tarStream(packed, format)
	if err != nil {
		return err
	}
	limit, most := func() int64 { return maxUnpackedFrom(size) }, maxUnpackedFrom(size)
	if size == unknownSize {
		limit, most = func() int64 { return maxUnpackedFrom(packed.n) }, maxUnpacked
	}
	left := most // of the bytes that the entries may say they have
	bounded := &boundedReader{r: unpacked, limit: limit}
	content := &boundedReader{limit: limit} // a sparse file unpacks to more than its size in the tar
	names := 0                              // the total bytes of names, which stay in memory; each may have a megabyte
	entries := 0
	err = WalkTar(bounded, func(header *tar.Header, r io.Reader) error {
		content.r = r
		if entries++; entries > maxEntries {
			return tree.Findingf(tree.TooLarge, "the archive has more than %d entries", maxEntries)
		}
		if names += len(header.Name); names > maxDirectory {
			return tree.Findingf(tree.TooLarge, "the names of the archive's entries are longer than %d bytes together", maxDirectory)
		}
		if left -= header.Size; left < 0 {
			return tooLarge(limit())
		}
		if header.Typeflag == tar.TypeXGlobalHeader { // git archive writes one too; clients skip it
			if entries == 1 {
				m.useFolder(header.PAXRecords[folderRecord])
			}
			return nil
		}
		if isTarRoot(header) {
			return nil
		}
		if f := checkEntry(header.Name); f != nil {
			return f
		}
		if linkLeaves(header) {
			return tree.Findingf(tree.BadArchive, "it has a link %.200q that leaves its folder: pack the file it leads to", header.Name)
		}
		name := unpackedName(header.Name, header.Typeflag == tar.TypeDir)
		m.addUnpacked(name, header.Typeflag == tar.TypeDir)
		m.addLink(name, header.Typeflag, header.Linkname)
		switch {
		case IsTarFile(header.Typeflag):
			return m.inspect(name, content, true)
		case !hasNoContent(header.Typeflag):
			return tree.Findingf(tree.BadArchive, "it has an entry %.200q that is neither a file nor a folder: pack it again without", header.Name)
		}
		return nil
	})
	if err == nil && most-left > limit() {
		return tooLarge(limit())
	}
	return err
}

func tooLarge(limit int64) error {
	return tree.Findingf(tree.TooLarge, "the archive unpacks to more than %d bytes", limit)
}

// A boundedReader fails after a limit, which may grow.
type boundedReader struct {
	r     io.Reader
	limit func() int64
	n     int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.n += int64(n); b.n > b.limit() {
		return 0, tooLarge(b.limit())
	}
	return n, err
}

// isTarRoot reports whether an entry is the archive's root itself, as Python's tarfile names
// it if it is given no name: clients put every name below their own folder.
func isTarRoot(h *tar.Header) bool {
	return h.Typeflag == tar.TypeDir && strings.Trim(h.Name, "/") == ""
}

// linkLeaves reports whether an entry is a link to a file outside of the archive. A
// symlink's target is relative to the symlink, a hard link's to the archive.
func linkLeaves(h *tar.Header) bool {
	switch h.Typeflag {
	case tar.TypeSymlink:
		return path.IsAbs(h.Linkname) || !filepath.IsLocal(path.Join(path.Dir(h.Name), h.Linkname))
	case tar.TypeLink:
		return checkEntry(h.Linkname) != nil
	}
	return false
}

// A moduleFinder looks for a module where clients look: at the root, or in folders below it
// for a package that is only used by //submodule. Code hosts make packages with one top
// folder, which is the module itself: there clients look where the location says
// (checklist 89, 96).
type moduleFinder struct {
	atRoot   bool   // there is configuration at the root
	anywhere bool   // there is configuration in a folder
	top      string // the first folder, or file with an extension, at the root
	several  bool   // there are several folders or such files at the root
	direct   bool   // there is configuration in the top folder itself, or in its modules/
	recorded string // the folder of the module that the package records; empty: it records none
	inFolder bool   // there is configuration in that folder, or below it

	inModules bool     // there is configuration in modules/ at the root
	deep      string   // the first configuration in another place
	values    nameList // files with values of variables
	unpacked  []string // the names of an archive's entries; the limits bound their bytes

	leaks   nameList // with their kinds
	secrets nameList // the other secrets
	docs    moduledoc.Collector
	sums    map[string]fileSum // of the files, the last of each name
	links   map[string]string  // targets of links by their name; nil: they are not kept
	buffer  []byte
	start   []byte // the beginning of the content of the entry inspected last
}

func newModuleFinder() *moduleFinder {
	return &moduleFinder{docs: moduledoc.Collector{Short: true}}
}

// add takes the name of an entry. The entry of a folder ends in a slash.
func (m *moduleFinder) add(name string) {
	name = strings.TrimPrefix(name, "./")
	m.addName(name)
	if m.recorded != "" {
		within := m.recorded == rootFolder || strings.HasPrefix(name, m.recorded+"/")
		m.inFolder = m.inFolder || within && moduledoc.IsConfiguration(name)
		return
	}
	top, rest, nested := strings.Cut(name, "/")
	switch {
	case strings.HasPrefix(top, ".") || top == "__MACOSX":
		return // left behind by a system or an editor
	case !nested && moduledoc.IsConfiguration(name):
		m.atRoot = true
		return
	case !nested && path.Ext(name) == "":
		return // a file like LICENSE may lie beside the only folder
	case strings.HasSuffix(name, "/"):
		return // only files in the folder count
	}
	if m.top == "" {
		m.top = strings.Clone(top)
	}
	m.several = m.several || top != m.top
	if nested && moduledoc.IsConfiguration(rest) {
		m.anywhere = true
		m.direct = m.direct || !strings.Contains(rest, "/") || strings.HasPrefix(rest, "modules/")
	}
}

// module returns the folder of the module, which is empty for the root.
func (m *moduleFinder) module() (folder string, bad *tree.Finding) {
	switch {
	case m.recorded != "":
		return m.recordedFolder()
	case m.atRoot:
		return "", nil
	case !m.anywhere:
		return "", noConfiguration()
	case m.several || !m.direct:
		return "", nil
	case !safeInURL(m.top):
		return "", tree.Findingf(tree.NoConfiguration, "the module is in a folder inside the archive, whose name clients cannot find by a URL: pack it with the module at the archive's root")
	}
	return m.top, nil
}

func noConfiguration() *tree.Finding {
	return tree.Findingf(tree.NoConfiguration, "there is no .tf file in it: a module package has the module at its root")
}

// safeInURL reports whether clients find a folder that a location names after //. They look
// for the name as written in the URL, escaped, and as a glob pattern.
func safeInURL(folder string) bool {
	return len(folder) <= 255 && strings.Trim(folder, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+") == ""
}

// inspect reads an entry. It notes a secret, by its name or by the beginning of its content,
// and of a regular file the digest and the documentation in it.
func (m *moduleFinder) inspect(name string, r io.Reader, regular bool) (err error) {
	if m.buffer == nil {
		m.buffer = make([]byte, inspectSize)
	}
	if m.start, err = readStart(r, m.buffer); err != nil {
		return err
	}
	content := &countingReader{r: io.MultiReader(bytes.NewReader(m.start), r)}
	if regular {
		err = m.collect(name, content)
	} else {
		_, err = io.Copy(io.Discard, content)
	}
	if err != nil {
		return err
	}
	m.noteSecret(name, content.n)
	return nil
}

// noteSecret notes the inspected entry if it is a secret.
func (m *moduleFinder) noteSecret(name string, size int64) {
	kind := ""
	for part := range strings.SplitSeq(name, "/") {
		if kind = secretByName(part); kind != "" {
			break
		}
	}
	if kind == "" {
		kind = secretByContent(m.start, size)
	}
	switch kind {
	case "":
	case credentialsKind: // modules have such files without credentials
		m.secrets.add(name, kind)
	default:
		m.leaks.add(name, kind)
	}
}

// collect notes the digest of an entry, and the documentation in it.
func (m *moduleFinder) collect(name string, r io.Reader) error {
	hash := newFileHash()
	content := io.TeeReader(r, hash)
	if err := m.docs.Add(name, content); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	if m.sums == nil {
		m.sums = make(map[string]fileSum)
	}
	m.sums[path.Clean(name)] = sumOf(hash)
	return nil
}
