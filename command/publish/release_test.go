package publish

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

var acmeDemo = address.Address{Namespace: "acme", Name: "demo"}

// manifestOf is a manifest of a protocol.
func manifestOf(protocol string) string {
	return `{"version":1,"metadata":{"protocol_versions":["` + protocol + `"]}}`
}

// The files to publish of a folder with a release, or why it cannot be published.
func TestReadRelease(t *testing.T) {
	author := indextest.NewPublisher(t)
	linux, darwin, sums, signature, manifest := demoName("linux_amd64.zip"), demoName("darwin_arm64.zip"), demoName("SHA256SUMS"), demoName("SHA256SUMS.sig"), demoName("manifest.json")
	for _, test := range []struct {
		rule     string
		change   func(d dist)
		problems []string // the reason and name of each
		files    []string // unless there are problems
		note     string
	}{
		{"a whole release", func(d dist) { d.signed(author) }, nil, []string{sums, signature, darwin, linux, manifest}, ""},
		{"without a signature", func(d dist) {}, nil, []string{sums, darwin, linux, manifest}, ""},
		{"other files are ignored", func(d dist) { d["metadata.json"], d["README.md"], d[demoName("sbom.json")] = "{}", "x", "{}" }, nil, []string{sums, darwin, linux, manifest}, ""},
		{"SHA256SUMS is made", func(d dist) { delete(d, sums) }, nil, []string{sums, darwin, linux, manifest}, "There is no SHA256SUMS, so it is made of 3 files"},
		{"SHA256SUMS is made with the manifest of the project", func(d dist) {
			delete(d, sums)
			delete(d, manifest)
			d["../terraform-registry-manifest.json"] = manifestOf("5.0")
		}, nil, []string{sums, darwin, linux, manifest}, "There is no SHA256SUMS, so it is made of 3 files"},
		{"the manifest is that of the project, as GoReleaser sums it", func(d dist) {
			d["../terraform-registry-manifest.json"] = d[manifest]
			delete(d, manifest)
		}, nil, []string{sums, darwin, linux, manifest}, ""},
		{"the project's manifest is none of the release", func(d dist) {
			d["../terraform-registry-manifest.json"] = d[manifest]
			delete(d, manifest)
			d.sum()
		}, nil, []string{sums, darwin, linux}, "clients take the provider to speak protocol 5.0"},
		{"the project's manifest has changed since", func(d dist) {
			d["../terraform-registry-manifest.json"] = manifestOf("5.0")
			delete(d, manifest)
		}, []string{"missing_package " + manifest}, nil, ""},
		{"a changed manifest", func(d dist) { d[manifest] = manifestOf("5.0") }, []string{"checksum_mismatch " + manifest}, nil, ""},
		{"a manifest that SHA256SUMS does not list", func(d dist) {
			m := d[manifest]
			delete(d, manifest)
			d.sum()
			d[manifest] = m
		}, []string{"not_listed " + manifest}, nil, ""},
		{"a manifest that cannot be read", func(d dist) { d[manifest] = manifestOf("5"); d.sum() }, []string{"bad_manifest " + manifest}, nil, ""},
		{"a package that is listed and not there", func(d dist) { delete(d, linux) }, []string{"missing_package " + linux}, nil, ""},
		{"a package that is not listed", func(d dist) {
			d[demoName("windows_amd64.zip")] = indextest.Zip("terraform-provider-demo_v1.2.0.exe", "MZ")
		}, []string{"not_listed " + demoName("windows_amd64.zip")}, nil, ""},
		{"a package of another build", func(d dist) { d[linux] = newDist("other")[linux] }, []string{"checksum_mismatch " + linux}, nil, ""},
		{"a package that is no zip", func(d dist) { d[linux] = "PK"; d.sum() }, []string{"bad_archive " + linux}, nil, ""},
		{"a package without the provider", func(d dist) { d[linux] = indextest.Zip("README.md", "x"); d.sum() }, []string{"no_binary " + linux}, nil, ""},
		{"an empty package", func(d dist) { d[linux] = ""; d.sum() }, []string{"empty " + linux}, nil, ""},
		{"every problem is told", func(d dist) { d[linux], d[darwin] = "PK", ""; d.sum() }, []string{"bad_archive " + linux, "empty " + darwin}, nil, ""},
		{"a package without a platform", func(d dist) { d["terraform-provider-demo_1.2.0.zip"] = d[linux] }, []string{"bad_name terraform-provider-demo_1.2.0.zip"}, nil, ""},
		{"a version with a v", func(d dist) { d["terraform-provider-demo_v1.2.0_linux_arm64.zip"] = d[linux] }, []string{"bad_name terraform-provider-demo_v1.2.0_linux_arm64.zip"}, nil, ""},
		{"a SHA256SUMS that crashes clients", func(d dist) { d[sums] += "\n" }, []string{"bad_checksums " + sums}, nil, ""},
		{"an empty SHA256SUMS", func(d dist) { d[sums] = "" }, []string{"empty " + sums}, nil, ""},
		{"a SHA256SUMS of something else", func(d dist) { d[sums] = strings.Repeat("0", 64) + "  a.zip\n" }, []string{"bad_checksums " + sums, "not_listed " + darwin, "not_listed " + linux, "not_listed " + manifest}, nil, ""},
		{"a signature without what it signs", func(d dist) { d.signed(author); delete(d, sums) }, []string{"bad_checksums " + signature}, nil, ""},
		{"a signature as text", func(d dist) { d[signature] = "-----BEGIN PGP SIGNATURE-----\n" }, []string{"bad_signature " + signature}, nil, ""},
		{"a signature that is too large", func(d dist) { d[signature] = strings.Repeat("x", maxReleaseDocument+1) }, []string{"too_large " + signature}, nil, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Chdir(t.TempDir())
			d := newDist("")
			test.change(d)
			p, err := readRelease(t.Context(), acmeDemo, "", d.folder(t))
			if err != nil {
				t.Fatal(err)
			}
			var problems []string
			for _, bad := range p.problems {
				problems = append(problems, string(bad.Reason)+" "+filepath.Base(bad.Path))
				if bad.Address != "acme/demo" || bad.Version != "1.2.0" || bad.Detail == "" {
					t.Errorf("got %+v", bad)
				}
			}
			slices.Sort(problems)
			if !slices.Equal(problems, test.problems) {
				t.Errorf("the problems are %q", problems)
			}
			var files []string
			for _, f := range p.files {
				files = append(files, f.Name)
			}
			if test.problems == nil && !slices.Equal(files, test.files) {
				t.Errorf("the files are %q", files)
			}
			if notes := strings.Join(p.notes, " "); (notes == "") != (test.note == "") || !strings.Contains(notes, test.note) {
				t.Errorf("the notes are %q", notes)
			}
		})
	}
}

// A SHA256SUMS that is made is the same each time, so that a run can be continued.
func TestReadReleaseMakesTheSameChecksums(t *testing.T) {
	d := newDist("")
	want := d[demoName("SHA256SUMS")]
	delete(d, demoName("SHA256SUMS"))
	p, err := readRelease(t.Context(), acmeDemo, "", d.folder(t))
	if err != nil || p.files[0].Name != demoName("SHA256SUMS") {
		t.Fatalf("%+v, %v", p, err)
	}
	if got := contentOf(t, p.files[0]); got != want {
		t.Errorf("it is\n%swant\n%s", got, want)
	}
}

func contentOf(t *testing.T, f upload) string {
	t.Helper()
	r, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content := make([]byte, f.size)
	if _, err := r.Read(content); err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestReadReleaseOfOneOfSeveralVersions(t *testing.T) {
	dir := newDist("").folder(t)
	commandtest.Write(t, dir, "terraform-provider-demo_1.10.0_linux_amd64.zip", indextest.Zip("terraform-provider-demo_v1.10.0", ""))
	_, err := readRelease(t.Context(), acmeDemo, "", dir)
	if err == nil || !strings.Contains(err.Error(), "has the versions 1.10.0, 1.2.0: name one of them by --version") {
		t.Errorf("%v", err)
	}
	p, err := readRelease(t.Context(), acmeDemo, "1.2.0", dir)
	if err != nil || p.version != "1.2.0" || len(p.files) != 4 || len(p.problems) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// GoReleaser's artifacts.json says which files are of its last run, and where they are.
func TestReadReleaseOfGoReleaser(t *testing.T) {
	type artifact struct {
		Name string `json:"name"`
		Path string `json:"path"`
		Type string `json:"type"`
	}
	for _, test := range []struct {
		rule string
		path func(name string) string // in artifacts.json
	}{
		{"relative to the project", func(name string) string { return "dist/" + name }},
		{"relative to dist", func(name string) string { return name }},
		{"of another machine", func(name string) string { return "/builds/acme/dist/" + name }},
	} {
		d := newDist("")
		var artifacts []artifact
		for _, name := range d.names() {
			artifacts = append(artifacts, artifact{name, test.path(name), "Archive"})
		}
		artifacts = append(artifacts, artifact{"metadata.json", "dist/metadata.json", "Metadata"})
		list, err := json.Marshal(artifacts)
		if err != nil {
			t.Fatal(err)
		}
		d["artifacts.json"] = string(list)
		d["terraform-provider-demo_1.1.0_linux_amd64.zip"] = "of an earlier run"
		p, err := readRelease(t.Context(), acmeDemo, "", d.folder(t))
		if err != nil || len(p.problems) > 0 || len(p.files) != 4 || p.version != "1.2.0" {
			t.Errorf("%s: %+v, %v", test.rule, p, err)
		}
	}

	d := newDist("")
	d["artifacts.json"] = `[{"name":"` + demoName("linux_amd64.zip") + `","path":"dist/` + demoName("linux_amd64.zip") + `"}]`
	delete(d, demoName("linux_amd64.zip"))
	p, err := readRelease(t.Context(), acmeDemo, "", d.folder(t))
	if err != nil || len(p.problems) == 0 || p.problems[0].Reason != tree.Unreadable {
		t.Errorf("an artifact that is gone: %+v, %v", p, err)
	}
	d["artifacts.json"] = "{"
	if _, err := readRelease(t.Context(), acmeDemo, "", d.folder(t)); err == nil || !strings.Contains(err.Error(), "is not what GoReleaser writes") {
		t.Errorf("%v", err)
	}
}

// A copy of dist is published as it is, also beside a dist that was built again.
func TestReadReleaseOfACopy(t *testing.T) {
	for _, sub := range []string{"", "archives/"} {
		root := t.TempDir()
		for dir, mark := range map[string]string{"dist": "again", "copy": "first"} {
			var list []string
			for name, content := range newDist(mark) {
				commandtest.Write(t, root, dir+"/"+sub+name, content)
				list = append(list, fmt.Sprintf(`{"name":%q,"path":%q}`, name, "dist/"+sub+name))
			}
			commandtest.Write(t, root, dir+"/artifacts.json", "["+strings.Join(list, ",")+"]")
		}
		p, err := readRelease(t.Context(), acmeDemo, "", filepath.Join(root, "copy"))
		if err != nil || len(p.problems) > 0 {
			t.Fatalf("%+v, %v", p, err)
		}
		name := demoName("linux_amd64.zip")
		i := slices.IndexFunc(p.files, func(f upload) bool { return f.Name == name })
		if i < 0 || p.files[i].sha256 != sha256.Sum256([]byte(newDist("first")[name])) {
			t.Errorf("in %q, another package is published than the folder has", sub)
		}
	}
}

// A manifest that is there and cannot be read is not a missing one: without it, clients take the
// provider to speak an older protocol.
func TestReadReleaseWithAnUnreadableManifest(t *testing.T) {
	for _, name := range []string{demoName("manifest.json"), manifestTemplate} {
		d := newDist("")
		delete(d, demoName("SHA256SUMS"))
		delete(d, demoName("manifest.json"))
		dir := d.folder(t)
		if p, err := readRelease(t.Context(), acmeDemo, "1.2.0", dir); err != nil || len(p.problems) > 0 {
			t.Fatalf("without one: %+v, %v", p, err)
		}
		if err := os.Symlink(filepath.Join(dir, name), filepath.Join(dir, name)); err != nil { // to itself
			t.Fatal(err)
		}
		p, err := readRelease(t.Context(), acmeDemo, "1.2.0", dir)
		if err != nil || len(p.problems) != 1 || p.problems[0].Reason != tree.Unreadable {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// A file that changes after it was checked is refused by the registry, which is told its
// sha256.
func TestPublishAFileThatChanges(t *testing.T) {
	r := newTarget(t)
	dir := newDist("one").folder(t)
	p, err := readRelease(t.Context(), acmeDemo, "", dir)
	if err != nil {
		t.Fatal(err)
	}
	name := demoName("linux_amd64.zip")
	other := []byte(newDist("two")[name])
	if err := os.WriteFile(filepath.Join(dir, name), other, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := Command(r.network())
	if err := cmd.ParseFlags([]string{r.To("acme/demo")}); err != nil {
		t.Fatal(err)
	}
	run, err := newRun(cmd, []string{dir}, r.network())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(remote.DefaultIDTokenVariable, commandtest.GoodToken)
	client, err := remote.Connect(t.Context(), run.network, run.tokens, run.to)
	if err != nil {
		t.Fatal(err)
	}
	s := &sender{client, run}
	defer s.Close()
	o := s.sendAll(t.Context(), []release{p})[0]
	if o.status != notTaken {
		t.Errorf("it is %s", o.status)
	}
	for _, f := range o.outcomes {
		if f.Name == name && (f.status != notTaken || !strings.Contains(strings.Join(f.reasons, " "), "announced")) {
			t.Errorf("it is %s: %q", f.status, f.reasons)
		}
	}
}
