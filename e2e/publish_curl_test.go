package e2e_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// put sends a file with curl, as in docs/publish.md, and returns the answer. A URL that
// ends with a slash gets the name of the file.
func (ws *Workspace) put(t *testing.T, token, file, url string, more ...string) (status int, body string) {
	t.Helper()
	args := append([]string{"-sS", "-w", "%{stderr}%{http_code}", "-H", "Authorization: Bearer " + token, "-T", file}, more...)
	cmd := exec.CommandContext(beforeDeadline(t), "curl", append(args, url)...)
	cmd.Env = ws.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("curl -T %s %s: %v\n%s", file, url, err, stderr.String())
	}
	if status, err = strconv.Atoi(stderr.String()); err != nil {
		t.Fatalf("curl -T %s %s: %s", file, url, stderr.String())
	}
	return status, string(out)
}

// A release is published with its last file, in whatever order they are sent. Until
// then clients see nothing of it.
func TestPublishInAnyOrder(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	require(t, err)
	acme := publisher(t, "acme")
	registry, token := startPublishing(t, newTree(t).Keys("acme", acme))
	const providers = "https://registry.example.com/v1/providers/acme/demo/"

	packages := func(version string) (names []string) {
		for _, platform := range threePlatforms() {
			names = append(names, "terraform-provider-demo_"+version+"_"+platform+".zip")
		}
		return names
	}
	document := func(version, name string) string { return "terraform-provider-demo_" + version + "_" + name }
	for _, order := range []struct {
		rule, version string
		files         []string
	}{
		{"the checksums first, as `caddy terraform-registry publish` sends them", "1.0.0", slices.Concat(
			[]string{document("1.0.0", "SHA256SUMS"), document("1.0.0", "SHA256SUMS.sig"), document("1.0.0", "manifest.json")}, packages("1.0.0"))},
		{"the packages first, as builds finish", "1.1.0", slices.Concat(packages("1.1.0"),
			[]string{document("1.1.0", "manifest.json"), document("1.1.0", "SHA256SUMS"), document("1.1.0", "SHA256SUMS.sig")})},
		{"the signature first and the checksums last", "1.2.0", slices.Concat(
			[]string{document("1.2.0", "SHA256SUMS.sig")}, packages("1.2.0"), []string{document("1.2.0", "manifest.json"), document("1.2.0", "SHA256SUMS")})},
	} {
		t.Run(order.rule, func(t *testing.T) {
			ws := newWorkspace(t, registry, "")
			newRelease("acme/demo", order.version, signedBy(acme)).publish(t, ws.Dir)
			for i, name := range order.files {
				file := filepath.Join(ws.Dir, "providers", "acme", "demo", name)
				want := http.StatusAccepted
				if i == len(order.files)-1 {
					want = http.StatusCreated
				}
				if status, body := ws.put(t, token, file, providers+order.version+"/"); status != want {
					t.Fatalf("%s: got %d, want %d: %s", name, status, want, body)
				}
				listed := strings.Contains(registry.Get(t, providers+"versions").Body, `"`+order.version+`"`)
				if complete := i == len(order.files)-1; listed != complete {
					t.Errorf("after %s, version %s is listed: %t, want %t", name, order.version, listed, complete)
				}
			}
			for _, name := range order.files {
				file := filepath.Join(ws.Dir, "providers", "acme", "demo", name)
				if status, body := ws.put(t, token, file, providers+order.version+"/"); status != http.StatusOK {
					t.Errorf("%s again: got %d, want 200: %s", name, status, body)
				}
			}
			eachClient(t, func(t *testing.T, c Client) {
				ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", order.version))
				expect(t, c.Run(t, ws, "init"), acme.KeyID(t))
				expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from `+order.version+`"`)
			})
		})
	}
}

// Scripts that publish to Artifactory can publish here, and get the answers that they
// expect.
func TestPublishAsToArtifactory(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	require(t, err)
	registry, token := startPublishing(t, newTree(t))
	const host = "https://registry.example.com"
	ws := newWorkspace(t, registry, "")
	ws.Setenv("REGISTRY_TOKEN", token)

	ws.release(t)
	files, err := filepath.Glob(filepath.Join(ws.Dir, "dist", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var status int
	var body string
	for _, file := range files {
		status, body = ws.put(t, token, file, host+"/v1/providers/acme/demo/1.2.0/"+filepath.Base(file),
			"-H", "X-Checksum-Sha256: "+sha256Of(t, file))
		if status != http.StatusAccepted && status != http.StatusCreated {
			t.Fatalf("%s: got %d %s", file, status, body)
		}
	}
	if status != http.StatusCreated {
		t.Errorf("the last file: got %d %s", status, body)
	}

	module := filepath.Join(ws.Dir, "1.2.0")
	asZip(t, module, moduleFiles("acme/vpc/aws", "1.2.0"))
	sum, url := sha256Of(t, module+".zip"), host+"/v1/modules/acme/vpc/aws/1.2.0.zip"
	deploy := []string{"-X", "PUT", "-H", "X-Checksum-Deploy: true", "-H", "X-Checksum-Sha256: " + sum}
	if status, body := ws.put(t, token, "/dev/null", url, deploy...); status != http.StatusNotFound {
		t.Errorf("a deployment by checksum, before there is such a file: got %d %s, want 404", status, body)
	}
	expect(t, ws.Shell(t, ".", documented(t, publishDocs, "sh", "X-Checksum-Sha256: $")), `"status":"published"`)
	if status, body := ws.put(t, token, "/dev/null", url, deploy...); status != http.StatusOK {
		t.Errorf("a deployment by checksum: got %d %s, want 200", status, body)
	}
	asZip(t, module, moduleFiles("acme/vpc/aws", "other bytes"))
	status, body = ws.put(t, token, module+".zip", url, "-H", "X-Checksum-Sha256: "+sha256Of(t, module+".zip"))
	if status != http.StatusConflict || !strings.HasPrefix(body, `{"errors":[{"status":409,"message":"`) {
		t.Errorf("other bytes: got %d %s, want 409 in Artifactory's format", status, body)
	}

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.2.0"))
		ws.Write(t, "module.tf", "module \"vpc\" {\n  source  = \"registry.example.com/acme/vpc/aws\"\n  version = \"1.2.0\"\n}\n")
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.2.0"`)
	})
}
