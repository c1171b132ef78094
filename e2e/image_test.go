package e2e_test

import (
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// .dockerignore excludes nothing that the image's build needs: the Dockerfile's own
// command builds both flavours from the remaining files, as static binaries for any
// base.
func TestImageBuild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("not run, because the command is for a POSIX shell")
	}
	t.Parallel()
	context := buildContext(t)
	instructions := dockerfile(t)

	t.Run("everything that is copied is in the context", func(t *testing.T) {
		for _, arguments := range instructions["COPY"] {
			if strings.HasPrefix(arguments, "--from=") {
				continue
			}
			paths := strings.Fields(arguments)
			for _, path := range paths[:len(paths)-1] {
				if _, err := os.Stat(filepath.Join(context, path)); err != nil {
					t.Error(err)
				}
			}
		}
	})

	i := slices.IndexFunc(instructions["RUN"], func(run string) bool { return strings.Contains(run, "go build") })
	if i < 0 {
		t.Fatal("nothing is built")
	}
	command := regexp.MustCompile(`--mount=\S+\s+`).ReplaceAllString(instructions["RUN"][i], "")
	for flavour, hasBlob := range map[string]bool{"xcaddy": false, "xcaddy/blob": true} {
		t.Run(flavour+" builds from the context alone", func(t *testing.T) {
			out := t.TempDir()
			build := exec.CommandContext(beforeDeadline(t), "sh", "-c", substitute(t, command, "/out/", out+"/"))
			build.Dir = context
			build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false "+goEnv(t, "GOFLAGS"),
				"TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH, "FLAVOUR="+flavour, "VERSION=v1.2.3 with Caddy")
			if output, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			binary := filepath.Join(out, "caddy-terraform-registry")
			version, err := exec.Command(binary, "version").Output()
			if err != nil || !strings.HasPrefix(string(version), "v1.2.3 with Caddy v2.") {
				t.Errorf("its version is %s (%v)", version, err)
			}
			modules, err := exec.Command(binary, "list-modules").Output()
			if err != nil || strings.Contains(string(modules), "caddy.fs.blob\n") != hasBlob {
				t.Errorf("the module caddy.fs.blob is there or missing: %v", err)
			}
			settings, err := exec.Command("go", "version", "-m", binary).Output()
			if err != nil || !strings.Contains(string(settings), "CGO_ENABLED=0") {
				t.Errorf("it may need a C library: %v\n%s", err, settings)
			}
		})
	}
}

// The image's command serves as the image's user, without capabilities, on a root file
// system that cannot be written to, as compose files run it.
func TestImageRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not run, because images are for Linux")
	}
	t.Parallel()
	skipUnlessRoot(t)
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	instructions := dockerfile(t)
	check := arguments(t, instructions["HEALTHCHECK"])
	args := []string{binary, filepath.Join(repository(), "packaging", "image.Caddyfile"), instructions["USER"][0], check[len(check)-1],
		strings.Join(arguments(t, instructions["CMD"]), " ")}
	onCopyOfSystem(t, "image.sh", append(args, strings.Fields(instructions["ENV"][0])...)...)
}

// arguments returns the arguments of a command, which are JSON, after options.
func arguments(t *testing.T, instruction []string) (command []string) {
	t.Helper()
	list := instruction[0][strings.Index(instruction[0], "["):]
	if err := json.Unmarshal([]byte(list), &command); err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	return command
}

// The image's health check asks an address that Caddy's admin API listens on by default:
// BusyBox's wget tries one address of localhost only, which is ::1 on Alpine.
func TestImageHealthCheck(t *testing.T) {
	t.Parallel()
	command := arguments(t, dockerfile(t)["HEALTHCHECK"])
	asked, err := url.Parse(command[len(command)-1])
	if err != nil {
		t.Fatal(err)
	}
	// This is how Caddy listens on its default, localhost:2019.
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	listening := netip.MustParseAddrPort(listener.Addr().String()).Addr()
	if address, err := netip.ParseAddr(asked.Hostname()); err != nil || address != listening || asked.Port() != "2019" {
		t.Errorf("it asks %s, but %s:2019 answers", asked.Host, listening)
	}
	registry := startRegistry(t, site("registry.example.com", newTree(t)))
	if answer := registry.Admin(t, http.MethodGet, asked.Path); answer.Status != http.StatusOK {
		t.Errorf("%s answers %d", asked.Path, answer.Status)
	}
}

// dockerfile returns the arguments of the Dockerfile's instructions, each on one line.
func dockerfile(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository(), "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	instructions := make(map[string][]string)
	for line := range strings.Lines(strings.ReplaceAll(string(content), "\\\n", " ")) {
		if name, arguments, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			instructions[name] = append(instructions[name], strings.TrimSpace(arguments))
		}
	}
	return instructions
}

// buildContext returns a copy of the checkout without what .dockerignore excludes.
func buildContext(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyCheckout(t, dir)
	file, err := os.Open(filepath.Join(dir, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	excluded, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		leftOut, err := excluded.MatchesOrParentMatches(name)
		if err == nil && leftOut {
			err = os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
