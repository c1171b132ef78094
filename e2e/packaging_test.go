package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A Distribution is the result of .goreleaser.yml for this repository and this
// machine's platform, without the steps that need other tools or an account.
type Distribution struct {
	Dir string // of the artifacts
}

const sbomSuffix = ".cdx.json"

// cyclonedx is built from its Go module, at the version that cyclonedx/go.mod pins.
var cyclonedx = sync.OnceValues(func() (string, error) { return goTool("cyclonedx") })

// allFormats are the formats of packages in .goreleaser.yml.
const allFormats = "deb, rpm, apk"

// ofBlob are the parts of .goreleaser.yml for the flavour with blob: an item of each list.
var ofBlob = regexp.MustCompile(`(?m)^  - <<: \*\w+\n    id: blob\n(    .*\n)*`)

// newDistribution releases a copy of the checkout under a version, with packages of some formats and
// without some steps; the step "blob" is the other flavour. Nothing is published or signed, which
// needs an account.
func newDistribution(t *testing.T, version, formats string, without ...string) Distribution {
	t.Helper()
	binary, err := goReleaser()
	require(t, err)
	sbom, err := cyclonedx()
	require(t, err)
	dir := filepath.Join(t.TempDir(), "caddy-terraform-registry")
	copyCheckout(t, dir)
	config, err := os.ReadFile(filepath.Join(dir, ".goreleaser.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(without, "blob"); i >= 0 {
		if n := len(ofBlob.FindAll(config, -1)); n != 4 {
			t.Fatalf(".goreleaser.yml has %d parts for the flavour with blob: a build, an archive, packages and an SBOM are known", n)
		}
		config, without = ofBlob.ReplaceAll(config, nil), slices.Delete(without, i, i+1)
	}
	// It is not in the checkout, whose commit is in the binaries.
	configFile := filepath.Join(t.TempDir(), ".goreleaser.yml")
	writeFile(t, configFile, substitute(t, string(config),
		"goos: [linux, darwin, windows, freebsd]", "goos: ["+runtime.GOOS+"]",
		"goarch: [amd64, arm64, arm]", "goarch: ["+runtime.GOARCH+"]",
		"formats: ["+allFormats+"]", "formats: ["+formats+"]"))
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(beforeDeadline(t), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "CI=",
			"PATH="+filepath.Dir(sbom)+string(filepath.ListSeparator)+os.Getenv("PATH"))
		for _, role := range []string{"AUTHOR", "COMMITTER"} {
			cmd.Env = append(cmd.Env, "GIT_"+role+"_NAME=Acme", "GIT_"+role+"_EMAIL=a@acme.example", "GIT_"+role+"_DATE=2026-01-01T00:00:00Z")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	run("git", "init", "--quiet", "--initial-branch=main")
	run("git", "remote", "add", "origin", "https://github.com/caddy-terraform/caddy-terraform-registry.git")
	run("git", "add", "--all")
	run("git", "commit", "--quiet", "--message", version)
	run("git", "tag", version)
	run(binary, "check", "--quiet", configFile)
	run(binary, "release", "--config", configFile, "--clean", "--skip="+strings.Join(append(without, "publish", "announce", "sign"), ","))
	return Distribution{filepath.Join(dir, "dist")}
}

// copyCheckout copies the files that git knows, or would.
func copyCheckout(t *testing.T, to string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = repository()
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		from := filepath.Join(repository(), name)
		info, err := os.Lstat(from)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, which is not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if info.Mode()&os.ModeSymlink != 0 {
			target, err := os.Readlink(from)
			if err == nil {
				err = os.Symlink(target, filepath.Join(to, name))
			}
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		content, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), content, info.Mode().Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sums returns the checksums of the artifacts, by their names.
func (d Distribution) sums(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(d.Dir, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]string)
	for line := range strings.Lines(string(content)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	return sums
}

// file returns the path of the one artifact whose name matches.
func (d Distribution) file(t *testing.T, pattern string) string {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join(d.Dir, pattern))
	if err != nil || len(matches) != 1 {
		t.Fatalf("%s matches %v (%v)", pattern, matches, err)
	}
	return matches[0]
}

// Everyone can build a release again, and it is whole: the archives have everything for
// a beginner, and the package can be installed, serves, and can be upgraded and
// removed.
func TestDistribution(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not run, because packages are for Linux")
	}
	t.Parallel()
	first := newDistribution(t, "v1.2.3", allFormats)

	t.Run("two builds are the same", func(t *testing.T) {
		again := newDistribution(t, "v1.2.3", allFormats, "blob") // whose builds have the same options
		one, two := first.sums(t), again.sums(t)
		maps.DeleteFunc(one, func(name, _ string) bool { return strings.HasPrefix(name, "caddy-terraform-registry-blob") })
		if len(one) == 0 || !maps.Equal(one, two) {
			t.Errorf("got\n%v\nand\n%v", one, two)
		}
	})

	t.Run("a software bill of materials names what is in a program", func(t *testing.T) {
		for flavour, module := range map[string]string{"caddy-terraform-registry": "github.com/caddyserver/caddy/v2", "caddy-terraform-registry-blob": "gocloud.dev"} {
			content, err := os.ReadFile(first.file(t, flavour+"_*"+sbomSuffix))
			if err != nil {
				t.Fatal(err)
			}
			var sbom struct {
				Format     string `json:"bomFormat"`
				Components []struct{ Name, Version string }
			}
			if err := json.Unmarshal(content, &sbom); err != nil || sbom.Format != "CycloneDX" {
				t.Errorf("%s: it is of the format %q, %v", flavour, sbom.Format, err)
			}
			i := slices.IndexFunc(sbom.Components, func(c struct{ Name, Version string }) bool { return c.Name == module })
			if i < 0 || !strings.HasPrefix(sbom.Components[i].Version, "v") {
				t.Errorf("%s: among %d components there is no version of %s", flavour, len(sbom.Components), module)
			}
			if first.sums(t)[filepath.Base(first.file(t, flavour+"_*"+sbomSuffix))] == "" {
				t.Errorf("%s: checksums.txt, which is signed, lacks it", flavour)
			}
		}
	})

	t.Run("what is downloaded can be checked", func(t *testing.T) {
		cmd := exec.Command("sh", "-ec", documented(t, "SECURITY.md", "sh", "sha256sum --check"))
		cmd.Dir = t.TempDir()
		for _, name := range []string{"checksums.txt", filepath.Base(first.file(t, "caddy-terraform-registry_*.deb"))} {
			copyFile(t, filepath.Join(first.Dir, name), filepath.Join(cmd.Dir, name))
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		expect(t, string(out), ".deb: OK")
	})

	t.Run("an archive has what is needed to begin", func(t *testing.T) {
		for _, flavour := range []string{"caddy-terraform-registry", "caddy-terraform-registry-blob"} {
			dir := t.TempDir()
			names := unpack(t, first.file(t, flavour+"_*.tar.gz"), dir)
			for _, name := range []string{
				"caddy-terraform-registry", "Caddyfile", "README.md", "docs/publish.md", "CHANGELOG.md", "SECURITY.md",
				"man/caddy-terraform-registry.8", "completions/bash", "completions/zsh", "completions/fish",
			} {
				if !slices.Contains(names, name) {
					t.Errorf("%s lacks %s", flavour, name)
				}
			}
			cmd := exec.CommandContext(beforeDeadline(t), "./caddy-terraform-registry", "validate")
			cmd.Dir, cmd.Env = dir, []string{"HOME=" + t.TempDir()}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: its Caddyfile cannot be served: %v\n%s", flavour, err, out)
			}
		}
	})

	t.Run("a package has the service of its system", func(t *testing.T) {
		names := unpack(t, first.file(t, "caddy-terraform-registry_*.apk"), t.TempDir())
		for _, name := range []string{"etc/init.d/caddy-terraform-registry", "etc/logrotate.d/caddy-terraform-registry", ".post-upgrade",
			"usr/share/zsh/site-functions/_caddy-terraform-registry", "usr/share/doc/caddy-terraform-registry/CHANGELOG.md"} {
			if !slices.Contains(names, name) {
				t.Errorf("the apk lacks %s, it has %v", name, names)
			}
		}
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".service") }) {
			t.Error("the apk has a unit of systemd")
		}
		rpm, err := os.ReadFile(first.file(t, "caddy-terraform-registry-1.2.3*.rpm"))
		if err != nil {
			t.Fatal(err)
		}
		// Its header has the plain names of folders and dependencies.
		for _, name := range []string{"/usr/lib/systemd/system/", "/usr/share/zsh/site-functions/", "shadow-utils"} {
			if !bytes.Contains(rpm, []byte("\x00"+name+"\x00")) {
				t.Errorf("the rpm lacks %s", name)
			}
		}
		deb, err := exec.Command("dpkg-deb", "--field", first.file(t, "caddy-terraform-registry-blob_*.deb"), "Depends", "Replaces").Output()
		if err != nil || string(deb) != "Depends: passwd\nReplaces: caddy-terraform-registry\n" {
			t.Errorf("the deb with blob has %q, %v", deb, err)
		}
	})

	t.Run("its binary says its version and Caddy's", func(t *testing.T) {
		for flavour, hasBlob := range map[string]bool{"caddy-terraform-registry": false, "caddy-terraform-registry-blob": true} {
			dir := t.TempDir()
			unpack(t, first.file(t, flavour+"_*.tar.gz"), dir)
			binary := filepath.Join(dir, "caddy-terraform-registry")
			out, err := exec.Command(binary, "version").CombinedOutput()
			if err != nil || !regexp.MustCompile(`^v1\.2\.3 with Caddy v2\.\d+\.\d+ `).Match(out) {
				t.Errorf("%s: %s %v", flavour, out, err)
			}
			modules, err := exec.Command(binary, "list-modules").Output()
			if err != nil || strings.Contains(string(modules), "caddy.fs.blob\n") != hasBlob {
				t.Errorf("%s: the module caddy.fs.blob is there or missing: %v", flavour, err)
			}
		}
	})

	t.Run("the unit is confined", func(t *testing.T) {
		_, err := exec.LookPath("systemd-analyze")
		require(t, err)
		// 10 is the exposure of a service that may do everything, 0 the one of a
		// service that may do nothing.
		unit := filepath.Join(repository(), "packaging", "caddy-terraform-registry.service")
		if out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", unit).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})

	t.Run("the deb is installed, serves, is upgraded and removed", func(t *testing.T) {
		skipUnlessRoot(t)
		next := newDistribution(t, "v1.3.0", "deb", "sbom", "archive", "blob")
		const deb = "caddy-terraform-registry_*.deb"
		onCopyOfSystem(t, "debian.sh", first.file(t, deb), next.file(t, deb), first.file(t, "caddy-terraform-registry-blob_*.deb"))
	})

	t.Run("OpenRC starts, reloads and stops the service of the apk", func(t *testing.T) {
		skipUnlessRoot(t)
		apk, debs := t.TempDir(), t.TempDir()
		unpack(t, first.file(t, "caddy-terraform-registry_*.apk"), apk)
		if _, err := exec.LookPath("openrc-run"); err != nil {
			require(t, downloadDebs(debs, "openrc", "librc1", "libeinfo1"))
		}
		onCopyOfSystem(t, "openrc.sh", apk, debs)
	})
}

// downloadDebs downloads packages of Debian without changing this system's package
// lists.
func downloadDebs(dir string, packages ...string) error {
	lists := filepath.Join(dir, "lists")
	if err := os.MkdirAll(filepath.Join(lists, "partial"), 0o755); err != nil {
		return err
	}
	options := []string{"-qq", "-o", "Dir::State::lists=" + lists, "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="}
	for _, args := range [][]string{{"update"}, append([]string{"download"}, packages...)} {
		cmd := exec.Command("apt-get", append(options[:len(options):len(options)], args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}

func skipUnlessRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		require(t, errors.New("root, who alone can install a package"))
	}
}

// onCopyOfSystem runs a script of this folder in name spaces of its own.
func onCopyOfSystem(t *testing.T, script string, args ...string) {
	t.Helper()
	for _, tool := range []string{"dpkg", "unshare", "setpriv", "ip", "curl"} {
		_, err := exec.LookPath(tool)
		require(t, err)
	}
	command := []string{"--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", filepath.Join(repository(), "e2e", script)}
	out, err := exec.CommandContext(beforeDeadline(t), "unshare", append(command, args...)...).CombinedOutput()
	t.Logf("%s", out)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 77 {
		require(t, errors.New("mounts over this system"))
	}
	if err != nil {
		t.Error(err)
	}
}

// unpack extracts a tar.gz, and returns the names of its files.
func unpack(t *testing.T, packed, dir string) (names []string) {
	t.Helper()
	f, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		names = append(names, header.Name)
		name := filepath.Join(dir, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := writeProgram(name, r, header.FileInfo().Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

// writeProgram writes a file that can be run at once. No test starts a process meanwhile: until
// that process has become another program, it would have the file open for writing as well, and
// the system does not run such a file ("text file busy").
func writeProgram(name string, content io.Reader, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
