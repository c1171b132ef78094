package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// tagPushed sends the webhook of a code host about a repository, as GitHub and Gitea sign it.
func tagPushed(t *testing.T, r *Registry, url, secret string, of *Repository) (status int) {
	t.Helper()
	body := fmt.Sprintf(`{"ref_type":"tag","repository":{"clone_url":%q}}`, of.URL)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	q, err := http.NewRequestWithContext(beforeDeadline(t), http.MethodPost, url, strings.NewReader(body))
	require(t, err)
	q.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	client, err := r.client()
	require(t, err)
	defer client.CloseIdleConnections()
	answer, err := client.Do(q)
	require(t, err)
	answer.Body.Close()
	return answer.StatusCode
}

// A tag that is pushed is a version for the next client, and the version stays when the code host has
// gone.
func TestTagsBecomeVersions(t *testing.T) {
	t.Parallel()
	outside := newOutside(t, newTree(t))
	code := outside.CodeHost(t)
	repository := code.Repository("modules")
	release := func(version string) {
		repository.Commit(map[string]string{
			"vpc/main.tf":    "module \"subnet\" {\n  source = \"../subnet\"\n}\n\noutput \"text\" {\n  value = \"vpc with ${module.subnet.text}\"\n}\n",
			"subnet/main.tf": fmt.Sprintf("output \"text\" {\n  value = %q\n}\n", "subnet "+version),
			"vpc/.env":       "A=1\n",
		})
		repository.Tag("vpc-" + version)
	}
	release("1.0.0")
	folders := newTree(t)
	writeFile(t, filepath.Join(folders.Dir, "modules", "acme", "vpc", "aws", "registry.hcl"),
		fmt.Sprintf("git {\n  url    = %q\n  folder = \"vpc\"\n  tags   = \"vpc-{version}\"\n}\n", repository.URL))
	registry := outside.StartMirror(t, site("mirror.example.com", folders, "git {", "host "+codeHostGit+" {", "webhook s3cret", "}", "poll 1h", "}"))
	const address = "mirror.example.com/acme/vpc/aws"

	minor := 0
	eachClient(t, func(t *testing.T, c Client) {
		minor++
		version := fmt.Sprintf("1.%d.0", minor)
		ws := newWorkspace(t, registry, calling(address, "~> 1.0"))
		c.Run(t, ws, "init")
		release(version)
		if status := tagPushed(t, registry, "https://mirror.example.com/v1/refresh", "another", repository); status != http.StatusForbidden {
			t.Errorf("a forged webhook: got %d", status)
		}
		if status := tagPushed(t, registry, "https://mirror.example.com/v1/refresh", "s3cret", repository); status != http.StatusAccepted {
			t.Fatalf("the webhook: got %d", status)
		}
		eventually(t, "the registry lists "+version, func() bool { // within a second or two
			return registry.lists(t, "https://mirror.example.com/v1/modules/acme/vpc/aws/versions", version)
		})
		c.Run(t, ws, "init", "-upgrade")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `"vpc with subnet `+version+`"`)
	})

	code.Fails(codeHostGit, hangUp)
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, calling(address, "1.1.0"))
		c.Run(t, ws, "init")
	})
	names := slices.Sorted(maps.Keys(untarred(t, folders.Read("modules/acme/vpc/aws/1.1.0.tar.gz"))))
	if want := []string{"subnet/main.tf", "vpc/main.tf"}; !slices.Equal(names, want) {
		t.Errorf("the package has %q", names)
	}
}

// A registry that is killed while it fetches a version has nothing of it in the tree, and the next one
// removes what is left elsewhere, and fetches the version.
func TestKilledWhileFetchingAVersion(t *testing.T) {
	t.Parallel()
	outside := newOutside(t, newTree(t))
	code := outside.CodeHost(t)
	repository := code.Repository("modules")
	repository.Commit(map[string]string{"vpc/main.tf": "# vpc\n", "dns/main.tf": "# dns\n"})
	repository.Tag("v1.0.0")
	folders := newTree(t)
	for _, name := range []string{"vpc", "dns"} { // so that the whole commit is fetched
		writeFile(t, filepath.Join(folders.Dir, "modules", "acme", name, "aws", "registry.hcl"), fmt.Sprintf("git {\n  url    = %q\n  folder = %q\n}\n", repository.URL, name))
	}
	s := site("mirror.example.com", folders, "git {", "poll 1h", "}")
	registry := outside.StartMirror(t, s)
	const modules = "https://mirror.example.com/v1/modules/acme/"
	for _, name := range []string{"vpc", "dns"} {
		eventually(t, "the registry lists "+name, func() bool { return registry.lists(t, modules+name+"/aws/versions", "1.0.0") })
	}

	gate, reached := newGate(t), make(chan struct{}, 100)
	code.Fails(codeHostGit, onPaths(func(http.ResponseWriter, *http.Request, http.Handler) {
		reached <- struct{}{}
		gate.wait()
		panic(http.ErrAbortHandler)
	}, "/git-upload-pack"))
	answered := make(chan error, 1)
	go func() {
		_, err := registry.ask(modules + "vpc/aws/1.0.0/archive.tar.gz")
		answered <- err
	}()
	<-reached
	left := registry.temporary(t)
	require(t, registry.cmd.Process.Signal(syscall.SIGKILL))
	<-registry.ended
	gate.open()
	if err := <-answered; err == nil {
		t.Error("a client got an answer for a version that was not fetched")
	}
	if files := slices.DeleteFunc(folders.files(), func(name string) bool { return isRecord(name) || strings.HasSuffix(name, "registry.hcl") }); len(files) > 0 || len(left) == 0 {
		t.Errorf("the tree has %v, and there were the temporary folders %v", files, left)
	}

	code.Fails(codeHostGit, nil)
	registry.start(t, []Site{s})
	for _, name := range []string{"vpc", "dns"} {
		if answer := registry.Get(t, modules+name+"/aws/1.0.0/archive.tar.gz"); answer.Status != http.StatusOK {
			t.Errorf("%s: got %d %s", name, answer.Status, answer.Body)
		}
	}
	eventually(t, "what was left is removed", func() bool {
		return !slices.ContainsFunc(registry.temporary(t), func(name string) bool { return slices.Contains(left, name) })
	})
}
