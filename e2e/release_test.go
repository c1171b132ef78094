package e2e_test

import (
	"archive/zip"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Release is a release of a provider: packages for several platforms, their
// checksums and a signature of these.
type Release struct {
	address   string // [HOSTNAME/]NAMESPACE/TYPE
	version   string
	platforms []string
	build     string // the name that the executable prints

	sums      bool
	editSums  func(string) string
	signer    *Publisher
	signs     func(string) string // returns the signed text, given SHA256SUMS
	protocols string              // of the manifest; "": no manifest
	perFolder bool
	tampered  []string // platforms

	// level of compression of its packages: none by default, since unpacking the same provider in
	// hundreds of registries and workspaces takes minutes.
	level int
}

// thisPlatform is the only platform whose package has a working provider.
const thisPlatform = runtime.GOOS + "_" + runtime.GOARCH

// threePlatforms are this one and two others.
func threePlatforms() []string {
	platforms := []string{thisPlatform}
	for _, other := range []string{"linux_amd64", "darwin_arm64", "windows_amd64"} {
		if other != thisPlatform && len(platforms) < 3 {
			platforms = append(platforms, other)
		}
	}
	return platforms
}

// newRelease returns a release of a provider: for this platform and two others, with
// SHA256SUMS, unsigned, unless options say otherwise.
func newRelease(address, version string, as ...func(*Release)) *Release {
	r := &Release{
		address:   address,
		version:   version,
		platforms: threePlatforms(),
		build:     version,
		sums:      true,
		protocols: "5.0",
	}
	for _, f := range as {
		f(r)
	}
	return r
}

// platforms limits a release to some platforms.
func platforms(names ...string) func(*Release) {
	return func(r *Release) { r.platforms = names }
}

// signedBy makes a publisher sign the SHA256SUMS.
func signedBy(p *Publisher) func(*Release) {
	return func(r *Release) { r.signer = p }
}

// compressed has the packages of a release compressed, as packages of real releases are.
func compressed(r *Release) { r.level = flate.BestSpeed }

// wronglySignedBy makes a publisher sign another text, as when SHA256SUMS is
// regenerated and the signature is not.
func wronglySignedBy(p *Publisher) func(*Release) {
	return func(r *Release) {
		r.signer = p
		r.signs = func(sums string) string { return sums + sums }
	}
}

// zipsOnly leaves out everything except the packages, as in a mirrored
// directory.
func zipsOnly(r *Release) { r.sums, r.protocols = false, "" }

// perFolder puts the files of the release in a folder VERSION.
func perFolder(r *Release) { r.perFolder = true }

// built gives the executable another name than its version, to distinguish two releases
// of the same version.
func built(build string) func(*Release) {
	return func(r *Release) { r.build = build }
}

// sums edits the SHA256SUMS before it is signed.
func sums(edit func(string) string) func(*Release) {
	return func(r *Release) { r.editSums = edit }
}

// tampered changes packages after the release.
func tampered(platform string) func(*Release) {
	return func(r *Release) { r.tampered = append(r.tampered, platform) }
}

// publish writes a release as the manual says: the documents before the packages, which are
// renamed into place when all of them have been written. A server that scans meanwhile must not
// take the release for one that nobody has signed.
func (r *Release) publish(t *testing.T, root string) {
	t.Helper()
	dir := filepath.Join(root, "providers", filepath.FromSlash(r.address))
	if r.perFolder {
		dir = filepath.Join(dir, r.version)
	}
	base := "terraform-provider-" + r.providerType() + "_" + r.version + "_"

	incoming := make(map[string]string) // by the name in the end
	var document strings.Builder
	for _, platform := range r.platforms {
		zip := filepath.Join(dir, base+platform+".zip")
		incoming[zip] = filepath.Join(dir, "."+base+platform+".zip.tmp")
		copyFile(t, r.pack(t, platform), incoming[zip])
		fmt.Fprintf(&document, "%s  %s\n", sha256Of(t, incoming[zip]), filepath.Base(zip))
	}
	if r.protocols != "" {
		manifest := filepath.Join(dir, base+"manifest.json")
		writeFile(t, manifest, `{"version":1,"metadata":{"protocol_versions":["`+r.protocols+`"]}}`+"\n")
		fmt.Fprintf(&document, "%s  %s\n", sha256Of(t, manifest), filepath.Base(manifest))
	}
	if r.sums {
		r.writeSums(t, filepath.Join(dir, base+"SHA256SUMS"), document.String())
	}
	for zip, from := range incoming {
		if err := os.Rename(from, zip); err != nil {
			t.Fatal(err)
		}
	}
	for _, platform := range r.tampered {
		appendTo(t, filepath.Join(dir, base+platform+".zip"), "tampered with")
	}
}

// writeSums writes SHA256SUMS and its signature, which is made elsewhere.
func (r *Release) writeSums(t *testing.T, file, text string) {
	t.Helper()
	if r.editSums != nil {
		text = r.editSums(text)
	}
	if r.signer != nil {
		signed := text
		if r.signs != nil {
			signed = r.signs(text)
		}
		elsewhere := filepath.Join(t.TempDir(), "SHA256SUMS")
		writeFile(t, elsewhere, signed)
		r.signer.Sign(t, elsewhere)
		copyFile(t, elsewhere+".sig", file+".sig")
	}
	writeFile(t, file, text)
}

func (r *Release) providerType() string { return lastElement(r.address) }

// pack returns the package for a platform. It is created once per run.
func (r *Release) pack(t *testing.T, platform string) string {
	t.Helper()
	path := filepath.Join(runDir, "packages", strconv.Itoa(r.level), r.providerType(), r.version, r.build, platform+".zip")
	name := "terraform-provider-" + r.providerType() + "_v" + r.version
	if strings.HasPrefix(platform, "windows_") {
		name += ".exe"
	}
	var executable string
	if platform == thisPlatform {
		executable = buildProvider(t, r.providerType(), r.build)
	}
	err := packages.once(path, func() error {
		if executable == "" {
			// It never runs here, but differs from the executables of other platforms.
			return writeZipAt(r.level, path, name, strings.NewReader("a "+name+" of "+r.build+" for "+platform+"\n"))
		}
		file, err := os.Open(executable)
		if err != nil {
			return err
		}
		defer file.Close()
		return writeZipAt(r.level, path, name, file)
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var packages onceEach

// writeZip packs an executable and a licence, as releases do.
func writeZip(path, name string, executable io.Reader) error {
	return writeZipAt(flate.BestSpeed, path, name, executable)
}

// writeZipAt packs an executable and a licence with a level of compression.
func writeZipAt(level int, path, name string, executable io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	packed := zip.NewWriter(file)
	packed.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, level)
	})
	for _, entry := range []struct {
		name    string
		mode    os.FileMode
		content io.Reader
	}{
		{"LICENSE", 0o644, strings.NewReader("Do with it what you like.\n")},
		{name, 0o755, executable},
	} {
		header := &zip.FileHeader{Name: entry.name, Method: zip.Deflate}
		header.SetMode(entry.mode)
		w, err := packed.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := io.Copy(w, entry.content); err != nil {
			return err
		}
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return file.Close()
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, string(content))
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func sha256Of(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
