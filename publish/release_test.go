package publish_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func TestReleaseInAnyOrder(t *testing.T) { eachTree(t, testReleaseInAnyOrder) }

func testReleaseInAnyOrder(t *testing.T, on treeKind) {
	author := indextest.NewPublisher(t)
	d := newDist(t, "").signed(author)
	for _, order := range permutations(d.names()) {
		r := on.newRegistry(t)
		r.Keys("acme", author)
		r.putAll(d, order...)
		r.offers(d)
		r.holds(filesIn("providers/acme/demo/1.0.0", d.names()...)...)
		r.isClean()
	}
}

// permutations returns orders of a list in which every name is first and last once.
func permutations(names []string) (orders [][]string) {
	for i := range names {
		rotated := slices.Concat(names[i:], names[:i])
		orders = append(orders, rotated)
		reversed := slices.Clone(rotated)
		slices.Reverse(reversed)
		orders = append(orders, reversed)
	}
	return orders
}

func TestWhatIsMissing(t *testing.T) { eachTree(t, testWhatIsMissing) }

func testWhatIsMissing(t *testing.T, on treeKind) {
	author := indextest.NewPublisher(t)
	d := newDist(t, "").signed(author)
	r := on.newRegistry(t)
	r.Keys("acme", author)
	for _, step := range []struct {
		put     string
		missing []string
	}{
		{linuxZip, []string{sums, signature}},
		{signature, []string{sums}},
		{sums, []string{darwinZip, manifest}},
		{manifest, []string{darwinZip}},
	} {
		result := r.mustPut(step.put, d[step.put], publish.Waiting)
		if !slices.Equal(result.Missing, step.missing) {
			t.Errorf("after %s, %v are missing, want %v", step.put, result.Missing, step.missing)
		}
		state, err := r.State(t.Context(), demo, "1.0.0")
		if err != nil || !slices.Equal(state.Missing, step.missing) || state.Status != wire.Staged || state.Expires == nil {
			t.Errorf("after %s, the state is %+v, %v", step.put, state, err)
		}
	}
	if result := r.mustPut(darwinZip, d[darwinZip], publish.Added); len(result.Files) != len(d) {
		t.Errorf("published are %v", result.Files)
	}
	state, err := r.State(t.Context(), demo, "1.0.0")
	if err != nil || state.Status != wire.Published || len(state.Files) != len(d) || state.Missing != nil {
		t.Errorf("once published, the state is %+v, %v", state, err)
	}
}

func TestSignaturesThatAreNeeded(t *testing.T) { eachTree(t, testSignaturesThatAreNeeded) }

func testSignaturesThatAreNeeded(t *testing.T, on treeKind) {
	author, stranger := indextest.NewPublisher(t), indextest.NewPublisher(t)
	t.Run("without keys of the namespace none is", func(t *testing.T) {
		d := newDist(t, "")
		r := on.newRegistry(t)
		r.putAll(d, manifest, linuxZip, darwinZip, sums)
		r.offers(d)
		t.Run("one that comes later changes nothing", func(t *testing.T) {
			before := r.files()
			result := r.mustPut(signature, author.Sign(d[sums]), publish.Unchanged)
			if !strings.Contains(result.Message, "is not kept") || !slices.Equal(r.files(), before) {
				t.Errorf("message %q, files %v", result.Message, r.files())
			}
		})
		t.Run("nor does what is none", func(t *testing.T) {
			_, err := r.put(signature, "no signature")
			saying(t, err, publish.ErrRefused, "it is not a binary detached signature")
		})
	})
	t.Run("what is none is refused before the release is complete", func(t *testing.T) {
		d := newDist(t, "").signed(author)
		r := on.newRegistry(t)
		for _, bad := range []string{"no signature", author.PublicKey(), d[sums]} {
			_, err := r.put(signature, bad)
			saying(t, err, publish.ErrRefused, "it is not a binary detached signature")
		}
		r.isClean()
	})
	t.Run("one that arrives while the release is completed changes nothing", func(t *testing.T) {
		d := newDist(t, "").signed(author)
		r := on.newRegistry(t)
		f := releaseFile(t, "1.0.0", signature)
		body := &slowBody{Reader: strings.NewReader(d[signature]), begun: make(chan struct{}), goOn: make(chan struct{})}
		done := make(chan error, 1)
		go func() {
			_, err := r.Put(t.Context(), f, publish.Upload{Body: body, Size: int64(len(d[signature]))})
			done <- err
		}()
		<-body.begun
		r.putAll(d, manifest, linuxZip, darwinZip, sums)
		close(body.goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("with keys it is", func(t *testing.T) {
		d := newDist(t, "").signed(author)
		r := on.newRegistry(t)
		r.Keys("acme", author)
		r.putAll(d, manifest, linuxZip, darwinZip, sums, signature)
		r.offers(d)
		t.Run("the same one is there", func(t *testing.T) {
			r.mustPut(signature, d[signature], publish.Unchanged)
		})
		t.Run("another one is refused", func(t *testing.T) {
			_, err := r.put(signature, stranger.Sign(d[sums]))
			saying(t, err, publish.ErrConflict, "a version never changes")
		})
	})
	t.Run("with keys that come after the release none is added", func(t *testing.T) {
		d := newDist(t, "")
		r := on.newRegistry(t)
		r.putAll(d, d.names()...)
		r.Keys("acme", author)
		_, err := r.put(signature, author.Sign(d[sums]))
		saying(t, err, publish.ErrConflict, "is published without "+signature)
	})
	t.Run("where signatures are required it is", func(t *testing.T) {
		for _, keys := range []string{"", "unsigned\n"} {
			r := on.newRegistry(t, func(o *publish.Options) { o.RequireSignatures = true })
			if keys != "" {
				r.Write("keys/acme.asc", keys)
			}
			d := newDist(t, "")
			for _, name := range d.names() {
				if result := r.mustPut(name, d[name], publish.Waiting); !slices.Contains(result.Missing, signature) {
					t.Errorf("with the keys %q, after %s, %v are missing", keys, name, result.Missing)
				}
			}
		}
	})
	t.Run("a wrong one is refused, and what else is staged stays", func(t *testing.T) {
		d := newDist(t, "").signed(author)
		r := on.newRegistry(t)
		r.Keys("acme", author)
		for _, name := range []string{manifest, linuxZip, darwinZip, sums} {
			r.mustPut(name, d[name], publish.Waiting)
		}
		_, err := r.put(signature, stranger.Sign(d[sums]))
		saying(t, err, publish.ErrRefused, "not in the namespace's keys")
		_, err = r.put(signature, author.Sign("other"))
		saying(t, err, publish.ErrRefused, "does not match")
		r.mustPut(signature, d[signature], publish.Added)
		r.offers(d)
	})
	t.Run("a wrong one that comes first is dropped", func(t *testing.T) {
		d := newDist(t, "").signed(author)
		r := on.newRegistry(t)
		r.Keys("acme", author)
		r.mustPut(signature, stranger.Sign(d[sums]), publish.Waiting)
		result := r.mustPut(sums, d[sums], publish.Waiting)
		if !slices.Contains(result.Missing, signature) || !strings.Contains(result.Message, signature) {
			t.Errorf("missing %v, message %q", result.Missing, result.Message)
		}
		r.putAll(d, manifest, linuxZip, darwinZip, signature)
		r.offers(d)
	})
}

// SHA256SUMS decides between builds of a file. The answer names the files of which none is left.
func TestSHA256SUMSNamesWhatItDrops(t *testing.T) {
	d, other, third := newDist(t, ""), newDist(t, "other"), newDist(t, "third")
	r := newRegistry(t)
	for _, build := range []dist{other, d, third} {
		r.mustPut(linuxZip, build[linuxZip], publish.Waiting)
	}
	for _, build := range []dist{other, third} {
		r.mustPut(darwinZip, build[darwinZip], publish.Waiting)
	}
	result := r.mustPut(sums, d[sums], publish.Waiting)
	if want := "not those that SHA256SUMS is of, and dropped: " + darwinZip; result.Message != want || slices.Contains(result.Missing, linuxZip) {
		t.Errorf("missing are %v, and it says %q", result.Missing, result.Message)
	}
}

// A slowBody waits before its first byte.
type slowBody struct {
	io.Reader
	begun, goOn chan struct{}
	once        sync.Once
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.once.Do(func() {
		close(b.begun)
		<-b.goOn
	})
	return b.Reader.Read(p)
}

// A refused file leaves nothing behind.
func TestReleaseFilesThatAreRefused(t *testing.T) { eachTree(t, testReleaseFilesThatAreRefused) }

func testReleaseFilesThatAreRefused(t *testing.T, on treeKind) {
	other := indextest.Zip("terraform-provider-demo_v1.0.0", "another build")
	tests := []struct {
		rule    string
		staged  []string
		name    string
		content string
		kind    error
		says    string
	}{
		{rule: "a zip that is none", name: linuxZip, content: "PK", kind: publish.ErrRefused, says: "cannot be read to its end"},
		{rule: "a zip without the provider", name: linuxZip, content: indextest.Zip("README.md", "hello"), kind: publish.ErrRefused, says: "there is no file terraform-provider-demo"},
		{rule: "an empty file", name: linuxZip, content: "", kind: publish.ErrRefused, says: "empty"},
		{rule: "another version than the path says", name: "terraform-provider-demo_1.0.1_linux_amd64.zip", content: other, kind: publish.ErrRefused, says: "is of version 1.0.1, and the path says 1.0.0"},
		{rule: "another provider", name: "terraform-provider-other_1.0.0_linux_amd64.zip", content: other, kind: publish.ErrRefused, says: "terraform-provider-demo_1.0.0_OS_ARCH.zip"},
		{rule: "a name without a platform", name: "terraform-provider-demo_1.0.0.zip", content: other, kind: publish.ErrRefused, says: "terraform-provider-demo_VERSION_OS_ARCH.zip"},
		{rule: "a file that no release has", name: "README.md", content: "hello", kind: publish.ErrRefused, says: "is not published with a release"},
		{rule: "a SHA256SUMS with a blank line", name: sums, content: "\n\n", kind: publish.ErrRefused, says: "line 1 of SHA256SUMS is blank"},
		{rule: "a SHA256SUMS of another version", name: sums, content: string(wire.Checksums{"terraform-provider-demo_2.0.0_linux_amd64.zip": {}}.Encode()), kind: publish.ErrRefused, says: "lists no package of version 1.0.0"},
		{rule: "a manifest that is none", name: manifest, content: "{", kind: publish.ErrRefused, says: "manifest"},
		{rule: "a package with another digest than listed", staged: []string{sums}, name: linuxZip, content: other, kind: publish.ErrRefused, says: "the SHA256SUMS that is staged lists"},
		{rule: "a package that is not listed", staged: []string{sums}, name: "terraform-provider-demo_1.0.0_windows_amd64.zip", content: other, kind: publish.ErrRefused, says: "does not list"},
		{rule: "another SHA256SUMS", staged: []string{sums}, name: sums, content: string(wire.Checksums{linuxZip: {}}.Encode()), kind: publish.ErrConflict, says: "another SHA256SUMS"},
	}
	d := newDist(t, "")
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			r := on.newRegistry(t)
			for _, name := range test.staged {
				r.mustPut(name, d[name], publish.Waiting)
			}
			before := r.files()
			_, err := r.put(test.name, test.content)
			saying(t, err, test.kind, test.says)
			r.holds(before...)
			if test.staged == nil {
				r.isClean()
			}
			r.Drop(t.Context(), demo, "1.0.0")
			r.putAll(d, d.names()...)
			r.offers(d)
		})
	}
}

// The public registry drops such a release without a word.
func TestManifestsMustBeListed(t *testing.T) { eachTree(t, testManifestsMustBeListed) }

func testManifestsMustBeListed(t *testing.T, on treeKind) {
	d := newDist(t, "")
	content := d[manifest]
	delete(d, manifest)
	d.sum()
	t.Run("SHA256SUMS first", func(t *testing.T) {
		r := on.newRegistry(t)
		r.mustPut(sums, d[sums], publish.Waiting)
		_, err := r.put(manifest, content)
		saying(t, err, publish.ErrRefused, "SHA256SUMS does not list "+manifest)
	})
	t.Run("manifest first", func(t *testing.T) {
		r := on.newRegistry(t)
		r.mustPut(manifest, content, publish.Waiting)
		_, err := r.put(sums, d[sums])
		saying(t, err, publish.ErrRefused, "SHA256SUMS does not list "+manifest)
	})
}

func TestVersionsNeverChange(t *testing.T) { eachTree(t, testVersionsNeverChange) }

func testVersionsNeverChange(t *testing.T, on treeKind) {
	d, other := newDist(t, ""), newDist(t, "other")
	published := func(t *testing.T) *registry {
		r := on.newRegistry(t)
		r.putAll(d, d.names()...)
		return r
	}
	copied := func(t *testing.T) *registry {
		r := on.newRegistry(t)
		for name, content := range d {
			r.Write("providers/acme/demo/"+name, content)
		}
		return r
	}
	for _, way := range []struct {
		name string
		into func(*testing.T) *registry
	}{{"published", published}, {"copied", copied}} {
		t.Run(way.name, func(t *testing.T) {
			r := way.into(t)
			before := r.files()
			for _, name := range d.names() {
				r.mustPut(name, d[name], publish.Unchanged)
				if name == manifest {
					continue // the same in both builds
				}
				_, err := r.put(name, other[name])
				saying(t, err, publish.ErrConflict, "a version never changes")
			}
			_, err := r.put("terraform-provider-demo_1.0.0_windows_amd64.zip", other[linuxZip])
			saying(t, err, publish.ErrConflict, "is published without terraform-provider-demo_1.0.0_windows_amd64.zip")
			r.holds(before...)
		})
	}
}

// A package in the tree counts if it is unpacked or a symlink.
func TestPackagesInTheTree(t *testing.T) { eachTree(t, testPackagesInTheTree) }

func testPackagesInTheTree(t *testing.T, on treeKind) {
	d := newDist(t, "")
	for _, way := range []struct {
		rule string
		into func(*registry)
	}{
		{"unpacked", func(r *registry) {
			r.Write("providers/acme/demo/1.0.0/linux_amd64/terraform-provider-demo_v1.0.0", "#!")
		}},
		{"under another spelling of the address", func(r *registry) {
			r.Write("providers/acme/other/registry.hcl", `description = "acme is there"`)
			r.Write("providers/ACME/demo/"+linuxZip, newDist(r.t, "other")[linuxZip])
		}},
		{"a symlink to an unpacked one", func(r *registry) {
			r.Write("shared/terraform-provider-demo_v1.0.0", "#!")
			r.link("../../../../shared", "providers/acme/demo/1.0.0/linux_amd64")
		}},
		{"a symlink to a zip", func(r *registry) {
			r.Write("shared/demo.zip", d[darwinZip])
			r.link("../../../shared/demo.zip", "providers/acme/demo/"+darwinZip)
		}},
	} {
		t.Run(way.rule, func(t *testing.T) {
			r := on.newRegistry(t)
			way.into(r)
			_, err := r.put(linuxZip, d[linuxZip])
			saying(t, err, publish.ErrConflict, "a version never changes")
		})
	}
}

// A client need not send announced bytes that are already there.
func TestAnnouncedBytes(t *testing.T) { eachTree(t, testAnnouncedBytes) }

func testAnnouncedBytes(t *testing.T, on treeKind) {
	d := newDist(t, "")
	r := on.newRegistry(t)
	announced := func(name, content string) (publish.Result, error) {
		f := releaseFile(t, "1.0.0", name)
		return r.Put(t.Context(), f, publish.Upload{Body: unreadable{}, Size: int64(len(content)), SHA256: sha256.Sum256([]byte(content))})
	}
	if _, err := announced(linuxZip, d[linuxZip]); !errors.Is(err, publish.ErrInterrupted) {
		t.Errorf("what is not there is not asked for: %v", err)
	}
	r.mustPut(linuxZip, d[linuxZip], publish.Waiting)
	if result, err := announced(linuxZip, d[linuxZip]); err != nil || result.Outcome != publish.Waiting {
		t.Errorf("staged and undecided: %+v, %v", result, err)
	}
	r.mustPut(sums, d[sums], publish.Waiting)
	for _, name := range []string{linuxZip, sums} {
		if result, err := announced(name, d[name]); err != nil || result.Outcome != publish.Waiting {
			t.Errorf("staged %s: %+v, %v", name, result, err)
		}
	}
	r.mustPut(manifest, d[manifest], publish.Waiting)
	r.mustPut(darwinZip, d[darwinZip], publish.Added)
	for name := range d {
		if result, err := announced(name, d[name]); err != nil || result.Outcome != publish.Unchanged {
			t.Errorf("published %s: %+v, %v", name, result, err)
		}
	}
	_, err := announced(linuxZip, "other")
	saying(t, err, publish.ErrConflict, "a version never changes")
}

type unreadable struct{}

func (unreadable) Read([]byte) (int, error) { return 0, errors.New("this must not be read") }

func TestUploadsThatAreNotWhatWasAnnounced(t *testing.T) {
	eachTree(t, testUploadsThatAreNotWhatWasAnnounced)
}

func testUploadsThatAreNotWhatWasAnnounced(t *testing.T, on treeKind) {
	d := newDist(t, "")
	content := d[linuxZip]
	f := releaseFile(t, "1.0.0", linuxZip)
	tests := []struct {
		rule   string
		upload publish.Upload
		kind   error
		says   string
	}{
		{"cut off", publish.Upload{Body: strings.NewReader(content[:10]), Size: int64(len(content))}, publish.ErrInterrupted, "send the file again"},
		{"the connection breaks", publish.Upload{Body: io.MultiReader(strings.NewReader(content[:10]), unreadable{}), Size: -1}, publish.ErrInterrupted, "send the file again"},
		{"another digest", publish.Upload{Body: strings.NewReader(content), Size: -1, SHA256: wire.SHA256{1}}, publish.ErrRefused, "its request announced 01000"},
		{"announced as too large", publish.Upload{Body: unreadable{}, Size: 1 << 20}, publish.ErrTooLarge, "larger than 100000 bytes"},
		{"too large", publish.Upload{Body: strings.NewReader(strings.Repeat("x", 1<<20)), Size: -1}, publish.ErrTooLarge, "larger than 100000 bytes"},
		{"larger than the server in front takes", publish.Upload{Body: io.MultiReader(strings.NewReader(content[:10]), iotest.ErrReader(fmt.Errorf("read: %w", publish.TooLarge(10)))), Size: -1}, publish.ErrTooLarge, "larger than 10 bytes"},
		{"a question for what is not there", publish.Upload{SHA256: sha256.Sum256([]byte(content)), Bodiless: true}, publish.ErrNothing, ""},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			r := on.newRegistry(t, func(o *publish.Options) { o.MaxSize = 100_000 })
			_, err := r.Put(t.Context(), f, test.upload)
			saying(t, err, test.kind, test.says)
			r.isClean()
		})
	}
}

// The highest number is no limit.
func TestTheHighestMaxSize(t *testing.T) {
	r := newRegistry(t, func(o *publish.Options) { o.MaxSize = math.MaxInt64 })
	d := newDist(t, "")
	r.putAll(d, d.names()...)
	r.offers(d)
}

func TestDrop(t *testing.T) { eachTree(t, testDrop) }

func testDrop(t *testing.T, on treeKind) {
	d := newDist(t, "")
	r := on.newRegistry(t)
	if err := r.Drop(t.Context(), demo, "1.0.0"); !errors.Is(err, publish.ErrNothing) {
		t.Errorf("nothing is staged: %v", err)
	}
	r.mustPut(linuxZip, d[linuxZip], publish.Waiting)
	r.mustPut(sums, d[sums], publish.Waiting)
	if err := r.Drop(t.Context(), demo, "1.0.0"); err != nil {
		t.Error(err)
	}
	r.isClean()
	if _, err := r.State(t.Context(), demo, "1.0.0"); !errors.Is(err, publish.ErrNothing) {
		t.Errorf("the state after that: %v", err)
	}
	other := newDist(t, "other")
	r.putAll(other, other.names()...)
	r.offers(other)
	saying(t, r.Drop(t.Context(), demo, "1.0.0"), publish.ErrConflict, "version 1.0.0 of acme/demo is published, and is not deleted: withdraw it in its registry.hcl")
	r.offers(other)
	r.Write("providers/.staging/acme@demo@1.0.0/docs.zip", indextest.Zip("index.md", "# Demo")) // left by a crash
	saying(t, r.Drop(t.Context(), demo, "1.0.0"), publish.ErrConflict, "withdraw it")
	r.offers(other)
}

func TestWithdrawnVersionsAreRefused(t *testing.T) { eachTree(t, testWithdrawnVersionsAreRefused) }

func testWithdrawnVersionsAreRefused(t *testing.T, on treeKind) {
	r := on.newRegistry(t)
	r.Write("providers/acme/demo/registry.hcl", `withdrawn "< 1.1.0" {}`)
	if _, err := r.index.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := r.put(linuxZip, newDist(t, "")[linuxZip])
	saying(t, err, publish.ErrRefused, "is withdrawn by registry.hcl")
}

// The packages of a release are read when they arrive, and never again.
func TestPublishedPackagesAreReadOnce(t *testing.T) { eachTree(t, testPublishedPackagesAreReadOnce) }

func testPublishedPackagesAreReadOnce(t *testing.T, on treeKind) {
	d := newDist(t, "")
	r := on.newRegistry(t)
	r.putAll(d, d.names()...)
	if read := r.index.Stats().Read; read != 0 {
		t.Errorf("scans have read %d archives", read)
	}
	if r.index.Snapshot().Provider(index.PlaceOf(demo)).Release("1.0.0").Packages[0].FileHashes == "" {
		t.Error("the package has no h1")
	}
}

// Only the release itself is checked. If other files in the tree keep it from being
// offered, the publisher learns so.
func TestReleasesThatTheTreeKeepsFromBeingOffered(t *testing.T) {
	eachTree(t, testReleasesThatTheTreeKeepsFromBeingOffered)
}

func testReleasesThatTheTreeKeepsFromBeingOffered(t *testing.T, on treeKind) {
	r := on.newRegistry(t)
	r.Write("providers/acme/demo/"+manifest, "{")
	d := newDist(t, "")
	delete(d, manifest)
	d.sum()
	for _, name := range []string{linuxZip, darwinZip} {
		r.mustPut(name, d[name], publish.Waiting)
	}
	result := r.mustPut(sums, d[sums], publish.Waiting)
	if !strings.Contains(result.Message, "is not offered because of something else there") {
		t.Errorf("the message is %q", result.Message)
	}
}

// A folder of the tree may be replaced while a file is being sent. A file in the old root
// would never be offered, and a release must not be judged by the old keys.
func TestTreesThatAreReplaced(t *testing.T) {
	d := newDist(t, "")
	content := indextest.TarGz("main.tf", `output "a" { value = 1 }`)
	release := releaseFile(t, "1.0.0", linuxZip)
	module := moduleFile(t, "1.0.0.tar.gz")
	for _, test := range []struct {
		folder  string
		file    publish.File
		content string
		outcome publish.Outcome
	}{
		{"the root", release, d[linuxZip], publish.Waiting},
		{"the root", module, content, publish.Added},
		{"keys elsewhere", release, d[linuxZip], publish.Waiting},
	} {
		t.Run(test.folder+" during the upload of a "+test.file.Kind.String(), func(t *testing.T) {
			keys := t.TempDir()
			r := newRegistryWithKeys(t, keys)
			replaced := r.root
			if test.folder != "the root" {
				replaced = keys
			}
			u := upload(test.content)
			u.Body = &onRead{from: u.Body, do: func() { replace(t, replaced) }}
			_, err := r.Put(t.Context(), test.file, u)
			saying(t, err, publish.ErrUnavailable, "try again")
			result, err := r.Put(t.Context(), test.file, upload(test.content))
			if err != nil || result.Outcome != test.outcome {
				t.Errorf("when it is sent again: %+v, %v", result, err)
			}
		})
	}
}

// Keys that are replaced while Run waits for a lock count for the release that it completes.
func TestKeysThatAreReplacedBeforeAReleaseIsCompleted(t *testing.T) {
	d, author := newDist(t, ""), indextest.NewPublisher(t)
	keys, looked := t.TempDir(), make(chan struct{})
	r := newRegistryWithKeys(t, keys, func(o *publish.Options) {
		lock := o.Lock
		o.Lock = func(ctx context.Context, name string) (func(), error) {
			replace(t, keys)
			if err := os.WriteFile(filepath.Join(keys, "acme.asc"), []byte(author.PublicKey()), 0o600); err != nil {
				t.Error(err)
			}
			unlock, err := lock(ctx, name)
			return func() { unlock(); close(looked) }, err
		}
	})
	var staged []string
	for _, name := range d.names() {
		staged = append(staged, stagedRelease+name)
		r.Write(stagedRelease+name, d[name])
	}
	stop := r.run()
	<-looked
	stop()
	r.holds(staged...)
}

// newRegistryWithKeys starts a registry whose keys lie outside of its root.
func newRegistryWithKeys(t *testing.T, keys string, change ...func(*publish.Options)) *registry {
	t.Helper()
	root := t.TempDir()
	r := &registry{t: t, root: root, Tree: indextest.OnDisk(t, root)}
	open := source.Directories{Root: root, Keys: keys}.Open
	r.start(index.Options{Open: open, Watch: true}, open, change...)
	return r
}

// replace puts an empty tree in the place of a folder.
func replace(t *testing.T, folder string) {
	t.Helper()
	err := os.Rename(folder, folder+"-old")
	for _, part := range []string{"providers", "modules"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(folder, part), 0o755))
	}
	if err != nil {
		t.Error(err)
	}
}

// An onRead calls a function before it is read.
type onRead struct {
	from io.Reader
	do   func()
}

func (o *onRead) Read(b []byte) (int, error) {
	if o.do != nil {
		o.do()
		o.do = nil
	}
	return o.from.Read(b)
}
