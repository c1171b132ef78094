package index_test

import (
	"archive/zip"
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

var ownDemo = address.Address{Namespace: "acme", Name: "demo"}

// Whose signature clients get, and which note the operator gets.
func TestSignatures(t *testing.T) {
	const day = 24 * time.Hour
	acme, other := indextest.NewPublisher(t), indextest.NewPublisher(t)
	expired := indextest.NewExpiringPublisher(t, 30*day, day)
	late := indextest.NewExpiringPublisher(t, day, 2*day)
	release := func(files *indextest.Tree) *indextest.Release {
		return files.Provider("acme/demo", "1.0.0", "linux_amd64", "linux_arm64")
	}
	const sig = "providers/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS.sig"
	for _, test := range []struct {
		rule      string
		build     func(files *indextest.Tree)
		signature string      // prefix of what the report says; empty: withheld
		note      string      // empty: none
		required  tree.Reason // under `signatures require`; empty: offered as well
	}{
		{"the publisher, with a known key", func(files *indextest.Tree) {
			files.Keys("acme", acme)
			release(files).Signed(acme)
		}, "publisher " + acme.ID(), "", ""},
		{"the publisher, with one key of several", func(files *indextest.Tree) {
			files.Keys("acme", other, acme)
			release(files).Signed(acme)
		}, "publisher " + acme.ID(), "", ""},
		{"the publisher, with a key that has expired since", func(files *indextest.Tree) {
			files.Keys("acme", expired)
			release(files).Signed(expired)
		}, "publisher " + expired.ID(), "expired on 2026-01-31: clients warn", ""},
		{"not offered, as the key had expired by then", func(files *indextest.Tree) {
			files.Keys("acme", late)
			release(files).Signed(late)
		}, "", "", tree.KeyExpired},
		{"not offered, as the signature is of another document", func(files *indextest.Tree) {
			files.Keys("acme", acme)
			release(files).Signed(acme)
			files.Write(sig, acme.Sign("another"))
		}, "", "", tree.BadSignature},
		{"not offered, as the signature is empty", func(files *indextest.Tree) {
			release(files).Signed(acme)
			files.Write(sig, "")
		}, "", "", tree.Empty},
		{"not offered, as the signature is too large", func(files *indextest.Tree) {
			release(files).Signed(acme)
			files.Write(sig, strings.Repeat("x", 1<<20+1))
		}, "", "", tree.TooLarge},
		{"the registry, when the publisher did not sign", func(files *indextest.Tree) { release(files) }, "registry ", "", tree.Unsigned},
		{"the registry, when there are only sums", func(files *indextest.Tree) { release(files).Checksums() }, "registry ", "", tree.Unsigned},
		{"the registry, when there is only a signature", func(files *indextest.Tree) {
			release(files)
			files.Write(sig, acme.Sign("?"))
		}, "registry ", "a signature without the SHA256SUMS", tree.Unsigned},
		{"the registry, when there are no keys", func(files *indextest.Tree) {
			release(files).Signed(acme)
		}, "registry ", "put the publisher's public key in keys/acme.asc", tree.Unsigned},
		{"the registry, when there is no signature for the keys", func(files *indextest.Tree) {
			files.Keys("acme", other)
			release(files).Checksums()
		}, "registry ", "", tree.Unsigned},
		{"the registry, when the keys are of another namespace", func(files *indextest.Tree) {
			files.Keys("other", acme)
			release(files).Signed(acme)
		}, "registry ", "keys/acme.asc", tree.Unsigned},
		{"the registry, when the keys are of another hostname", func(files *indextest.Tree) {
			files.Keys("registry.example.com/acme", acme)
			release(files).Signed(acme)
		}, "registry ", "keys/acme.asc", tree.Unsigned},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			test.build(files)
			o := options(t, files.Open)
			o.Now = func() time.Time { return indextest.Born.Add(365 * day) }
			s := scanWith(t, o)
			offer := offerOf(s, "acme/demo", "1.0.0")
			notes := strings.Join(offer.Notes, "\n")
			if offer.Version == "" != (test.signature == "") || !strings.HasPrefix(offer.Signature, test.signature) ||
				!strings.Contains(notes, test.note) || (notes == "") != (test.note == "") {
				t.Errorf("the offer is %+v, withheld is %+v", offer, s.Report().Withheld)
			}
			if test.signature != "" {
				nothingWithheld(t, s)
				if !strings.HasPrefix(offer.Signature, "publisher") && strings.Contains(served(t, s, s.Provider(index.PlaceOf(ownDemo)).File("terraform-provider-demo_1.0.0_SHA256SUMS.sig")), acme.Sign("?")) {
					t.Error("the publisher's signature is served as the registry's")
				}
			}

			o.RequireSignatures = true
			s = scanWith(t, o)
			if test.required == "" {
				nothingWithheld(t, s)
				return
			}
			if len(s.Report().Offered) > 0 || len(s.Report().Withheld) != 1 || s.Report().Withheld[0].Reason != test.required {
				t.Errorf("when signatures are required, offered is %+v, withheld is %+v", s.Report().Offered, s.Report().Withheld)
			}
			if !strings.Contains(s.Report().Withheld[0].Detail, test.note) {
				t.Errorf("the detail is %s", s.Report().Withheld[0].Detail)
			}
		})
	}
}

// A keys file keeps all other keys out, even if none of its keys can be used.
func TestSignaturesByOtherKeysWithhold(t *testing.T) {
	acme, other := indextest.NewPublisher(t), indextest.NewPublisher(t)
	for _, test := range []struct {
		rule  string
		build func(files *indextest.Tree)
		says  string
	}{
		{"the keys are those of another publisher", func(files *indextest.Tree) { files.Keys("acme", other) },
			"key ID " + acme.ID() + "; if it is the publisher's, add it to keys/acme.asc"},
		{"the keys cannot be used", func(files *indextest.Tree) { files.Write("keys/acme.asc", "no key\n") }, "keys/acme.asc has no usable key"},
		{"the keys cannot be read", func(files *indextest.Tree) { files.Write("keys/acme.asc", "") }, "keys/acme.asc has no usable key"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			test.build(files)
			r := files.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(acme)
			files.Provider("acme/demo", "0.9.0", "linux_amd64").Checksums() // has no signature at all
			x := newIndex(t, options(t, files.Open))
			s := rescan(t, x)
			if o := offerOf(s, "acme/demo", "1.0.0"); o.Version != "" {
				t.Errorf("it is offered: %+v", o)
			}
			if p := problemOf(s.Report().Withheld, r.ChecksumsName()+".sig"); p.Reason != tree.UnknownKey || p.Version != "1.0.0" || !strings.Contains(p.Detail, test.says) {
				t.Errorf("withheld is %+v", s.Report().Withheld)
			}
			if o := offerOf(s, "acme/demo", "0.9.0"); !strings.HasPrefix(o.Signature, "registry ") {
				t.Errorf("the release without a signature: %+v", o)
			}

			files.Remove("keys/acme.asc")
			if o := offerOf(rescan(t, x), "acme/demo", "1.0.0"); !strings.HasPrefix(o.Signature, "registry ") {
				t.Errorf("without keys: %+v", o)
			}
			files.Keys("acme", other, acme)
			if o := offerOf(rescan(t, x), "acme/demo", "1.0.0"); o.Signature != "publisher "+acme.ID() {
				t.Errorf("with the key: %+v", o)
			}
			files.Keys("acme", other)
			if o := offerOf(rescan(t, x), "acme/demo", "1.0.0"); o.Version != "" {
				t.Errorf("with the key removed again: %+v", o)
			}
		})
	}
}

func TestThePublishersFilesAreServedUnchanged(t *testing.T) {
	files := indextest.New(t)
	p := indextest.NewPublisher(t)
	r := files.Keys("acme", p).Provider("acme/demo", "1.0.0", "linux_amd64").Checksums()
	// CRLF, upper case and lines of other files are the publisher's own.
	sums := strings.ReplaceAll(strings.ToUpper(files.Read(r.ChecksumsName())[:64])+files.Read(r.ChecksumsName())[64:], "\n", "\r\n") +
		strings.Repeat("0", 64) + "  terraform-provider-demo_1.0.0_windows_amd64.zip"
	files.Write(r.ChecksumsName(), sums)
	r.Signed(p)
	s := scan(t, files)
	nothingWithheld(t, s)
	demo := s.Provider(index.PlaceOf(ownDemo))
	if got := served(t, s, demo.File("terraform-provider-demo_1.0.0_SHA256SUMS")); got != sums {
		t.Errorf("SHA256SUMS is %q", got)
	}
	if got := served(t, s, demo.File("terraform-provider-demo_1.0.0_SHA256SUMS.sig")); got != files.Read(r.ChecksumsName()+".sig") {
		t.Error("the signature is another")
	}
	if got := served(t, s, demo.File(zipName)); got != files.Read("providers/acme/demo/"+zipName) {
		t.Error("the package is another")
	}
	keys := decoded(t, demo.Release("1.0.0").Package("linux", "amd64").Download())["signing_keys"].(map[string]any)["gpg_public_keys"].([]any)
	if k := keys[0].(map[string]any); len(keys) != 1 || k["key_id"] != p.ID() || !strings.Contains(k["ascii_armor"].(string), "BEGIN PGP PUBLIC KEY BLOCK") || k["trust_signature"] != "" {
		t.Errorf("the keys are %v", keys)
	}
	for name, immutable := range map[string]bool{zipName: true, "terraform-provider-demo_1.0.0_SHA256SUMS": false} {
		if demo.File(name).Immutable() != immutable {
			t.Errorf("%s is immutable: %v", name, !immutable)
		}
	}
}

// The registry signs a publisher's SHA256SUMS without a usable signature, byte for byte:
// lock files get the hashes of all platforms, and nothing changes when further packages are
// added.
func TestThePublishersChecksumsAreSigned(t *testing.T) {
	const name, zips = "terraform-provider-demo_1.0.0_SHA256SUMS", "providers/acme/demo/terraform-provider-demo_1.0.0_"
	unknown := indextest.NewPublisher(t)
	for rule, sign := range map[string]bool{"it is not signed": false, "nothing is known of the key": true} {
		t.Run(rule, func(t *testing.T) {
			files := indextest.New(t)
			r := files.Provider("acme/demo", "1.0.0", "linux_amd64", "windows_amd64").Checksums()
			sums := strings.ReplaceAll(files.Read(r.ChecksumsName()), "\n", "\r\n")
			files.Write(r.ChecksumsName(), sums)
			if sign {
				r.Signed(unknown)
			}
			other := files.Read(zips + "windows_amd64.zip")
			files.Remove(zips + "windows_amd64.zip")
			x := index.New(options(t, files.Open))
			before := rescan(t, x)
			demo := before.Provider(index.PlaceOf(ownDemo))
			if got := served(t, before, demo.File(name)); got != sums || demo.Release("1.0.0").Signature.By != index.ByRegistry {
				t.Errorf("SHA256SUMS is %q, by %v", got, demo.Release("1.0.0").Signature)
			}
			signed := before.SignChecksums("demo", "1.0.0", []byte(sums))
			if got, want := served(t, before, signed.Signature), served(t, before, demo.File(name+".sig")); got != want {
				t.Error("the signature of the checksums is another")
			}

			files.Write(zips+"windows_amd64.zip", other)
			after := rescan(t, x)
			now := after.Provider(index.PlaceOf(ownDemo))
			if len(now.Release("1.0.0").Packages) != 2 {
				t.Fatal("the second package is not offered")
			}
			for _, file := range []string{name, name + ".sig"} {
				if served(t, after, now.File(file)) != served(t, before, demo.File(file)) || now.File(file).Tag() != demo.File(file).Tag() {
					t.Errorf("%s has changed", file)
				}
			}
		})
	}
}

// If releases without a signature are not offered, the registry signs none.
func TestChecksumsAreSignedOnlyIfReleasesAreOffered(t *testing.T) {
	for _, test := range []struct {
		rule   string
		change func(*index.Options)
		signs  bool
	}{
		{"with a key", func(*index.Options) {}, true},
		{"without a key", func(o *index.Options) { o.Signer = nil }, false},
		{"with signatures required", func(o *index.Options) { o.RequireSignatures = true }, false},
	} {
		o := options(t, indextest.New(t).Open)
		test.change(&o)
		if v := scanWith(t, o).SignChecksums("demo", "1.0.0", []byte("sums")); (v != nil) != test.signs {
			t.Errorf("%s: got %v", test.rule, v)
		}
	}
}

// zipMadeBy packs a provider like a system that records the mode, or none.
func zipMadeBy(by, mode uint32, program string, further ...string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range append(further, program) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, CreatorVersion: uint16(by << 8), ExternalAttrs: mode << 16})
		if err != nil {
			panic(err)
		}
		if !strings.HasSuffix(name, "/") {
			w.Write([]byte("a provider"))
		}
	}
	z.Close()
	return b.String()
}

// A provider that cannot be run can be installed, and fails when it is used.
func TestProvidersThatCannotBeRun(t *testing.T) {
	const unix, macOS, fat, ntfs = 3, 19, 0, 10
	for _, test := range []struct {
		rule     string
		platform string
		by, mode uint32
		reason   tree.Reason
		note     string
	}{
		{"executable", "linux_amd64", unix, 0o755, "", ""},
		{"not executable", "linux_amd64", unix, 0o644, tree.NotExecutable, ""},
		{"not executable, made on macOS", "darwin_arm64", macOS, 0o644, tree.NotExecutable, ""},
		{"not executable, for Windows", "windows_amd64", unix, 0o644, "", ""},
		{"made on FAT", "linux_amd64", fat, 0, "", "clients on linux_amd64 cannot run it"},
		{"made on NTFS", "freebsd_amd64", ntfs, 0, "", "clients on freebsd_amd64 cannot run it"},
		{"made on FAT, for Windows", "windows_amd64", fat, 0, "", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			name := "providers/acme/demo/terraform-provider-demo_1.0.0_" + test.platform + ".zip"
			files.Write(name, zipMadeBy(test.by, test.mode, "terraform-provider-demo"))
			files.Provider("acme/demo", "1.0.0", "plan9_386")
			store := &memoryStore{}
			o := options(t, files.Open)
			o.Store = store
			for _, when := range []string{"read", "recalled"} {
				x := index.New(o)
				s := rescan(t, x)
				x.Close()
				offer := offerOf(s, "acme/demo", "1.0.0")
				if offered := slices.Contains(offer.Platforms, test.platform); offered != (test.reason == "") || !slices.Contains(offer.Platforms, "plan9_386") {
					t.Errorf("%s: the offer is %+v", when, offer)
				}
				if notes := strings.Join(offer.Notes, "\n"); !strings.Contains(notes, test.note) || (notes == "") != (test.note == "") {
					t.Errorf("%s: the notes are %q", when, notes)
				}
				if test.reason == "" {
					nothingWithheld(t, s)
				} else if p := problemOf(s.Report().Withheld, name); p.Reason != test.reason || !strings.Contains(p.Detail, "chmod +x") {
					t.Errorf("%s: withheld is %+v", when, s.Report().Withheld)
				}
			}
		})
	}
}

// If the hash of the zip's entries differs from the hash of its files, both are listed: lock
// files have the latter, and clients compute the former from the zip.
func TestBothHashesAreListed(t *testing.T) {
	files := indextest.New(t)
	files.Write("providers/acme/demo/"+zipName, zipMadeBy(3, 0o755, "terraform-provider-demo", "docs/"))
	files.Write("providers/acme/demo/terraform-provider-demo_1.0.0_darwin_arm64.zip", zipMadeBy(3, 0o755, "terraform-provider-demo", "README.md"))
	s := scan(t, files)
	nothingWithheld(t, s)
	r := s.Provider(index.PlaceOf(ownDemo)).Release("1.0.0")
	archives := decoded(t, r.Archives())["archives"].(map[string]any)
	for platform, want := range map[string]int{"linux_amd64": 3, "darwin_arm64": 2} {
		hashes := archives[platform].(map[string]any)["hashes"].([]any)
		os, arch, _ := strings.Cut(platform, "_")
		if p := r.Package(os, arch); len(hashes) != want || hashes[0] != p.FileHashes.H1() || hashes[want-1] != "zh:"+p.File.SHA256.String() {
			t.Errorf("of %s are told %v", platform, hashes)
		}
	}
	notes := offerOf(s, "acme/demo", "1.0.0").Notes
	if len(notes) != 1 || !strings.Contains(notes[0], "locked linux_amd64 from the mirror alone") {
		t.Errorf("the notes are %q", notes)
	}
}

// OpenTofu panics when two platforms have the same hash, even a hash of the files.
func TestPackagesThatShareTheirFiles(t *testing.T) {
	files := indextest.New(t)
	files.Write("providers/acme/demo/"+zipName, zipMadeBy(3, 0o755, "terraform-provider-demo"))
	files.Write("providers/acme/demo/terraform-provider-demo_1.0.0_darwin_arm64.zip", zipMadeBy(3, 0o775, "terraform-provider-demo"))
	s := scan(t, files)
	if d := decoded(t, s.Provider(index.PlaceOf(ownDemo)).Release("1.0.0").Package("linux", "amd64").Download()); d["packages"] != nil {
		t.Errorf("packages is %v", d["packages"])
	}
}
