package pull

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// check returns ErrConflict unless a release agrees with its files in the tree: files
// in the tree are never replaced, and never made invalid by files beside them. It
// returns the documents in the tree. present is the release in the index, which saves
// reading its packages; it may be nil.
func (d *directory) check(r *upstream.Release, present *index.Release) (documents, error) {
	_, files, _, err := d.compare(r, present)
	return files, err
}

// keep calls check, and then writes the missing documents and keys, in an order in
// which the index always offers the same as before.
func (d *directory) keep(ctx context.Context, r *upstream.Release, present *index.Release) (documents, error) {
	for range maxAttempts {
		now, files, keys, err := d.compare(r, present)
		if err != nil {
			return files, err
		}
		if err = d.write(ctx, now, files, keys); !errors.Is(err, tree.ErrChanged) {
			return files, err
		}
		// Another instance or the operator has written a document meanwhile. It counts.
	}
	return documents{}, unread(tree.ErrChanged)
}

// compare returns the release that the tree will have.
func (d *directory) compare(r *upstream.Release, present *index.Release) (*upstream.Release, documents, namespaceKeys, error) {
	keys, err := d.readKeys()
	if err != nil {
		return r, documents{}, keys, err
	}
	files, err := d.documents(r.Version)
	if err != nil {
		return r, files, keys, err
	}
	if r.Checksums != nil && extends(r.Checksums, files.checksums) {
		// Another fill or instance has extended the release since it was requested.
		// The packages are the same ones, and the extension must not be undone.
		if extended := files.release(r.Address, keys); extended != nil {
			r = extended
		}
	}
	if err := d.checkDocuments(r, files, keys); err != nil {
		return r, files, keys, err
	}
	if files.checksums == nil && r.Checksums != nil {
		if err := d.checkPackages(r, present); err != nil {
			return r, files, keys, err
		}
	}
	return r, files, keys, nil
}

// written returns the documents after the documents of a release have been written.
func (files documents) written(r *upstream.Release) documents {
	if r.Checksums != nil {
		files.checksums = r.Checksums
	}
	return files
}

// conflict returns the error for a file that differs between the tree and the origin.
func conflict(name string) error {
	return fmt.Errorf("%w: its %s differs: to have the origin's, remove the version from the tree", ErrConflict, name)
}

func errCannotExtend(version string) error {
	return fmt.Errorf("%w: the origin has added platforms to it: to have them, move the files in the folder %s up into the provider's folder, and everything else in it out of the tree", ErrConflict, version)
}

var errPinned = fmt.Errorf("%w: the keys of the namespace are pinned", ErrUnsigned)

// checkDocuments compares a release with the documents and keys in the tree.
func (d *directory) checkDocuments(r *upstream.Release, files documents, keys namespaceKeys) error {
	if keys.pinned { // perhaps pinned since the release was verified
		if !r.Signed() {
			return errPinned
		}
		if _, err := keys.ring.Verify(r.Checksums, r.Signature); err != nil {
			return fmt.Errorf("%w: by the pinned keys: %w", upstream.ErrBadSignature, err)
		}
	}
	extended := false
	if files.checksums != nil && r.Checksums != nil && !bytes.Equal(files.checksums, r.Checksums) {
		if extended = mayReplace(r, files.checksums); !extended {
			return conflict("SHA256SUMS")
		}
		can, err := d.canExtend(files)
		switch {
		case err != nil:
			return err
		case !can:
			return errCannotExtend(files.version)
		}
	}
	if files.signature != nil && r.Signed() && !extended && !bytes.Equal(files.signature, r.Signature) {
		// A second signature is as good as the first if the keys beside it will verify
		// it.
		if files.checksums == nil || !verifies(r, files.signature) {
			return conflict("signature")
		}
	}
	if files.manifest != nil {
		if sum, listed := r.Sums[address.ManifestName(d.address.Name, r.Version)]; listed && sha256.Sum256(files.manifest) != sum {
			return conflict("manifest")
		}
	}
	return nil
}

// verifies reports whether the keys of a release verify another signature of it.
func verifies(r *upstream.Release, signature []byte) bool {
	var armored bytes.Buffer
	for _, key := range r.Keys {
		fmt.Fprintf(&armored, "%s\n", key.Armor)
	}
	ring, _ := signing.ReadKeyring(armored.Bytes())
	_, err := ring.Verify(r.Checksums, signature)
	return err == nil
}

// checkPackages compares packages without a SHA256SUMS, such as packages copied in by
// `terraform providers mirror`, with the SHA256SUMS to be written beside them.
func (d *directory) checkPackages(r *upstream.Release, present *index.Release) error {
	l, err := d.look(r.Version)
	if err != nil {
		return err
	}
	for _, name := range l.packages() {
		sum, err := present.DigestOf(d.tree, name)
		if err != nil {
			return unread(err)
		}
		if listed, ok := r.Sums[path.Base(name)]; !ok || listed != sum {
			return conflict(path.Base(name))
		}
	}
	unpacked, err := l.unpacked()
	if err == nil && len(unpacked) > 0 { // no publisher signs packages that the registry packs
		err = conflict("unpacked " + unpacked[0])
	}
	return err
}

// write writes the files that the tree lacks. Keys come first, since a signature is
// useless without them. SHA256SUMS comes before its signature: until the signature is
// there, the registry signs the release itself. The error is tree.ErrChanged if a
// document or the keys have been added to the tree since they were looked for.
func (d *directory) write(ctx context.Context, r *upstream.Release, files documents, keys namespaceKeys) error {
	if r.Signed() && !keys.pinned {
		file, err := keys.withKeys(r.Keys)
		if err != nil {
			return err
		}
		if file != nil {
			if err := d.writeKeys(keys, file); err != nil {
				return err
			}
		}
	}
	if files.checksums != nil && r.Checksums != nil && !bytes.Equal(files.checksums, r.Checksums) {
		return d.extend(ctx, r, files)
	}
	for _, document := range []struct {
		name            string
		present, origin []byte
	}{
		{address.ManifestName(d.address.Name, r.Version), files.manifest, r.Manifest},
		{address.ChecksumsName(d.address.Name, r.Version), files.checksums, r.Checksums},
		{address.SignatureName(d.address.Name, r.Version), files.signature, r.Signature},
	} {
		if document.present != nil || document.origin == nil {
			continue
		}
		if err := d.providers.CreateFile(ctx, path.Join(files.dir, document.name), document.origin); err != nil {
			return err
		}
	}
	return nil
}

// writeKeys writes the keys file of the namespace. It does not replace another one than before: the
// operator may have pinned keys while packages were compared, or the file was only not found. The
// file is not created exclusively: what that may leave behind on some disks, an empty file, says
// that no key counts.
func (d *directory) writeKeys(before namespaceKeys, file []byte) error {
	now, err := read(d.keys, d.keysFile, tree.MaxDocument)
	if err == nil && ((now == nil) != (before.content == nil) || !bytes.Equal(now, before.content)) {
		err = tree.ErrChanged
	}
	if err != nil {
		return err
	}
	return d.keys.WriteFile(d.keysFile, file)
}

// An origin may add platforms to a version that it has released. Its SHA256SUMS
// then lists further files, and has another signature.

// extends reports whether a SHA256SUMS lists everything in another one, with the same
// sums, and more. Its form does not matter, since the publisher has signed it.
func extends(before, now []byte) bool {
	had, hadErr := wire.DecodeChecksums(before)
	has, hasErr := wire.DecodeChecksums(now)
	if hadErr != nil || hasErr != nil || len(has) <= len(had) {
		return false
	}
	for name, sum := range had {
		if listed, ok := has[name]; !ok || listed != sum {
			return false
		}
	}
	return true
}

// mayReplace reports whether a release, signed by keys that count, is the release of
// the given SHA256SUMS with further packages.
func mayReplace(r *upstream.Release, checksums []byte) bool {
	return r.Signed() && r.Signature != nil && extends(checksums, r.Checksums)
}

// canExtend reports whether extend can replace the documents.
func (d *directory) canExtend(files documents) (bool, error) {
	if files.apart {
		return false, nil
	}
	l, err := d.look(files.version)
	if err != nil {
		return false, err
	}
	if files.dir == d.path {
		return len(l.own.entries) == 0 || l.own.partial, nil
	}
	// The folder is removed as a whole, with packages that need the documents, or
	// documentation that was put beside them.
	typ, version := d.address.Name, files.version
	documents := []string{address.ChecksumsName(typ, version), address.SignatureName(typ, version), address.ManifestName(typ, version), tree.UploadName}
	return !slices.ContainsFunc(l.own.entries, func(e tree.Entry) bool { return !slices.Contains(documents, e.Name) }), nil
}

// extend replaces SHA256SUMS and its signature. A scan that sees only one of them
// replaced would withhold the release. If there are two pairs, the index uses the pair
// in the version's folder, and a folder appears or disappears at once. So if the old
// pair is in the provider's directory, the new pair is written to a version's folder.
// Otherwise the new pair is written to the provider's directory before the folder of
// the old pair is removed.
func (d *directory) extend(ctx context.Context, r *upstream.Release, files documents) error {
	sums, sig := address.ChecksumsName(d.address.Name, r.Version), address.SignatureName(d.address.Name, r.Version)
	in, folder := d.providers, d.folder(r.Version)
	if files.dir != d.path {
		if files.manifest != nil {
			if err := in.WriteFile(path.Join(d.path, address.ManifestName(d.address.Name, r.Version)), files.manifest); err != nil {
				return err
			}
		}
		if err := in.WriteFile(path.Join(d.path, sums), r.Checksums); err != nil {
			return err
		}
		if err := in.WriteFile(path.Join(d.path, sig), r.Signature); err != nil {
			return err
		}
		return in.RemoveFolder(ctx, folder, sums)
	}
	switch err := in.InstallDocuments(ctx, map[string][]byte{sums: r.Checksums, sig: r.Signature}, folder, sums); {
	case errors.Is(err, tree.ErrInTheWay):
		return errCannotExtend(r.Version)
	case err != nil:
		return err
	}
	for _, name := range []string{sig, sums} {
		if err := in.Remove(path.Join(d.path, name)); err != nil {
			return tree.StorageError(err)
		}
	}
	return nil
}
