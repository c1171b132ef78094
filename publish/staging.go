package publish

import (
	"crypto/sha256"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// stagingPath returns a path in the folder of a part for unpublished files.
func stagingPath(names ...string) string {
	return path.Join(append([]string{tree.StagingName}, names...)...)
}

// A stage is the staging folder of a provider's version. Only the holder of the lock of
// its name changes it.
type stage struct {
	address address.Address
	version string
	part    tree.Part // the tree's providers
}

const (
	releaseFolder   = "release"   // a tree of this version alone, so that a namespace can have the name of another folder
	undecidedFolder = "undecided" // builds of files, before SHA256SUMS is there
	docsFolder      = "docs"      // in the release; beside it, where documentation is replaced
)

// maxBuilds is how many builds of one file are kept side by side. Several publishers of
// one version are a mistake that has to end well, and not a way to publish.
const maxBuilds = 8

// name identifies the version among all stages. No part of an address and no version
// contains an @.
func (s stage) name() string {
	return strings.Join([]string{s.address.Namespace, s.address.Name, s.version}, "@")
}

// lockName returns the name of the lock of a version. Versions that differ only in
// build metadata share a lock, since they are the same version to clients.
func (s stage) lockName() string {
	s.version = withoutBuild(s.version)
	return s.name()
}

// parseStage returns the stage with a name.
func parseStage(part tree.Part, name string) (s stage, ok bool) {
	parts := strings.Split(name, "@")
	if len(parts) != 3 {
		return stage{}, false
	}
	a, err := address.ParseProvider("", parts[0], parts[1])
	if err != nil {
		return stage{}, false
	}
	v, err := address.ParseProviderVersion(parts[2])
	if err != nil {
		return stage{}, false
	}
	s = stage{address: a, version: v.String(), part: part}
	return s, s.name() == name
}

// path returns a path in the stage, relative to the part.
func (s stage) path(names ...string) string {
	return stagingPath(append([]string{s.name()}, names...)...)
}

// release returns a path in the folder that will become the folder of the version.
func (s stage) release(names ...string) string {
	return s.path(append([]string{releaseFolder, s.address.Namespace, s.address.Name, s.version}, names...)...)
}

func (s stage) checksumsName() string { return address.ChecksumsName(s.address.Name, s.version) }

func (s stage) signatureName() string { return address.SignatureName(s.address.Name, s.version) }

func (s stage) manifestName() string { return address.ManifestName(s.address.Name, s.version) }

// A build is one of the staged files with a name, before SHA256SUMS decides which of
// them belongs to the release.
type build struct {
	name string
	sum  wire.SHA256
	info fs.FileInfo // of the staged file
}

func (b build) path(s stage) string { return s.path(undecidedFolder, b.base()) }

func (b build) base() string { return b.name + "@" + b.sum.String() }

// staged is a stage with its content.
type staged struct {
	stage
	keys      namespaceKeys  // by which its signature was chosen: see Publisher.settle
	checksums []byte         // nil: not there yet
	sums      wire.Checksums // the content of checksums
	files     map[string]fs.FileInfo
	undecided []build // the oldest first
	hasDocs   bool    // in the release or beside it
	last      time.Time
}

func (c *staged) empty() bool { return c.checksums == nil && len(c.undecided) == 0 && !c.hasDocs }

// builds returns the builds of one file.
func (c *staged) builds(name string) []build {
	return slices.Collect(func(yield func(build) bool) {
		for _, b := range c.undecided {
			if b.name == name && !yield(b) {
				return
			}
		}
	})
}

// read returns the content of the stage, whose lock the caller has. It also repairs a
// decision that a crash has interrupted.
func (s stage) read() (*staged, error) {
	c := &staged{stage: s, files: make(map[string]fs.FileInfo)}
	release, err := s.part.Entries(s.release())
	if err != nil {
		return nil, err
	}
	for _, e := range release {
		switch {
		case e.Bad != nil:
			return nil, e.Err()
		case e.IsDir():
			c.hasDocs = c.hasDocs || e.Name == docsFolder
		default:
			c.files[e.Name] = e.Info
		}
		c.last = latest(c.last, e.Info)
	}
	if err := c.readDecision(); err != nil {
		return nil, err
	}
	if err := c.readUndecided(); err != nil {
		return nil, err
	}
	docs, err := s.docs()
	if docs != nil {
		c.hasDocs, c.last = true, latest(c.last, docs.Info)
	}
	return c, err
}

// readDecision reads SHA256SUMS. Without one, the release has no files yet.
func (c *staged) readDecision() error {
	if _, decided := c.files[c.checksumsName()]; decided {
		content, err := readListed(c.part, c.release(c.checksumsName()), tree.MaxDocument)
		if err != nil {
			return err
		}
		if c.sums, err = wire.DecodeChecksums(content); err == nil {
			c.checksums = content
			return nil
		}
		// It was valid when it arrived, so the disk has damaged it.
		c.part.RemoveAll(c.release(c.checksumsName()))
		delete(c.files, c.checksumsName())
	}
	return c.undecide()
}

// readListed reads a small file that a listing has. If it does not exist, the listing is an old one,
// as of an NFS client, or the file system fails: the file is neither damaged nor gone.
func readListed(part tree.Part, name string, limit int64) ([]byte, error) {
	content, err := part.ReadFile(name, limit)
	if err == nil && content == nil {
		err = tree.StorageError(fs.ErrNotExist)
	}
	return content, err
}

// readUndecided reads the builds that wait for SHA256SUMS.
func (c *staged) readUndecided() error {
	entries, err := c.part.Entries(c.path(undecidedFolder))
	if err != nil || len(entries) == 0 {
		return err
	}
	for _, e := range entries {
		if e.Bad != nil {
			return e.Err()
		}
		name, digits, _ := strings.Cut(e.Name, "@")
		if sum, err := wire.ParseSHA256(digits); err == nil {
			c.undecided = append(c.undecided, build{name, sum, e.Info})
		}
		c.last = latest(c.last, e.Info)
	}
	slices.SortStableFunc(c.undecided, func(a, b build) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	if c.checksums != nil {
		return c.adopt()
	}
	return nil
}

// adopt takes builds into a release whose SHA256SUMS is there. An instance that did not see it yet,
// as on NFS, has taken them as undecided. The rest are builds that the decision has dropped, and
// signatures: which one counts depends on the keys, see Publisher.settle.
func (c *staged) adopt() error {
	var signatures []build
	for _, b := range c.undecided {
		switch sum, listed := c.sums[b.name]; {
		case c.files[b.name] != nil:
		case b.name == c.signatureName():
			signatures = append(signatures, b)
		case listed && sum == b.sum && c.requires(b.name):
			if err := c.part.Move(b.path(c.stage), c.release(b.name)); err != nil {
				return err
			}
			c.files[b.name] = b.info
		}
	}
	if c.undecided = signatures; signatures == nil {
		c.part.RemoveAll(c.path(undecidedFolder))
	}
	return nil
}

// undecide takes files back out of a release that has no SHA256SUMS.
func (c *staged) undecide() error {
	for name, info := range c.files {
		sum, err := c.part.Digest(c.release(name))
		if err == nil {
			err = c.part.Move(c.release(name), build{name, sum, info}.path(c.stage))
		}
		if err != nil {
			return err
		}
		c.last = latest(c.last, info)
	}
	clear(c.files)
	return nil
}

func latest(t time.Time, info fs.FileInfo) time.Time {
	if info.ModTime().After(t) {
		return info.ModTime()
	}
	return t
}

// missing lists the files that the release still needs to be complete.
func (c *staged) missing() (names []string) {
	if c.checksums == nil {
		names = append(names, c.checksumsName())
	}
	for name := range c.sums {
		if _, ok := c.files[name]; !ok && c.requires(name) {
			names = append(names, name)
		}
	}
	if c.keys.required && c.files[c.signatureName()] == nil && (c.checksums != nil || len(c.builds(c.signatureName())) == 0) {
		names = append(names, c.signatureName())
	}
	slices.Sort(names)
	return names
}

// requires reports whether the release needs a file that SHA256SUMS lists. SHA256SUMS
// may list others, such as an SBOM, for which the tree has no use.
func (s stage) requires(name string) bool {
	f, err := ParseReleaseFile(s.address, s.version, name)
	return err == nil && (f.Kind == Package || f.Kind == Manifest)
}

// describe describes the stage to publishers.
func (c *staged) describe(life time.Duration) (wire.Publication, error) {
	expires := c.last.Add(life).UTC().Truncate(time.Second)
	d := wire.Publication{
		Status: wire.Staged, Address: c.address.String(), Version: c.version,
		Missing: c.missing(), Expires: &expires,
	}
	for name, info := range c.files {
		sum, listed := c.sums[name]
		switch {
		case listed:
		case name == c.checksumsName():
			sum = sha256.Sum256(c.checksums)
		default: // the signature, which is small
			var err error
			if sum, err = c.part.Digest(c.release(name)); err != nil {
				return d, err
			}
		}
		d.Files = append(d.Files, wire.PublishedFile{Name: name, SHA256: sum.String(), Size: info.Size()})
	}
	for _, b := range c.undecided {
		d.Files = append(d.Files, wire.PublishedFile{Name: b.name, SHA256: b.sum.String(), Size: b.info.Size()})
	}
	slices.SortFunc(d.Files, func(a, b wire.PublishedFile) int {
		return strings.Compare(a.Name+a.SHA256, b.Name+b.SHA256)
	})
	return d, nil
}

// removeAll removes the stage, and also the folder of all stages if it is empty then.
func (s stage) removeAll() error {
	defer s.part.RemoveIfEmpty(stagingPath())
	return s.part.RemoveAll(s.path())
}
