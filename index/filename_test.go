package index

import (
	"strings"
	"testing"
)

var releaseNames = []struct {
	rule, typ, name string
	kind            fileKind
	version         string // empty: it is none of the registry's, or bad
	platform        string
	reason          Reason
}{
	{"a package", "demo", "terraform-provider-demo_1.0.0_linux_amd64.zip", packageFile, "1.0.0", "linux_amd64", ""},
	{"the folder tells where the type ends", "google-beta", "terraform-provider-google-beta_1.0.0_linux_amd64.zip", packageFile, "1.0.0", "linux_amd64", ""},
	{"a pre-release and a build", "demo", "terraform-provider-demo_1.0.0-rc.1+b.5_windows_386.zip", packageFile, "1.0.0-rc.1+b.5", "windows_386", ""},
	{"the sums", "demo", "terraform-provider-demo_1.0.0_SHA256SUMS", checksumsFile, "1.0.0", "", ""},
	{"their signature", "demo", "terraform-provider-demo_1.0.0_SHA256SUMS.sig", signatureFile, "1.0.0", "", ""},
	{"the manifest", "demo", "terraform-provider-demo_1.0.0_manifest.json", manifestFile, "1.0.0", "", ""},

	{"what terraform providers mirror writes is ignored", "demo", "index.json", 0, "", "", ""},
	{"also its file of a version", "demo", "1.0.0.json", 0, "", "", ""},
	{"the signature that names its key is ignored", "demo", "terraform-provider-demo_1.0.0_SHA256SUMS.72D7468F.sig", 0, "", "", ""},
	{"a README is ignored", "demo", "README.md", 0, "", "", ""},
	{"another provider's sums are ignored", "demo", "terraform-provider-other_1.0.0_SHA256SUMS", 0, "", "", ""},
	{"the provider itself, unpacked, is ignored", "demo", "terraform-provider-demo_v1.0.0", 0, "", "", ""},

	{"another provider's package", "demo", "terraform-provider-other_1.0.0_linux_amd64.zip", 0, "", "", NameMismatch},
	{"one of a type that only begins alike", "google", "terraform-provider-google-beta_1.0.0_linux_amd64.zip", 0, "", "", NameMismatch},
	{"any other zip", "demo", "demo.zip", 0, "", "", NameMismatch},
	{"the type in upper case", "demo", "terraform-provider-Demo_1.0.0_linux_amd64.zip", 0, "", "", NameMismatch},
	{"no platform", "demo", "terraform-provider-demo_1.0.0.zip", 0, "", "", BadName},
	{"half a platform", "demo", "terraform-provider-demo_1.0.0_linux.zip", 0, "", "", BadName},
	{"more than a platform", "demo", "terraform-provider-demo_1.0.0_linux_amd64_v1.zip", 0, "", "", BadName},
	{"a platform in upper case", "demo", "terraform-provider-demo_1.0.0_Linux_amd64.zip", 0, "", "", BadName},
	{"an empty platform", "demo", "terraform-provider-demo_1.0.0__.zip", 0, "", "", BadName},
	{"a v", "demo", "terraform-provider-demo_v1.0.0_linux_amd64.zip", 0, "", "", BadVersion},
	{"a v in the sums", "demo", "terraform-provider-demo_v1.0.0_SHA256SUMS", 0, "", "", BadVersion},
	{"no version", "demo", "terraform-provider-demo__linux_amd64.zip", 0, "", "", BadVersion},
	{"a version in short", "demo", "terraform-provider-demo_1.0_manifest.json", 0, "", "", BadVersion},
}

func TestParseReleaseFile(t *testing.T) {
	for _, test := range releaseNames {
		t.Run(test.rule, func(t *testing.T) {
			f, ok, bad := parseReleaseFile(test.typ, test.name)
			switch {
			case test.reason != "":
				if ok || bad == nil || bad.reason != test.reason {
					t.Errorf("ok is %v, the finding is %+v", ok, bad)
				}
			case test.version == "":
				if ok || bad != nil {
					t.Errorf("ok is %v, the finding is %+v", ok, bad)
				}
			case !ok || bad != nil || f.kind != test.kind || f.version.String() != test.version:
				t.Errorf("it is %+v, %v, %+v", f, ok, bad)
			case f.kind == packageFile && f.platform.String() != test.platform:
				t.Errorf("it is for %s", f.platform)
			}
		})
	}
}

func TestNamesThatSayTheFileIsNotThereYet(t *testing.T) {
	for name, want := range map[string]bool{
		".hidden": true, "a.zip.tmp": true, "a.zip.part": true, "a.zip~": true, ".a.zip.Xy12Zz": true,
		"a.zip": false, "tmp": false, "part": false, "a~.zip": false,
	} {
		if hiddenOrTemporary(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// A name that is accepted is the one that is put together from what it says:
// no two names are one release file, and none has a character a path could trip over.
func FuzzParseReleaseFile(f *testing.F) {
	for _, test := range releaseNames {
		f.Add(test.typ, test.name)
	}
	f.Fuzz(func(t *testing.T, typ, name string) {
		r, ok, bad := parseReleaseFile(typ, name)
		if ok && bad != nil || bad != nil && bad.detail == "" {
			t.Fatalf("ok is %v, the finding is %+v", ok, bad)
		}
		if !ok {
			return
		}
		end := map[fileKind]string{
			packageFile: r.platform.String() + ".zip", checksumsFile: "SHA256SUMS",
			signatureFile: "SHA256SUMS.sig", manifestFile: "manifest.json",
		}[r.kind]
		if want := providerPrefix + typ + "_" + r.version.String() + "_" + end; name != want {
			t.Fatalf("%q is taken for %q", name, want)
		}
		if strings.ContainsAny(strings.TrimPrefix(name, providerPrefix+typ), "/\\%\x00\n ") {
			t.Fatalf("%q is accepted", name)
		}
	})
}
