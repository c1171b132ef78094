package index_test

import (
	"archive/zip"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// zipMadeBy packs a provider as a system does that notes the mode, or none.
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

// A provider that cannot be run installs, and fails when it is used.
func TestProvidersThatCannotBeRun(t *testing.T) {
	const unix, macOS, fat, ntfs = 3, 19, 0, 10
	for _, test := range []struct {
		rule     string
		platform string
		by, mode uint32
		reason   index.Reason
		note     string
	}{
		{"executable", "linux_amd64", unix, 0o755, "", ""},
		{"not executable", "linux_amd64", unix, 0o644, index.NotExecutable, ""},
		{"not executable, made on macOS", "darwin_arm64", macOS, 0o644, index.NotExecutable, ""},
		{"not executable, for Windows", "windows_amd64", unix, 0o644, "", ""},
		{"made on FAT", "linux_amd64", fat, 0, "", "clients on linux_amd64 cannot run it"},
		{"made on NTFS", "freebsd_amd64", ntfs, 0, "", "clients on freebsd_amd64 cannot run it"},
		{"made on FAT, for Windows", "windows_amd64", fat, 0, "", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			tree := indextest.New(t)
			name := "providers/acme/demo/terraform-provider-demo_1.0.0_" + test.platform + ".zip"
			tree.Write(name, zipMadeBy(test.by, test.mode, "terraform-provider-demo"))
			tree.Provider("acme/demo", "1.0.0", "plan9_386")
			store := &memoryStore{}
			o := options(t, tree.Open)
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
				} else if p := problemOf(s.Report.Withheld, name); p.Reason != test.reason || !strings.Contains(p.Detail, "chmod +x") {
					t.Errorf("%s: withheld is %+v", when, s.Report.Withheld)
				}
			}
		})
	}
}

// Where the zip's entries have another hash than its files, both are told: the
// one lock files have, and the one of the zip.
func TestBothHashesAreTold(t *testing.T) {
	tree := indextest.New(t)
	tree.Write("providers/acme/demo/"+zipName, zipMadeBy(3, 0o755, "terraform-provider-demo", "docs/"))
	tree.Write("providers/acme/demo/terraform-provider-demo_1.0.0_darwin_arm64.zip", zipMadeBy(3, 0o755, "terraform-provider-demo", "README.md"))
	s := scan(t, tree)
	nothingWithheld(t, s)
	r := s.Provider(ownDemo).Release("1.0.0")
	archives := decoded(t, r.Archives())["archives"].(map[string]any)
	for platform, want := range map[string]int{"linux_amd64": 3, "darwin_arm64": 2} {
		hashes := archives[platform].(map[string]any)["hashes"].([]any)
		os, arch, _ := strings.Cut(platform, "_")
		if p := r.Package(os, arch); len(hashes) != want || hashes[0] != p.H1 || hashes[want-1] != "zh:"+p.File.SHA256.String() {
			t.Errorf("of %s are told %v", platform, hashes)
		}
	}
	notes := offerOf(s, "acme/demo", "1.0.0").Notes
	if len(notes) != 1 || !strings.Contains(notes[0], "locked linux_amd64 from the mirror alone") {
		t.Errorf("the notes are %q", notes)
	}
}

// OpenTofu panics when two platforms have one hash, also one of the files.
func TestPackagesThatShareTheirFiles(t *testing.T) {
	tree := indextest.New(t)
	tree.Write("providers/acme/demo/"+zipName, zipMadeBy(3, 0o755, "terraform-provider-demo"))
	tree.Write("providers/acme/demo/terraform-provider-demo_1.0.0_darwin_arm64.zip", zipMadeBy(3, 0o775, "terraform-provider-demo"))
	s := scan(t, tree)
	if d := decoded(t, s.Provider(ownDemo).Release("1.0.0").Package("linux", "amd64").Download()); d["packages"] != nil {
		t.Errorf("packages is %v", d["packages"])
	}
}
