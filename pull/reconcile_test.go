package pull_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// The signed documents in the tree verify further packages of a release: the origin is
// only asked for their location.
func TestDocumentsInTheTreeVerifyFurtherPackages(t *testing.T) {
	eachTree(t, testDocumentsInTheTreeVerifyFurtherPackages)
}

func testDocumentsInTheTreeVerifyFurtherPackages(t *testing.T, on treeKind) {
	for _, dir := range []string{directory, directory + "1.0.0/"} {
		t.Run(dir, func(t *testing.T) {
			folders, _ := acme(t)
			s := newSite(t, folders)
			root := on.root(t)
			mine := root.tree(t).Write(keysFile, folders.Read("keys/acme.asc"))
			for _, name := range []string{darwinZip, sums, sums + ".sig"} {
				mine.Write(dir+name, folders.Read("providers/acme/demo/"+name))
			}
			m := over(t, s.Client(t, upstream.Origin{}), pull.Policy{}, root)
			m.fill(t, linuxZip)
			if n := s.Count(sumsFile) + s.Count(sigFile) + s.Count(versions); n != 0 {
				t.Errorf("%d documents were requested", n)
			}
			m.mustHave(t, dir+linuxZip, dir+darwinZip, dir+sums, dir+sums+".sig", keysFile)
			if p := m.scan(t).Provider(index.PlaceOf(demo)); p == nil || len(p.Release("1.0.0").Packages) != 2 {
				t.Errorf("the index offers %+v", p)
			}
		})
	}
}

// rereleased returns an origin that has replaced a release by a different one of the
// same version and publisher, and the origin's tree before that.
func rereleased(t *testing.T) (now *site, before *indextest.Tree) {
	t.Helper()
	before, publisher := acme(t)
	folders := indextest.New(t)
	r := folders.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
	for _, name := range []string{linuxZip, darwinZip} {
		folders.Write("providers/acme/demo/"+name, indextest.Zip("terraform-provider-demo", "released again "+name))
	}
	r.Signed(publisher)
	folders.Keys("acme", publisher)
	return newSite(t, folders), before
}

// Files in the tree are never replaced, nor made invalid by files beside them.
func TestConflicts(t *testing.T) { eachTree(t, testConflicts) }

func testConflicts(t *testing.T, on treeKind) {
	for _, test := range []struct {
		rule    string
		present []string // files of the release before
		policy  pull.Policy
		says    string
	}{
		{"a signed release", []string{darwinZip, sums, sums + ".sig", "keys"}, pull.Policy{}, "released again"},
		{"a signed release without packages", []string{sums, sums + ".sig", "keys"}, pull.Policy{}, "released again"},
		{"a signed release of a publisher unknown here", []string{darwinZip, sums, sums + ".sig"}, pull.Policy{}, "SHA256SUMS differs"},
		{"a release without signature", []string{darwinZip, sums}, pull.Policy{}, "SHA256SUMS differs"},
		{"a package alone", []string{darwinZip}, pull.Policy{}, darwinZip + " differs"},
		{"the same package", []string{linuxZip}, pull.Policy{}, linuxZip + " differs"},
		{"the same package, of a signed release", []string{linuxZip, sums, sums + ".sig"}, pull.Policy{}, "differs"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s, before := rereleased(t)
			root := on.root(t)
			mine := root.tree(t)
			for _, name := range test.present {
				if name == "keys" {
					mine.Write(keysFile, before.Read("keys/acme.asc"))
					continue
				}
				mine.Write(directory+name, before.Read("providers/acme/demo/"+name))
			}
			m := over(t, s.Client(t, upstream.Origin{}), test.policy, root)
			m.mustRefuse(t, linuxZip, pull.ErrConflict, test.says)
			for _, name := range test.present {
				if name != "keys" && m.Read(directory+name) != before.Read("providers/acme/demo/"+name) {
					t.Errorf("%s has changed", name)
				}
			}
		})
	}
}

// An unpacked package would be withheld beside a signed SHA256SUMS, which cannot list
// it.
func TestAnUnpackedPackageIsNotMadeInvalid(t *testing.T) {
	eachTree(t, testAnUnpackedPackageIsNotMadeInvalid)
}

func testAnUnpackedPackageIsNotMadeInvalid(t *testing.T, on treeKind) {
	folders, _ := acme(t)
	s := newSite(t, folders)
	root := on.root(t)
	root.tree(t).Write(directory+"1.0.0/darwin_arm64/terraform-provider-demo", "x").Write(directory+"1.0.0/docs/README.md", "x")
	m := over(t, s.Client(t, upstream.Origin{}), pull.Policy{}, root)
	m.mustRefuse(t, linuxZip, pull.ErrConflict, "unpacked darwin_arm64 differs")
	for _, name := range m.files(t) {
		if strings.Contains(name, "SHA256SUMS") {
			t.Errorf("%s is in the tree", name)
		}
	}
	m.Remove(directory + "1.0.0")
	over(t, s.Client(t, upstream.Origin{}), pull.Policy{}, root).fill(t, linuxZip)
}

func TestManifests(t *testing.T) { eachTree(t, testManifests) }

func testManifests(t *testing.T, on treeKind) {
	folders := indextest.New(t)
	publisher := indextest.NewPublisher(t)
	manifest := "terraform-provider-demo_1.0.0_manifest.json"
	r := folders.Provider("acme/demo", "1.0.0", "linux_amd64").Manifest("6.0").Checksums()
	folders.Write(r.ChecksumsName(), folders.Read(r.ChecksumsName())+sumOf(folders.Read("providers/acme/demo/"+manifest))+"  "+manifest+"\n")
	r.Signed(publisher)
	folders.Keys("acme", publisher)
	s := newSite(t, folders)
	s.Fault(files+manifest, status(501))
	into := on.root(t)
	over(t, s.Client(t, upstream.Origin{}), pull.Policy{}, into).mustRefuse(t, linuxZip, upstream.ErrUnavailable, "")

	s.Fault(files+manifest, body(folders.Read("providers/acme/demo/"+manifest)))
	c := s.Client(t, upstream.Origin{})
	m := over(t, c, pull.Policy{}, into)
	m.fill(t, linuxZip)
	m.mustHave(t, directory+linuxZip, directory+sums, directory+sums+".sig", directory+manifest, keysFile, record)
	if d := m.scan(t).Provider(index.PlaceOf(demo)).Release("1.0.0").Packages[0].Download(); !strings.Contains(string(d.Head), `"protocols":["6.0"]`) {
		t.Errorf("the package is described as %s", d.Head)
	}

	root := on.root(t)
	root.tree(t).Provider(host+"/acme/demo", "1.0.0").Manifest("5.0")
	over(t, c, pull.Policy{}, root).mustRefuse(t, linuxZip, pull.ErrConflict, "manifest")
}

// The output of `terraform providers mirror` has packages only. It becomes a signed
// release with the next package.
func TestFillBesidePackagesAlone(t *testing.T) { eachTree(t, testFillBesidePackagesAlone) }

func testFillBesidePackagesAlone(t *testing.T, on treeKind) {
	for _, test := range []struct {
		rule    string
		present []string
	}{
		{"packages alone", []string{darwinZip}},
		{"with SHA256SUMS", []string{darwinZip, sums}},
		{"with a signature by an unknown key", []string{darwinZip, sums, sums + ".sig"}},
		{"with a signature without SHA256SUMS", []string{darwinZip, sums + ".sig"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			folders, _ := acme(t)
			root := on.root(t)
			for _, name := range test.present {
				root.tree(t).Write(directory+name, folders.Read("providers/acme/demo/"+name))
			}
			m := over(t, newSite(t, folders).Client(t, upstream.Origin{}), pull.Policy{}, root)
			m.fill(t, linuxZip)
			m.mustHave(t, directory+linuxZip, directory+darwinZip, directory+sums, directory+sums+".sig", keysFile, record)
			if p := m.scan(t).Provider(index.PlaceOf(demo)); p == nil || len(p.Release("1.0.0").Packages) != 2 {
				t.Errorf("the index offers %+v", p)
			}
		})
	}
}

// A package that was added to the tree in another way is verified and not fetched.
func TestAPackageInTheTree(t *testing.T) { eachTree(t, testAPackageInTheTree) }

func testAPackageInTheTree(t *testing.T, on treeKind) {
	folders, _ := acme(t)
	s := newSite(t, folders)
	root := on.root(t)
	root.tree(t).Write(directory+linuxZip, folders.Read("providers/acme/demo/"+linuxZip))
	m := over(t, s.Client(t, upstream.Origin{}), pull.Policy{}, root)
	f := m.fill(t, linuxZip)
	if s.Count(zipFile) != 0 || m.content(t, f) != folders.Read("providers/acme/demo/"+linuxZip) {
		t.Error("it was fetched")
	}
}

// A file that was replaced by hand is not served as the filled one.
func TestAFilledFileThatChanges(t *testing.T) {
	c := newAcme(t).Client(t, upstream.Origin{})
	m := onDisk(t, c, pull.Policy{})
	f := m.fill(t, linuxZip)
	m.Write(directory+linuxZip, "something else")
	if _, err := f.Open(); !errors.Is(err, tree.ErrChanged) {
		t.Errorf("got %v", err)
	}
	m.mustRefuse(t, linuxZip, pull.ErrConflict, linuxZip+" differs") // nor treated as present
	m.Remove(directory + linuxZip)
	if _, err := f.Open(); !errors.Is(err, tree.ErrChanged) {
		t.Errorf("got %v", err)
	}
	over(t, c, pull.Policy{}, m.root).fill(t, linuxZip)
}

// Directories that were made by hand keep their spelling: the index offers one spelling
// of an address.
func TestFoldersWrittenOtherwise(t *testing.T) { eachTree(t, testFoldersWrittenOtherwise) }

func testFoldersWrittenOtherwise(t *testing.T, on treeKind) {
	folders, _ := acme(t)
	root := on.root(t)
	mine := root.tree(t)
	dir := "providers/Registry.Example.COM/Acme/Demo/"
	mine.Write(dir+".keep", "")
	mine.Write("keys/REGISTRY.example.com/ACME.asc", folders.Read("keys/acme.asc"))
	m := over(t, newSite(t, folders).Client(t, upstream.Origin{}), pull.Policy{}, root)
	m.fill(t, linuxZip)
	m.mustHave(t, dir+".keep", dir+".versions.json", dir+".1.0.0.packages.json", dir+linuxZip, dir+sums, dir+sums+".sig", "keys/REGISTRY.example.com/ACME.asc")
	if m.scan(t).Provider(index.PlaceOf(demo)) == nil {
		t.Error("the index does not offer it")
	}
}

// When the publisher changes keys, releases signed by the old one stay valid.
func TestKeyRotation(t *testing.T) { eachTree(t, testKeyRotation) }

func testKeyRotation(t *testing.T, on treeKind) {
	first, second := indextest.NewPublisher(t), indextest.NewPublisher(t)
	folders := indextest.New(t)
	folders.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(first)
	folders.Keys("acme", first)
	root := on.root(t)
	over(t, newSite(t, folders).Client(t, upstream.Origin{}), pull.Policy{VersionsTTL: 1}, root).fill(t, linuxZip)

	later := indextest.New(t)
	later.Provider("acme/demo", "2.0.0", "linux_amd64").Signed(second)
	later.Keys("acme", second)
	m := over(t, newSite(t, later).Client(t, upstream.Origin{}), pull.Policy{VersionsTTL: 1}, root)
	m.fill(t, strings.ReplaceAll(linuxZip, "1.0.0", "2.0.0"))
	m.fill(t, linuxZip)

	file := m.Read(keysFile)
	if strings.Count(file, "BEGIN PGP") != 2 || strings.Count(file, "Kept by the registry") != 1 || !strings.HasPrefix(file, "Kept by the registry") {
		t.Errorf("the keys are\n%s", file)
	}
	p := m.scan(t).Provider(index.PlaceOf(demo))
	if p == nil || len(p.Releases) != 2 {
		t.Fatalf("the index offers %+v", p)
	}

	// Without its first line the file is the operator's.
	_, pinned, _ := strings.Cut(file, "\n")
	m.Write(keysFile, pinned)
	third := indextest.NewPublisher(t)
	folders = indextest.New(t)
	folders.Provider("acme/demo", "3.0.0", "linux_amd64").Signed(third)
	folders.Keys("acme", third)
	m = over(t, newSite(t, folders).Client(t, upstream.Origin{}), pull.Policy{VersionsTTL: 1}, root)
	m.mustRefuse(t, strings.ReplaceAll(linuxZip, "1.0.0", "3.0.0"), upstream.ErrBadSignature, "")
	if m.Read(keysFile) != pinned {
		t.Error("the file has changed")
	}
}

// If the origin no longer sends keys, the keys that it sent before count.
func TestKeysAreRemembered(t *testing.T) { eachTree(t, testKeysAreRemembered) }

func testKeysAreRemembered(t *testing.T, on treeKind) {
	folders, publisher := acme(t)
	root := on.root(t)
	c := newSite(t, folders).Client(t, upstream.Origin{})
	over(t, c, pull.Policy{}, root).fill(t, linuxZip)

	folders.Provider("acme/demo", "2.0.0", "linux_amd64").Signed(publisher)
	s := newSite(t, folders)
	s.Fault("/v1/providers/acme/demo/2.0.0/download/linux/amd64", s.Edited(`"gpg_public_keys"`, `"none"`))
	m := over(t, s.Client(t, upstream.Origin{}), pull.Policy{VersionsTTL: 1}, root)
	m.fill(t, strings.ReplaceAll(linuxZip, "1.0.0", "2.0.0"))
}

// Keys that are pinned after a release was verified count for its packages.
func TestKeysPinnedInBetween(t *testing.T) {
	m := onDisk(t, newAcme(t).Client(t, upstream.Origin{}), pull.Policy{})
	if _, err := m.Available(background(), demo, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	m.Keys(host+"/acme", indextest.NewPublisher(t))
	m.mustRefuse(t, linuxZip, upstream.ErrBadSignature, "pinned")
}

// Keys that are pinned while a release is compared with the tree are not replaced, and count for it.
func TestKeysPinnedWhileAReleaseIsCompared(t *testing.T) {
	c, pinned := newAcme(t).Client(t, upstream.Origin{}), indextest.NewPublisher(t).PublicKey()
	for _, present := range []string{"", "Kept by the registry: x\n\n" + indextest.NewPublisher(t).PublicKey()} {
		for n := 1; ; n++ { // after the keys have been looked at n times
			mine := indextest.New(t)
			if present != "" {
				mine.Write(keysFile, present)
			}
			var faults treetest.Faults
			m := faulty(t, c, pull.Policy{}, mine, &faults)
			looked, last := 0, ""
			var mutex sync.Mutex
			faults.When(func(_ int, o treetest.Operation) error {
				if o.Name == "sync" { // at any time, beside other operations
					return nil
				}
				mutex.Lock()
				defer mutex.Unlock()
				if inProviders := strings.HasPrefix(o.Path, "providers/"); inProviders && last == keysFile {
					if looked++; looked == n {
						mine.Write(keysFile, pinned)
					}
				}
				last = o.Path
				return nil
			})
			_, err := m.Fill(background(), demo, linuxZip)
			faults.End()
			m.Close()
			if looked < n {
				break
			}
			if !errors.Is(err, upstream.ErrBadSignature) || !strings.Contains(err.Error(), "pinned") {
				t.Errorf("time %d: got %v", n, err)
			}
			if m.Read(keysFile) != pinned {
				t.Errorf("time %d: the keys file is %s", n, m.Read(keysFile))
			}
		}
	}
}

// Another signature of the same SHA256SUMS is not a conflict if the release's keys
// verify it.
func TestAReleaseSignedTwice(t *testing.T) { eachTree(t, testAReleaseSignedTwice) }

func testAReleaseSignedTwice(t *testing.T, on treeKind) {
	first, second := indextest.NewPublisher(t), indextest.NewPublisher(t)
	folders := indextest.New(t)
	folders.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(first)
	folders.Keys("acme", first, second)
	document := folders.Read("providers/acme/demo/" + sums)
	c := newSite(t, folders).Client(t, upstream.Origin{})
	for _, test := range []struct {
		by   *indextest.Publisher
		kind error
	}{{second, nil}, {indextest.NewPublisher(t), pull.ErrConflict}} {
		root := on.root(t)
		signature := test.by.Sign(document)
		root.tree(t).Write(directory+sums, document).Write(directory+sums+".sig", signature)
		m := over(t, c, pull.Policy{}, root)
		if test.kind != nil {
			m.mustRefuse(t, linuxZip, test.kind, "signature")
			continue
		}
		m.fill(t, linuxZip)
		if p := m.scan(t).Provider(index.PlaceOf(demo)); m.Read(directory+sums+".sig") != signature || p == nil {
			t.Errorf("the index offers %+v", p)
		}
	}
}

// The index's snapshot may be older than the tree: files added since are not replaced
// either, and keys that have been pinned since count.
func TestATreeThatIsNewerThanTheSnapshot(t *testing.T) {
	now, before := rereleased(t)
	for _, test := range []struct {
		rule string
		put  func(*indextest.Tree)
		kind error
		says string
	}{
		{"another release", func(mine *indextest.Tree) {
			theirs := scannedFrom(t, now)
			mine.Write(directory+sums, theirs[0]).Write(directory+sums+".sig", theirs[1])
		}, pull.ErrConflict, "SHA256SUMS differs"},
		{"pinned keys", func(mine *indextest.Tree) {
			mine.Write(keysFile, indextest.NewPublisher(t).PublicKey())
		}, upstream.ErrBadSignature, "pinned"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			mine := indextest.New(t).Write(keysFile, "Kept by the registry: x\n\n"+before.Read("keys/acme.asc"))
			for _, name := range []string{darwinZip, sums, sums + ".sig"} {
				mine.Write(directory+name, before.Read("providers/acme/demo/"+name))
			}
			snapshot := scanned(t, mine)
			test.put(mine)
			m := inMemory(t, newSite(t, before).Client(t, upstream.Origin{}), pull.Policy{}, mine)
			files := m.files(t)
			_, err := m.Filler.Fill(background(), demo, linuxZip, snapshot.Provider(index.PlaceOf(demo)), pull.FillOptions{})
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			m.mustHave(t, files...)
		})
	}
}

// scannedFrom returns SHA256SUMS and its signature as a site serves them.
func scannedFrom(t *testing.T, s *site) [2]string {
	t.Helper()
	r, err := s.Client(t, upstream.Origin{}).Release(background(), demo, upstreamtest.V1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return [2]string{string(r.Checksums), string(r.Signature)}
}

// A release that the index no longer has is not offered from memory.
func TestAReleaseThatTheIndexHasNoLonger(t *testing.T) {
	now, before := rereleased(t)
	mine := indextest.New(t).Write(keysFile, before.Read("keys/acme.asc"))
	for _, name := range []string{darwinZip, sums, sums + ".sig"} {
		mine.Write(directory+name, before.Read("providers/acme/demo/"+name))
	}
	m := inMemory(t, now.Client(t, upstream.Origin{}), pull.Policy{}, mine)
	if _, _, err := m.Filler.Available(background(), demo, "1.0.0", scanned(t, mine).Provider(index.PlaceOf(demo)).Release("1.0.0")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{darwinZip, sums, sums + ".sig"} { // to get the origin's
		if err := mine.Fs.Remove(directory + name); err != nil {
			t.Fatal(err)
		}
	}
	m.fill(t, linuxZip)
}

// A manifest that has been changed since the release was verified is not passed on
// to other mirrors.
func TestManifestsThatDoNotMatch(t *testing.T) {
	folders, publisher := indextest.New(t), indextest.NewPublisher(t)
	const manifest = "terraform-provider-demo_1.0.0_manifest.json"
	r := folders.Provider(host+"/acme/demo", "1.0.0", "linux_amd64").Manifest("6.0").Checksums()
	folders.Write(r.ChecksumsName(), folders.Read(r.ChecksumsName())+sumOf(folders.Read(directory+manifest))+"  "+manifest+"\n")
	r.Signed(publisher)
	folders.Keys(host+"/acme", publisher)
	snapshot := scanned(t, folders)
	m := inMemory(t, newAcme(t).Client(t, upstream.Origin{}), pull.Policy{}, folders)
	f, err := m.Filler.Fill(background(), demo, manifest, snapshot.Provider(index.PlaceOf(demo)), pull.FillOptions{})
	if err != nil || m.content(t, f) != folders.Read(directory+manifest) {
		t.Fatalf("got %v", err)
	}
	folders.Write(directory+manifest, `{"version":1,"metadata":{"protocol_versions":["5.0"]}}`)
	if _, err := m.Filler.Fill(background(), demo, manifest, snapshot.Provider(index.PlaceOf(demo)), pull.FillOptions{}); !errors.Is(err, pull.ErrNotMirrored) {
		t.Errorf("got %v", err)
	}
}
