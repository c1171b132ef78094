package address

import (
	"errors"
	"strings"
	"testing"
)

var releaseNames = []struct {
	rule, typ, name string
	kind            ReleaseFileKind
	version         string // empty: not a file of the registry, or bad
	platform        string
	err             error // nil with an empty version: ErrNoReleaseFile
}{
	{"a package", "demo", "terraform-provider-demo_1.0.0_linux_amd64.zip", PackageFile, "1.0.0", "linux_amd64", nil},
	{"the folder tells where the type ends", "google-beta", "terraform-provider-google-beta_1.0.0_linux_amd64.zip", PackageFile, "1.0.0", "linux_amd64", nil},
	{"a pre-release and a build", "demo", "terraform-provider-demo_1.0.0-rc.1+b.5_windows_386.zip", PackageFile, "1.0.0-rc.1+b.5", "windows_386", nil},
	{"the sums", "demo", "terraform-provider-demo_1.0.0_SHA256SUMS", ChecksumsFile, "1.0.0", "", nil},
	{"their signature", "demo", "terraform-provider-demo_1.0.0_SHA256SUMS.sig", SignatureFile, "1.0.0", "", nil},
	{"the manifest", "demo", "terraform-provider-demo_1.0.0_manifest.json", ManifestFile, "1.0.0", "", nil},

	{"files of terraform providers mirror are ignored", "demo", "index.json", 0, "", "", nil},
	{"also its file of a version", "demo", "1.0.0.json", 0, "", "", nil},
	{"the signature that names its key is ignored", "demo", "terraform-provider-demo_1.0.0_SHA256SUMS.72D7468F.sig", 0, "", "", nil},
	{"a README is ignored", "demo", "README.md", 0, "", "", nil},
	{"another provider's sums are ignored", "demo", "terraform-provider-other_1.0.0_SHA256SUMS", 0, "", "", nil},
	{"the provider itself, unpacked, is ignored", "demo", "terraform-provider-demo_v1.0.0", 0, "", "", nil},

	{"another provider's package", "demo", "terraform-provider-other_1.0.0_linux_amd64.zip", 0, "", "", ErrOtherProvider},
	{"one of a type that only begins alike", "google", "terraform-provider-google-beta_1.0.0_linux_amd64.zip", 0, "", "", ErrOtherProvider},
	{"any other zip", "demo", "demo.zip", 0, "", "", ErrOtherProvider},
	{"the type in upper case", "demo", "terraform-provider-Demo_1.0.0_linux_amd64.zip", 0, "", "", ErrOtherProvider},
	{"no platform", "demo", "terraform-provider-demo_1.0.0.zip", 0, "", "", ErrPackageName},
	{"half a platform", "demo", "terraform-provider-demo_1.0.0_linux.zip", 0, "", "", ErrPackageName},
	{"more than a platform", "demo", "terraform-provider-demo_1.0.0_linux_amd64_v1.zip", 0, "", "", ErrPackageName},
	{"a platform in upper case", "demo", "terraform-provider-demo_1.0.0_Linux_amd64.zip", 0, "", "", ErrPackageName},
	{"an empty platform", "demo", "terraform-provider-demo_1.0.0__.zip", 0, "", "", ErrPackageName},
	{"a v", "demo", "terraform-provider-demo_v1.0.0_linux_amd64.zip", 0, "", "", ErrVersion},
	{"a v in the sums", "demo", "terraform-provider-demo_v1.0.0_SHA256SUMS", 0, "", "", ErrVersion},
	{"no version", "demo", "terraform-provider-demo__linux_amd64.zip", 0, "", "", ErrVersion},
	{"a version in short", "demo", "terraform-provider-demo_1.0_manifest.json", 0, "", "", ErrVersion},
}

func TestParseReleaseFile(t *testing.T) {
	for _, test := range releaseNames {
		t.Run(test.rule, func(t *testing.T) {
			if test.version == "" && test.err == nil {
				test.err = ErrNoReleaseFile
			}
			f, err := ParseReleaseFile(test.typ, test.name)
			switch {
			case test.err != nil:
				if !errors.Is(err, test.err) {
					t.Errorf("it is %+v, %v", f, err)
				}
			case err != nil || f.Kind != test.kind || f.Version.String() != test.version || f.Type != test.typ:
				t.Errorf("it is %+v, %v", f, err)
			case f.Kind == PackageFile && f.Platform.String() != test.platform:
				t.Errorf("it is for %s", f.Platform)
			}
		})
	}
}

func TestReleaseFileType(t *testing.T) {
	for name, want := range map[string]string{
		"terraform-provider-demo_1.0.0_linux_amd64.zip":   "demo",
		"terraform-provider-google-beta_1.0.0_SHA256SUMS": "google-beta",
		"terraform-provider-demo_v1.0.0_linux_amd64.zip":  "demo",
		"terraform-provider-demo_1.0.0_linux.zip":         "demo",
		"terraform-provider-demo_1.0.0_README.md":         "",
		"terraform-provider-demo_v1.0.0":                  "",
		"demo.zip":                                        "",
	} {
		if got, ok := ReleaseFileType(name); got != want && ok || ok != (want != "") {
			t.Errorf("%s is of %q, %v", name, got, ok)
		}
	}
}

// An accepted name can be put together again from its parts. So no two names mean the
// same release file, and no name contains a character with a meaning in paths.
func FuzzParseReleaseFile(f *testing.F) {
	for _, test := range releaseNames {
		f.Add(test.typ, test.name)
	}
	f.Fuzz(func(t *testing.T, typ, name string) {
		r, err := ParseReleaseFile(typ, name)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("the error says nothing")
			}
			return
		}
		suffix := releaseFileSuffixes[r.Kind]
		if r.Kind == PackageFile {
			suffix = r.Platform.String() + ".zip"
		}
		if built := ReleaseFileName(r.Type, r.Version.String(), suffix); name != built {
			t.Fatalf("%q is taken for %q", name, built)
		}
		if strings.ContainsAny(strings.TrimPrefix(name, filePrefix+typ), "/\\%\x00\n ") {
			t.Fatalf("%q is accepted", name)
		}
	})
}
