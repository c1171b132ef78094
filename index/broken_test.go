package index_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

var update = flag.Bool("update", false, "write the trees under testdata anew")

const demo = "providers/acme/demo/terraform-provider-demo_1.0.0_"

// Each tree has one defect, named by its folder in testdata/broken.
var broken = []struct {
	defect string
	build  func(t *testing.T, files *indextest.Tree)
	path   string
	reason tree.Reason
	says   string
}{
	{
		defect: "package-tampered-with",
		build: func(t *testing.T, files *indextest.Tree) {
			p := indextest.NewPublisher(t)
			files.Keys("acme", p).Provider("acme/demo", "1.0.0", "linux_amd64").Signed(p)
			files.Write(demo+"linux_amd64.zip", indextest.ProviderZip("demo", "1.0.0", "not what was released"))
		},
		path: demo + "linux_amd64.zip", reason: tree.ChecksumMismatch, says: "copy it again",
	},
	{
		defect: "package-not-listed",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Provider("acme/demo", "1.0.0", "linux_amd64").Checksums()
			files.Write(demo+"linux_arm64.zip", indextest.ProviderZip("demo", "1.0.0", "linux_arm64"))
		},
		path: demo + "linux_arm64.zip", reason: tree.NotListed, says: "SHA256SUMS does not list it",
	},
	{
		defect: "package-empty",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write(demo+"linux_amd64.zip", "")
		},
		path: demo + "linux_amd64.zip", reason: tree.Empty, says: "copy it again",
	},
	{
		defect: "package-cut-short",
		build: func(t *testing.T, files *indextest.Tree) {
			z := indextest.ProviderZip("demo", "1.0.0", "linux_amd64")
			files.Write(demo+"linux_amd64.zip", z[:len(z)/2])
		},
		path: demo + "linux_amd64.zip", reason: tree.BadArchive, says: "copy it again",
	},
	{
		defect: "package-damaged-inside",
		build: func(t *testing.T, files *indextest.Tree) {
			z := []byte(indextest.ProviderZip("demo", "1.0.0", "linux_amd64"))
			z[len("PK\x03\x04")+60] ^= 0xff // in the compressed bytes
			files.Write(demo+"linux_amd64.zip", string(z))
		},
		path: demo + "linux_amd64.zip", reason: tree.BadArchive, says: "cannot be read to its end",
	},
	{
		defect: "package-without-provider",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write(demo+"linux_amd64.zip", indextest.Zip("bin/terraform-provider-demo", "in a folder"))
		},
		path: demo + "linux_amd64.zip", reason: tree.NoBinary, says: "terraform-provider-demo",
	},
	{
		defect: "package-leaves-its-folder",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write(demo+"linux_amd64.zip", indextest.Zip("terraform-provider-demo", "x", "../../etc/passwd", "x"))
		},
		path: demo + "linux_amd64.zip", reason: tree.BadArchive, says: "leaves its folder",
	},
	{
		defect: "package-of-another-provider",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write("providers/acme/demo/terraform-provider-other_1.0.0_linux_amd64.zip", indextest.ProviderZip("other", "1.0.0", "linux_amd64"))
		},
		path:   "providers/acme/demo/terraform-provider-other_1.0.0_linux_amd64.zip",
		reason: tree.NameMismatch, says: "terraform-provider-demo_VERSION_OS_ARCH.zip",
	},
	{
		defect: "package-in-another-versions-folder",
		build: func(t *testing.T, files *indextest.Tree) {
			files.ProviderIn("providers/acme/demo/2.0.0", "demo", "1.0.0", "linux_amd64")
		},
		path:   "providers/acme/demo/2.0.0/terraform-provider-demo_1.0.0_linux_amd64.zip",
		reason: tree.NameMismatch, says: "lies in the folder of 2.0.0",
	},
	{
		defect: "package-twice",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Provider("acme/demo", "1.0.0", "linux_amd64")
			files.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64")
		},
		path: demo + "linux_amd64.zip", reason: tree.Duplicate, says: "keep one of them",
	},
	{
		defect: "package-version-with-v",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Provider("acme/demo", "v1.0.0", "linux_amd64")
		},
		path:   "providers/acme/demo/terraform-provider-demo_v1.0.0_linux_amd64.zip",
		reason: tree.BadVersion, says: `rename it to "1.0.0"`,
	},
	{
		defect: "package-version-in-short",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Provider("acme/demo", "1.0", "linux_amd64")
		},
		path:   "providers/acme/demo/terraform-provider-demo_1.0_linux_amd64.zip",
		reason: tree.BadVersion, says: `rename it to "1.0.0"`,
	},
	{
		defect: "package-platform-in-capitals",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Provider("acme/demo", "1.0.0", "Linux_x86")
		},
		path: demo + "Linux_x86.zip", reason: tree.BadName, says: "linux_amd64",
	},
	{
		defect: "package-without-platform",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write("providers/acme/demo/terraform-provider-demo_1.0.0.zip", indextest.ProviderZip("demo", "1.0.0", ""))
		},
		path: "providers/acme/demo/terraform-provider-demo_1.0.0.zip", reason: tree.BadName, says: "VERSION_OS_ARCH",
	},
	{
		defect: "provider-type-with-prefix",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Provider("acme/terraform-provider-demo", "1.0.0", "linux_amd64")
		},
		path: "providers/acme/terraform-provider-demo", reason: tree.BadName, says: "leave out the prefix",
	},
	{
		defect: "provider-namespace-with-a-space",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Provider("ac me/demo", "1.0.0", "linux_amd64")
		},
		path: "providers/ac me/demo", reason: tree.BadName, says: "is not a provider namespace",
	},
	{
		defect: "hostname-invalid",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Provider("registry..example/acme/demo", "1.0.0", "linux_amd64")
		},
		path: "providers/registry..example/acme/demo", reason: tree.BadName, says: "is not a hostname",
	},
	{
		defect: "checksums-with-a-blank-line",
		build: func(t *testing.T, files *indextest.Tree) {
			p := indextest.NewPublisher(t)
			r := files.Keys("acme", p).Provider("acme/demo", "1.0.0", "linux_amd64").Checksums()
			files.Write(r.ChecksumsName(), files.Read(r.ChecksumsName())+"\n")
			r.Signed(p)
		},
		path: demo + "SHA256SUMS", reason: tree.BadChecksums, says: "line 2 of SHA256SUMS is blank",
	},
	{
		defect: "checksums-with-a-comment",
		build: func(t *testing.T, files *indextest.Tree) {
			r := files.Provider("acme/demo", "1.0.0", "linux_amd64").Checksums()
			files.Write(r.ChecksumsName(), "# release 1.0.0\n"+files.Read(r.ChecksumsName()))
		},
		path: demo + "SHA256SUMS", reason: tree.BadChecksums, says: "line 1 of SHA256SUMS is a comment",
	},
	{
		defect: "checksums-in-binary-mode",
		build: func(t *testing.T, files *indextest.Tree) {
			r := files.Provider("acme/demo", "1.0.0", "linux_amd64").Checksums()
			files.Write(r.ChecksumsName(), strings.Replace(files.Read(r.ChecksumsName()), "  ", " *", 1))
		},
		path: demo + "SHA256SUMS", reason: tree.BadChecksums, says: "bare file name",
	},
	{
		defect: "checksums-of-paths",
		build: func(t *testing.T, files *indextest.Tree) {
			r := files.Provider("acme/demo", "1.0.0", "linux_amd64").Checksums()
			files.Write(r.ChecksumsName(), strings.Replace(files.Read(r.ChecksumsName()), "  ", "  ./", 1))
		},
		path: demo + "SHA256SUMS", reason: tree.BadChecksums, says: "bare file name",
	},
	{
		defect: "checksums-malformed",
		build: func(t *testing.T, files *indextest.Tree) {
			r := files.Provider("acme/demo", "1.0.0", "linux_amd64")
			files.Write(r.ChecksumsName(), "<html>404 not found</html>\n")
		},
		path: demo + "SHA256SUMS", reason: tree.BadChecksums, says: "line 1 of SHA256SUMS",
	},
	{
		defect: "checksums-empty",
		build: func(t *testing.T, files *indextest.Tree) {
			r := files.Provider("acme/demo", "1.0.0", "linux_amd64")
			files.Write(r.ChecksumsName(), "")
		},
		path: demo + "SHA256SUMS", reason: tree.Empty, says: "copy it again",
	},
	{
		defect: "signature-of-another-document",
		build: func(t *testing.T, files *indextest.Tree) {
			p := indextest.NewPublisher(t)
			r := files.Keys("acme", p).Provider("acme/demo", "1.0.0", "linux_amd64").Signed(p)
			files.Write(r.ChecksumsName()+".sig", p.Sign("something else\n"))
		},
		path: demo + "SHA256SUMS.sig", reason: tree.BadSignature, says: "sign",
	},
	{
		defect: "signature-of-an-expired-key",
		build: func(t *testing.T, files *indextest.Tree) {
			p := indextest.NewExpiringPublisher(t, 24*time.Hour, 48*time.Hour)
			files.Keys("acme", p).Provider("acme/demo", "1.0.0", "linux_amd64").Signed(p)
		},
		path: demo + "SHA256SUMS.sig", reason: tree.KeyExpired, says: "expired",
	},
	{
		defect: "signature-in-text",
		build: func(t *testing.T, files *indextest.Tree) {
			p := indextest.NewPublisher(t)
			r := files.Keys("acme", p).Provider("acme/demo", "1.0.0", "linux_amd64").Signed(p)
			files.Write(r.ChecksumsName()+".sig", "-----BEGIN PGP SIGNATURE-----\n\nwnUE\n-----END PGP SIGNATURE-----\n")
		},
		path: demo + "SHA256SUMS.sig", reason: tree.BadSignature, says: "binary",
	},
	{
		defect: "keys-malformed",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write("keys/acme.asc", "ssh-ed25519 AAAA not an OpenPGP key\n")
		},
		path: "keys/acme.asc", reason: tree.BadKeys, says: "",
	},
	{
		defect: "keys-of-no-namespace",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Keys("ac me", indextest.NewPublisher(t))
		},
		path: "keys/ac me.asc", reason: tree.BadName, says: "is not a provider namespace",
	},
	{
		defect: "manifest-with-numbers",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Provider("acme/demo", "1.0.0", "linux_amd64")
			files.Write(demo+"manifest.json", `{"version":1,"metadata":{"protocol_versions":[5.0]}}`)
		},
		path: demo + "manifest.json", reason: tree.BadManifest, says: "not the JSON of a manifest",
	},
	{
		defect: "manifest-not-the-listed-one",
		build: func(t *testing.T, files *indextest.Tree) {
			r := files.Provider("acme/demo", "1.0.0", "linux_amd64").Checksums().Manifest("5.0")
			files.Write(r.ChecksumsName(), files.Read(r.ChecksumsName())+strings.Repeat("0", 64)+"  terraform-provider-demo_1.0.0_manifest.json\n")
		},
		path: demo + "manifest.json", reason: tree.ChecksumMismatch, says: "copy the release again",
	},
	{
		defect: "module-cut-short",
		build: func(t *testing.T, files *indextest.Tree) {
			z := indextest.TarGz("main.tf", strings.Repeat("# a module\n", 1000))
			files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", z[:len(z)-10])
		},
		path: "modules/acme/vpc/aws/1.0.0.tar.gz", reason: tree.BadArchive, says: "cannot be read to its end",
	},
	{
		defect: "module-in-a-folder-of-its-archive",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("vpc 1.0.0/main.tf", "# a module\n", "vpc 1.0.0/LICENSE", "…"))
		},
		path: "modules/acme/vpc/aws/1.0.0.tar.gz", reason: tree.NoConfiguration, says: "at the archive's root",
	},
	{
		defect: "module-without-configuration",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write("modules/acme/vpc/aws/1.0.0/README.md", "soon\n")
		},
		path: "modules/acme/vpc/aws/1.0.0", reason: tree.NoConfiguration, says: "no .tf file",
	},
	{
		defect: "module-leaves-its-folder",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "", "../escape.tf", ""))
		},
		path: "modules/acme/vpc/aws/1.0.0.tar.gz", reason: tree.BadArchive, says: "leaves its folder",
	},
	{
		defect: "module-version-malformed",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write("modules/acme/vpc/aws/latest.zip", indextest.Zip("main.tf", ""))
		},
		path: "modules/acme/vpc/aws/latest.zip", reason: tree.BadVersion, says: "MAJOR.MINOR.PATCH",
	},
	{
		defect: "module-version-twice",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write("modules/acme/vpc/aws/1.0.0.tgz", indextest.TarGz("main.tf", "# one\n"))
			files.Write("modules/acme/vpc/aws/v1.0.0/main.tf", "# another\n")
		},
		path: "modules/acme/vpc/aws/v1.0.0", reason: tree.Duplicate, says: "keep one of them",
	},
	{
		defect: "module-system-with-a-dash",
		build: func(t *testing.T, files *indextest.Tree) {
			files.Write("modules/acme/vpc/aws-cn/1.0.0/main.tf", "")
		},
		path: "modules/acme/vpc/aws-cn", reason: tree.BadName, says: "invalid target system",
	},
}

// One bad entry is named, with its reason and what to do, and hides no other.
func TestBrokenTrees(t *testing.T) {
	root := filepath.Join("..", "testdata", "broken")
	for _, b := range broken {
		t.Run(b.defect, func(t *testing.T) {
			dir := filepath.Join(root, b.defect)
			if *update {
				os.RemoveAll(dir)
				files := indextest.OnDisk(t, dir)
				files.Provider("acme/healthy", "1.0.0", "linux_amd64")
				b.build(t, files)
			}
			s, err := index.Scan(t.Context(), options(t, source.Directories{Root: dir}.Open))
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Report().Withheld) != 1 {
				t.Fatalf("one thing is withheld, not %+v", s.Report().Withheld)
			}
			p := s.Report().Withheld[0]
			if p.Reason != b.reason || !strings.Contains(p.Detail, b.says) {
				t.Errorf("withheld for %s: %s", p.Reason, p.Detail)
			}
			// If two entries clash, the file system decides which one is found first.
			if p.Path != b.path && b.reason != tree.Duplicate {
				t.Errorf("withheld is %s, not %s", p.Path, b.path)
			}
			if !slices.ContainsFunc(s.Report().Offered, func(o index.Offer) bool { return o.Address == "acme/healthy" }) {
				t.Error("the healthy provider is not offered")
			}
			for _, o := range s.Report().Offered {
				if b.reason != tree.Duplicate && b.reason != tree.NotListed && b.reason != tree.BadKeys && o.Address == "acme/demo" {
					t.Errorf("%s %s is offered", o.Address, o.Version)
				}
			}
		})
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(broken) {
		t.Errorf("testdata/broken has %d trees, the test has %d", len(entries), len(broken))
	}
}
