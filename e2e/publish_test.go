package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A Sender publishes to a registry by plain HTTP, as curl does.
type Sender struct {
	client *http.Client
	base   string // of the API
	token  string
}

// sender returns a sender to registry.example.com.
func (r *Registry) sender(t *testing.T, token string) *Sender {
	t.Helper()
	client, err := r.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return &Sender{client: client, base: "https://registry.example.com/v1/", token: token}
}

// do sends a request for a path below the API, with a token if there is one.
func (s *Sender) do(method, path string, body io.Reader, header ...string) (Response, error) {
	request, err := http.NewRequest(method, s.base+path, body)
	if err != nil {
		return Response{}, err
	}
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return Response{}, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return Response{Status: answer.StatusCode, Header: answer.Header, Body: string(content)}, err
}

// put sends a file, and returns the status and the body of the answer.
func (s *Sender) put(t *testing.T, path, content string, header ...string) Response {
	t.Helper()
	answer, err := s.do(http.MethodPut, path, strings.NewReader(content), header...)
	if err != nil {
		t.Fatalf("PUT %s: %v", path, err)
	}
	return answer
}

// is fails unless an answer has a status, and its body a text.
func (answer Response) is(t *testing.T, status int, text string) {
	t.Helper()
	if answer.Status != status || !strings.Contains(answer.Body, text) {
		t.Errorf("%d %s, want %d with %q", answer.Status, answer.Body, status, text)
	}
}

// A Dist is the files of a release of acme/demo 1.0.0 by name, as GoReleaser leaves
// them.
type Dist map[string]string

const demoPath = "providers/acme/demo/1.0.0/"

// newDist makes a release in the form in which the tree of a test has it.
func newDist(t *testing.T, as ...func(*Release)) Dist {
	t.Helper()
	dir := newTree(t).Provider("acme/demo", "1.0.0", append(as, perFolder)...).Path("providers/acme/demo/1.0.0")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := make(Dist)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		d[e.Name()] = string(content)
	}
	return d
}

// newSmallDist makes a release whose packages do not run, and are small.
func newSmallDist(t *testing.T, build string) Dist {
	t.Helper()
	d := make(Dist)
	var sums strings.Builder
	for _, platform := range []string{"linux_amd64", "darwin_arm64"} {
		file := filepath.Join(t.TempDir(), "package.zip")
		if err := writeZip(file, "terraform-provider-demo_v1.0.0", strings.NewReader(build+platform)); err != nil {
			t.Fatal(err)
		}
		name := zipOfDemo("1.0.0", platform)
		d[name] = readFile(t, file)
		fmt.Fprintf(&sums, "%s  %s\n", sha256Of(t, file), name)
	}
	d["terraform-provider-demo_1.0.0_SHA256SUMS"] = sums.String()
	return d
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// names returns the names of the files, in order.
func (d Dist) names() []string { return slices.Sorted(maps.Keys(d)) }

// publication is the answer to a PUT.
type publication struct {
	Status  string
	Missing []string
	Files   []struct{ Name, SHA256 string }
}

func (answer Response) publication(t *testing.T) (p publication) {
	t.Helper()
	if err := json.Unmarshal([]byte(answer.Body), &p); err != nil {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
	return p
}

// publishing returns the options of a registry to which ci may publish acme, and other
// may publish other. Everyone may read.
func publishing(k *Tokens, more ...string) []string {
	return append([]string{
		"auth terraform_tokens " + k.File,
		"access {",
		"allow anonymous read *",
		"allow ci publish acme",
		"allow other publish other",
		"}",
		"publish",
	}, more...)
}

// sees reports whether clients are offered the release whole, and fails if they see
// only a part of it. Any goroutine may call it.
func (r *Registry) sees(t *testing.T, d Dist) (whole bool) {
	packages := 0
	for name := range d {
		if strings.HasSuffix(name, ".zip") {
			packages++
		}
	}
	versions, err := r.ask("https://registry.example.com/v1/providers/acme/demo/versions")
	if err != nil {
		t.Error(err)
		return false
	}
	archives, err := r.ask("https://registry.example.com/v1/mirror/registry.example.com/acme/demo/1.0.0.json")
	if err != nil {
		t.Error(err)
		return false
	}
	listed, mirrored := strings.Count(versions.Body, `"os":`), strings.Count(archives.Body, `"url":`)
	if versions.Status != 200 && versions.Status != 404 || listed != 0 && listed != packages || mirrored != 0 && mirrored != packages {
		t.Errorf("a part of the release is offered: %d %s\n%d %s", versions.Status, versions.Body, archives.Status, archives.Body)
	}
	return listed == packages && mirrored == packages
}

// watch polls the documents of the release as a reader until stop is called. stop fails
// the test if only a part of the release was ever visible.
func (r *Registry) watch(t *testing.T, d Dist) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
				r.sees(t, d)
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}

// isPublished fails unless the tree has exactly the files of the release.
func (files *Tree) isPublished(d Dist) {
	files.t.Helper()
	var want []string
	for name, content := range d {
		path := demoPath + name
		want = append(want, path)
		if got, err := os.ReadFile(files.Path(path)); err != nil || string(got) != content {
			files.t.Errorf("%s has other bytes: %v", path, err)
		}
	}
	slices.Sort(want)
	got := slices.DeleteFunc(files.files(), func(name string) bool { return strings.HasPrefix(name, "keys/") })
	slices.Sort(got)
	if !slices.Equal(got, want) {
		files.t.Errorf("the tree has %v, want %v", got, want)
	}
	files.isClean()
}

// isClean fails if staged files remain.
func (files *Tree) isClean() {
	files.t.Helper()
	for _, part := range []string{"providers", "modules"} {
		if _, err := os.Stat(files.Path(part + "/.staging")); !os.IsNotExist(err) {
			files.t.Errorf("%s/.staging is still there: %v", part, files.files())
		}
	}
}

// staged returns the staged files, temporary ones too.
func (files *Tree) staged() (names []string) {
	_ = filepath.WalkDir(files.Path("providers/.staging"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, e.Name())
		}
		return nil
	})
	return names
}
