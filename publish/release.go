package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// putReleaseFile stages a file of a provider's release, and publishes the release if it
// is complete.
func (p *Publisher) putReleaseFile(ctx context.Context, files tree.Tree, f File, u Upload) (Result, error) {
	s := stage{address: f.Address, version: f.Version, part: files.Providers}
	present, err := p.presentRelease(files, f.Address, f.Version)
	if err != nil {
		return Result{}, err
	}
	if present.exists {
		return p.putBeside(ctx, files, present, f, u)
	}
	if u.announced() {
		result, err := p.advance(ctx, files, s, f, u.SHA256, nil, func(namespaceKeys) (string, error) { return "", s.has(f, u.SHA256) })
		another := f.Kind == Signature && errors.Is(err, ErrConflict) // another signature may be valid, too
		if !errors.Is(err, ErrNothing) && !another || u.Bodiless {
			return result, err
		}
	}
	if err := s.foresee(f, u); err != nil {
		return Result{}, err
	}
	r, err := p.receive(ctx, s.part, f, u)
	if err != nil {
		return Result{}, err
	}
	defer s.part.RemoveIfEmpty(stagingPath())
	defer r.Discard()
	content, err := p.check(ctx, f, r)
	if err != nil {
		return Result{}, err
	}
	result, err := p.advance(ctx, files, s, f, r.sum, content, func(keys namespaceKeys) (string, error) {
		// The client has sent everything, and may leave.
		return p.add(context.WithoutCancel(ctx), s, f, r, content, keys)
	})
	p.measure(s, u.Subject, r.size)
	return result, err
}

// has returns ErrNothing unless exactly these bytes of a file are staged.
func (s stage) has(f File, sum wire.SHA256) error {
	c, err := s.read()
	if err != nil {
		return err
	}
	is := func(b build) bool { return b.sum == sum }
	switch listed, ok := c.sums[f.Name]; {
	case c.checksums == nil && slices.ContainsFunc(c.builds(f.Name), is):
		return nil
	case c.files[f.Name] == nil:
		return ErrNothing
	case ok && listed == sum:
		return nil
	case ok:
		return ErrNothing
	}
	other, err := s.part.Digest(s.release(f.Name))
	if err == nil && other != sum {
		return ErrNothing
	}
	return err
}

// check checks a file on its own, and returns the content of a document.
func (p *Publisher) check(ctx context.Context, f File, r *received) (content []byte, err error) {
	if f.Kind == Package {
		return nil, p.checkPackage(ctx, f, r)
	}
	if content, err = io.ReadAll(io.NewSectionReader(r, 0, r.size)); err != nil {
		return nil, tree.StorageError(err)
	}
	switch f.Kind {
	case Checksums:
		err = checkChecksums(f, content)
	case Signature:
		err = checkSignature(f, content)
	case Manifest:
		if _, err = wire.DecodeManifest(content); err != nil {
			err = refused("%s: %v", f.Name, err)
		}
	}
	return content, err
}

// checkPackage checks a package as a scan would.
func (p *Publisher) checkPackage(ctx context.Context, f File, r *received) (err error) {
	if r.digest, err = r.arriving.CheckPackage(ctx, r, r.size, f.Address.Name, f.Platform, r.sum); err != nil {
		return p.asRefusal(ctx, f, err)
	}
	return p.checkRecord(f, r.digest.FileHashes.H1(), r.sum)
}

// checkSignature refuses a file that is not a signature, whether or not the signature
// will be verified.
func checkSignature(f File, content []byte) error {
	if err := signing.CheckSignature(content); err != nil {
		return refused("%s: %v", f.Name, err)
	}
	return nil
}

// checkChecksums refuses a SHA256SUMS that cannot belong to the version.
func checkChecksums(f File, content []byte) error {
	sums, err := wire.DecodeChecksums(content)
	if err != nil {
		return refused("%s: %v", f.Name, err)
	}
	for name := range sums {
		if other, err := ParseReleaseFile(f.Address, f.Version, name); err == nil && other.Kind == Package {
			return nil
		}
	}
	return refused("%s lists no package of version %s: list files named %s", f.Name, f.Version,
		address.PackageName(f.Address.Name, f.Version, address.Platform{OS: "OS", Arch: "ARCH"}))
}

// advance changes the stage, and publishes the release if it is complete. sum is the
// digest of the file. content is nil if the client has not sent the file yet, or if it
// is a package. The change may return notes.
func (p *Publisher) advance(ctx context.Context, folders tree.Tree, s stage, f File, sum wire.SHA256, content []byte, change func(namespaceKeys) (string, error)) (Result, error) {
	published, result, err := p.advanceLocked(ctx, folders, s, f, sum, content, change)
	if err != nil || !published {
		return result, err
	}
	files := result.Files
	result = p.completed(ctx, f, sum)
	result.Files = files
	return result, nil
}

func (p *Publisher) advanceLocked(ctx context.Context, files tree.Tree, s stage, f File, sum wire.SHA256, content []byte, change func(namespaceKeys) (string, error)) (published bool, result Result, err error) {
	unlock, err := p.lock(ctx, s.part, s.lockName())
	if err != nil {
		return false, Result{}, err
	}
	defer unlock()
	// The client has sent everything, and may leave from here on.
	ctx = context.WithoutCancel(ctx)
	present, err := p.presentRelease(files, s.address, s.version)
	if err != nil {
		return false, Result{}, err
	}
	if present.exists { // published meanwhile
		result, err = p.compareWithPresent(ctx, files, present, f, content, sum)
		return false, result, err
	}
	keys, err := p.keys(ctx, files, present.address)
	if err != nil {
		return false, Result{}, err
	}
	note, err := change(keys)
	if err != nil {
		return false, Result{}, err
	}
	c, err := s.read()
	if err == nil {
		err = p.settleBy(keys, c)
	}
	if err != nil {
		return false, Result{}, err
	}
	staged, err := c.describe(p.options.Staging)
	if err != nil {
		return false, Result{}, err
	}
	if len(c.missing()) == 0 {
		result.Files = staged.Files
		err := p.publish(ctx, files, c, present)
		return err == nil, result, err
	}
	result = Result{Outcome: Waiting, Publication: staged}
	result.File, result.SHA256, result.Message = f.Name, sum.String(), note
	return false, result, nil
}

// add adds a file to the stage.
func (p *Publisher) add(ctx context.Context, s stage, f File, r *received, content []byte, keys namespaceKeys) (note string, err error) {
	c, err := s.read()
	if err != nil {
		return "", err
	}
	switch {
	case c.checksums != nil:
		return "", p.addDecided(ctx, c, f, r, content, keys)
	case f.Kind == Checksums:
		return p.decide(ctx, c, r, content, keys)
	}
	builds := c.builds(f.Name)
	if slices.ContainsFunc(builds, func(b build) bool { return b.sum == r.sum }) {
		return "", nil
	}
	if len(builds) >= maxBuilds {
		return "", conflict("%d different builds of %s are staged: delete what is staged of version %s first", len(builds), f.Name, s.version)
	}
	return "", p.keep(ctx, r, build{name: f.Name, sum: r.sum}.path(s))
}

// keep gives a file its name in a stage, and remembers the digest of a package.
func (p *Publisher) keep(ctx context.Context, r *received, name string) error {
	info, err := r.Rename(ctx, name)
	if err != nil {
		return tree.StorageError(err)
	}
	if r.digest.SHA256 == r.sum { // it is a package
		p.checked.Put(checkedAs(r.sum, info), r.digest, cache.UntilEvicted)
	}
	return nil
}

// choose moves a build into the release. In a Bucket the result is another file.
func (p *Publisher) choose(c *staged, b build) error {
	chosen := c.release(b.name)
	if err := c.part.Move(b.path(c.stage), chosen); err != nil {
		return err
	}
	info, err := c.part.Stat(chosen)
	if err != nil {
		return tree.StorageError(err)
	}
	if digest, ok := p.checked.Get(checkedAs(b.sum, b.info)); ok && info.Size() == b.info.Size() {
		p.checked.Put(checkedAs(b.sum, info), digest, cache.UntilEvicted)
	}
	return nil
}

// addDecided adds a file to a release whose SHA256SUMS is staged.
func (p *Publisher) addDecided(ctx context.Context, c *staged, f File, r *received, content []byte, keys namespaceKeys) error {
	switch f.Kind {
	case Checksums:
		if !bytes.Equal(content, c.checksums) {
			return conflict("another SHA256SUMS of version %s is staged: send the files that it lists, or delete what is staged first", c.version)
		}
		return nil
	case Signature:
		if err := keys.verify(f, c.checksums, content); err != nil {
			return err
		}
	default:
		if err := f.checkListed(c.sums, r.sum); err != nil {
			return err
		}
	}
	return p.keep(ctx, r, c.release(f.Name))
}

// checkListed refuses a file that the staged SHA256SUMS is not of.
func (f File) checkListed(sums wire.Checksums, sum wire.SHA256) error {
	switch listed, ok := sums[f.Name]; {
	case !ok && f.Kind == Manifest:
		return errManifestNotListed(f.Name)
	case !ok:
		return refused("the SHA256SUMS that is staged does not list %s: release it with the others", f.Name)
	case listed != sum:
		return refused("%s has the sha256 %s, and the SHA256SUMS that is staged lists %s: send the file that it lists, or delete what is staged first", f.Name, sum, listed)
	}
	return nil
}

// foresee refuses a file before it is received, if that is certain by its name and the
// announced digest.
func (s stage) foresee(f File, u Upload) error {
	if f.Kind != Package && f.Kind != Manifest {
		return nil
	}
	content, err := s.part.ReadFile(s.release(s.checksumsName()), tree.MaxDocument)
	if err != nil || content == nil {
		return err
	}
	sums, err := wire.DecodeChecksums(content)
	if err != nil {
		return nil // whoever has the lock repairs it
	}
	sum := u.SHA256
	if !u.announced() {
		sum = sums[f.Name]
	}
	return f.checkListed(sums, sum)
}

// errManifestNotListed says that SHA256SUMS must list a manifest. The public registry
// drops a release otherwise without a word, so that its clients never see it.
func errManifestNotListed(name string) error {
	return refused("SHA256SUMS does not list %s: add it to the files whose checksums are released, and sign again", name)
}

// verify refuses a signature that no key of the namespace verifies. A namespace without
// keys accepts any.
func (k namespaceKeys) verify(f File, checksums, signature []byte) error {
	if k.ring == nil {
		return nil
	}
	if _, err := k.ring.Verify(checksums, signature); err != nil {
		return refused("%s: %v", f.Name, err)
	}
	return nil
}

// decide makes a SHA256SUMS the one of the release. It writes SHA256SUMS last, so that a
// crash leaves the release undecided. The note names staged files that do not belong to
// the release.
func (p *Publisher) decide(ctx context.Context, c *staged, r *received, content []byte, keys namespaceKeys) (note string, err error) {
	sums, err := wire.DecodeChecksums(content)
	if err != nil {
		return "", refused("%s: %v", c.checksumsName(), err)
	}
	if _, listed := sums[c.manifestName()]; !listed && len(c.builds(c.manifestName())) > 0 {
		return "", errManifestNotListed(c.manifestName())
	}
	signature, err := c.chooseSignature(content, keys)
	if err != nil {
		return "", err
	}
	var kept, dropped []string
	for _, b := range c.undecided {
		if sum, listed := sums[b.name]; listed && sum == b.sum || signature != nil && b.base() == signature.base() {
			if err := p.choose(c, b); err != nil {
				return "", err
			}
			kept = append(kept, b.name)
		} else {
			dropped = append(dropped, b.name)
		}
	}
	if err := p.keep(ctx, r, c.release(c.checksumsName())); err != nil {
		return "", err
	}
	c.part.RemoveAll(c.path(undecidedFolder))
	if dropped = without(dropped, kept); len(dropped) > 0 {
		slices.Sort(dropped)
		note = fmt.Sprintf("not those that SHA256SUMS is of, and dropped: %s", strings.Join(slices.Compact(dropped), ", "))
	}
	return note, nil
}

// chooseSignature returns the signature of a SHA256SUMS, or nil if it is not there.
// Without keys, the last signature counts.
func (c *staged) chooseSignature(checksums []byte, keys namespaceKeys) (*build, error) {
	builds := c.builds(c.signatureName())
	for _, b := range slices.Backward(builds) {
		if keys.ring == nil {
			return &b, nil
		}
		signature, err := readListed(c.part, b.path(c.stage), tree.MaxDocument)
		if err != nil {
			return nil, err
		}
		if _, err := keys.ring.Verify(checksums, signature); err == nil {
			return &b, nil
		}
	}
	return nil, nil
}

// read returns the content of a stage whose signature is chosen.
func (p *Publisher) read(ctx context.Context, files tree.Tree, s stage, present *presentRelease) (*staged, error) {
	c, err := s.read()
	if err == nil {
		err = p.settleSignature(ctx, files, c, present)
	}
	return c, err
}

// settleSignature chooses the signature of a release by the keys of its namespace.
func (p *Publisher) settleSignature(ctx context.Context, files tree.Tree, c *staged, present *presentRelease) error {
	keys, err := p.keys(ctx, files, present.address)
	if err != nil {
		return err
	}
	return p.settleBy(keys, c)
}

// settleBy chooses the signature of a release whose SHA256SUMS is there, if it was taken before that
// was seen.
func (p *Publisher) settleBy(keys namespaceKeys, c *staged) error {
	c.keys = keys
	if c.checksums == nil || len(c.undecided) == 0 {
		return nil
	}
	signature, err := c.chooseSignature(c.checksums, keys)
	if err == nil && signature != nil {
		err = p.choose(c, *signature)
		c.files[signature.name] = signature.info
	}
	if err != nil {
		return err
	}
	c.undecided = nil
	c.part.RemoveAll(c.path(undecidedFolder))
	return nil
}

// publish moves a complete release into the tree, if the index would offer it there.
// Otherwise it drops the faulty files, so that they can be sent again.
func (p *Publisher) publish(ctx context.Context, files tree.Tree, c *staged, present *presentRelease) error {
	if err := p.checkNoOtherBuild(files, c.address, c.version); err != nil {
		return err
	}
	if err := p.installDocs(ctx, c.stage, c.release()); err != nil {
		return err
	}
	digests, err := p.scan(ctx, files, c)
	if err != nil {
		return err
	}
	copied, err := c.part.InstallFolder(ctx, c.release(), present.folder, c.checksumsName())
	switch {
	case errors.Is(err, tree.ErrInTheWay):
		return p.inTheWay(files, c.stage)
	case err != nil:
		p.changed(c.address) // the release may be there all the same
		return err
	}
	p.rememberCopied(c, copied, digests)
	c.removeAll() // tidy removes what remains
	return nil
}

// inTheWay says what lies where a release was to be published.
func (p *Publisher) inTheWay(files tree.Tree, s stage) error {
	now, err := p.presentRelease(files, s.address, s.version)
	switch {
	case err != nil:
		return err
	case !now.exists:
		return conflict("the tree has a folder of version %s without a whole release: its operator has to complete or remove it first", s.version)
	}
	return conflict("version %s has been copied into the tree meanwhile: a version never changes, publish a new one", s.version)
}

// State returns the published or staged files of a provider's version, or ErrNothing.
func (p *Publisher) State(ctx context.Context, a address.Address, version string) (wire.Publication, error) {
	files, err := p.open()
	if err != nil {
		return wire.Publication{}, err
	}
	present, err := p.presentRelease(files, a, version)
	if err != nil {
		return wire.Publication{}, err
	}
	if present.exists {
		return present.describe(a, version)
	}
	s := stage{address: a.WithHostname(""), version: version, part: files.Providers}
	if exists, err := s.part.Exists(s.path()); err != nil || !exists {
		return wire.Publication{}, cmp.Or(err, ErrNothing)
	}
	unlock, err := p.lock(ctx, s.part, s.lockName())
	if err != nil {
		return wire.Publication{}, err
	}
	defer unlock()
	c, err := s.read()
	if err != nil {
		return wire.Publication{}, err
	}
	if c.empty() {
		return wire.Publication{}, ErrNothing
	}
	if err := p.settleSignature(ctx, files, c, present); err != nil {
		return wire.Publication{}, err
	}
	return c.describe(p.options.Staging)
}

// Drop removes the staged files of a provider's version, or returns ErrNothing. It
// removes nothing of a published version, and returns ErrConflict.
func (p *Publisher) Drop(ctx context.Context, a address.Address, version string) error {
	files, err := p.open()
	if err != nil {
		return err
	}
	s := stage{address: a.WithHostname(""), version: version, part: files.Providers}
	present, err := p.presentRelease(files, s.address, version)
	if err != nil {
		return err
	}
	if present.exists {
		return s.errPublished()
	}
	if exists, err := s.part.Exists(s.path()); err != nil || !exists {
		return cmp.Or(err, ErrNothing)
	}
	unlock, err := p.lock(ctx, s.part, s.lockName())
	if err != nil {
		return err
	}
	defer unlock()
	if present, err = p.presentRelease(files, s.address, version); err != nil {
		return err
	}
	if present.exists { // meanwhile: the rest of its stage may be documentation that replaces it
		return s.errPublished()
	}
	c, err := s.read()
	if err != nil {
		return err
	}
	defer p.measure(s, "", 0)
	return c.drop(context.WithoutCancel(ctx), present)
}

// drop removes what is staged of a version. If the tree does not have the version, drop also
// removes the files that an interrupted publication has copied. It keeps files that may belong
// to another release.
func (c *staged) drop(ctx context.Context, present *presentRelease) error {
	if present.exists {
		return c.removeAll()
	}
	err := c.part.RemoveUnfinished(ctx, present.folder, c.checksumsName(), c.checksums)
	if err != nil && !errors.Is(err, tree.ErrReserved) && !errors.Is(err, tree.ErrInTheWay) {
		return err
	}
	return c.removeAll()
}
