package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Job is a job of GitHub Actions: a working directory, and a service from which
// processes request the job's token.
type Job struct {
	*Workspace

	caddy string
	temp  string // for files of the job, outside of the working directory
}

// newJob returns a job that gets the tokens of a client of the OpenID provider, for
// their audience.
func newJob(t *testing.T, r *Registry, openid *OpenID) *Job {
	t.Helper()
	caddy, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	const secret = "secret of the job"
	token := openid.CIToken(t, "ci", openIDAudience)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.Header.Get("Authorization") != "bearer "+secret || query.Get("api-version") != "2.0" || query.Get("audience") != openIDAudience {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		json.NewEncoder(w).Encode(map[string]string{"value": token})
	}))
	t.Cleanup(service.Close)
	job := &Job{Workspace: newWorkspace(t, r, ""), caddy: caddy, temp: t.TempDir()}
	job.Setenv("GITHUB_ACTIONS", "true")
	job.Setenv("RUNNER_TEMP", job.temp)
	job.Setenv("ACTIONS_ID_TOKEN_REQUEST_URL", service.URL+"/token?api-version=2.0")
	job.Setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", secret)
	return job
}

// Publish runs the action with inputs as the service does: action.yml maps each of them
// to a variable of the script.
func (j *Job) Publish(t *testing.T, with map[string]string) (out string, code int) {
	t.Helper()
	action := filepath.Join(repository(), ".github", "actions", "publish")
	cmd := exec.CommandContext(beforeDeadline(t), "bash", filepath.Join(action, "publish.sh"))
	cmd.Dir, cmd.Env = j.Dir, append([]string{}, j.env...)
	used := 0
	for _, m := range regexp.MustCompile(`(?m)^ +([A-Z0-9_]+): \$\{\{ inputs\.([a-z0-9-]+) \}\}$`).
		FindAllStringSubmatch(readFile(t, filepath.Join(action, "action.yml")), -1) {
		value, given := with[m[2]]
		if given {
			used++
		}
		if m[2] == "command" {
			value = j.caddy
		}
		cmd.Env = append(cmd.Env, m[1]+"="+value)
	}
	if used != len(with) {
		t.Fatalf("action.yml does not have all of %v", with)
	}
	combined, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(combined), cmd.ProcessState.ExitCode()
}

// actionInputs returns the inputs of a step of a workflow in the documentation, below
// `with`.
func actionInputs(t *testing.T, step string) map[string]string {
	t.Helper()
	_, lines, found := strings.Cut(step, "/.github/actions/publish@main\n        with:\n")
	if !found {
		t.Fatalf("it is not a step with the action:\n%s", step)
	}
	with := map[string]string{}
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		with[name] = strings.ReplaceAll(value, "registry.example.com", openIDHost)
	}
	return with
}

// openIDHost is the hostname of the registry in openIDAudience, which is the audience that
// the command requests for it.
const openIDHost = "registry.example.test"

// startPublishingByOpenID runs a registry with the Caddyfile of docs/publish.md that
// has an issuer. It replaces the issuer and other texts.
func startPublishingByOpenID(t *testing.T, openid *OpenID, issuer string, pairs ...string) *Registry {
	t.Helper()
	block := substitute(t, documented(t, publishDocs, "caddyfile", issuer),
		append(pairs, "/srv", newTree(t).Dir, "registry.example.com", openIDHost, issuer, openid.Issuer)...)
	registry := startRegistry(t, documentedSite(t, block))
	registry.Log.Wait(t, "it has scanned its tree", Entry.scan)
	return registry
}

// A job of GitLab publishes with the token in its variable.
func TestPublishDocsGitLab(t *testing.T) {
	t.Parallel()
	openid := startOpenID(t)
	registry := startPublishingByOpenID(t, openid, "https://gitlab.example.com",
		"require ref_protected true", "require client_id ci",
		"project_path:acme/terraform-provider-demo:ref_type:tag:ref:v*", "ci")
	caddy, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	job := documented(t, publishDocs, "yaml", "id_tokens:")
	_, script, _ := strings.Cut(job, "  script:\n    - ")
	variable := regexp.MustCompile(`id_tokens:\n +(\w+):\n +aud: https://registry\.example\.com\n`).FindStringSubmatch(job)
	if variable == nil {
		t.Fatalf("the job has no token for the registry:\n%s", job)
	}
	ws := newWorkspace(t, registry, "")
	ws.release(t)
	ws.Setenv(variable[1], openid.CIToken(t, "ci", openIDAudience))
	ws.Shell(t, ".", substitute(t, script, "caddy-terraform-registry ", `"`+caddy+`" terraform-registry `, "registry.example.com", openIDHost))
	expect(t, registry.Get(t, "https://"+openIDHost+"/v1/providers/acme/demo/versions").Body, `"1.2.0"`)
}

// The action publishes the files in the workflows of docs/publish.md to the configured
// registry, with the job's own token and no secret.
func TestPublishAction(t *testing.T) {
	t.Parallel()
	const host = openIDHost
	openid := startOpenID(t)
	registry := startPublishingByOpenID(t, openid, "https://token.actions.githubusercontent.com",
		"require repository_owner acme", "require client_id ci",
		"repo:acme/terraform-provider-demo:ref:refs/tags/v*", "ci",
		"repo:acme/infrastructure:ref:refs/heads/main", "ci")
	job := newJob(t, registry, openid)
	job.release(t)
	job.Write(t, "docs/index.md", "# Demo\n")
	asFolder(t, filepath.Join(job.Dir, "modules", "vpc"), moduleFiles("acme/vpc/aws", "1.2.0"))
	for _, step := range []string{
		documented(t, publishDocs, "yaml", "docs: docs"),
		documented(t, publishDocs, "yaml", "version: 1.2.0"),
	} {
		if out, code := job.Publish(t, actionInputs(t, step)); code != 0 {
			t.Errorf("exit status %d for\n%s\n%s", code, step, out)
		}
	}
	expect(t, registry.Get(t, "https://"+host+"/v1/providers/acme/demo/1.2.0").Body, `"path":"docs/index.md"`)
	expect(t, registry.Get(t, "https://"+host+"/v1/modules/acme/vpc/aws/versions").Body, `"1.2.0"`)

	t.Run("an address that the rules do not allow", func(t *testing.T) {
		out, code := job.Publish(t, map[string]string{"to": host + "/acme/other", "path": "dist"})
		if code == 0 {
			t.Errorf("exit status 0:\n%s", out)
		}
	})
	t.Run("an input is never run by the shell", func(t *testing.T) {
		out, code := job.Publish(t, map[string]string{"to": host + "/acme/demo", "path": "$(touch run) `touch run`; touch run"})
		if code == 0 {
			t.Errorf("exit status 0:\n%s", out)
		}
		if _, err := os.Stat(filepath.Join(job.Dir, "run")); err == nil {
			t.Error("a command in an input was run")
		}
	})
	t.Run("an input that looks like an option is a folder", func(t *testing.T) {
		out, code := job.Publish(t, map[string]string{"to": host + "/acme/demo", "path": "--help"})
		if code == 0 {
			t.Errorf("exit status 0:\n%s", out)
		}
	})
	t.Run("a download must have the given sha256", func(t *testing.T) {
		with := map[string]string{"to": host + "/acme/demo", "path": "dist",
			"download": "https://" + host + "/.well-known/terraform.json", "sha256": strings.Repeat("0", 64)}
		out, code := job.Publish(t, with)
		if code != 2 || !strings.Contains(out, "what was downloaded has the sha256") {
			t.Errorf("exit status %d:\n%s", code, out)
		}
		delete(with, "sha256")
		if out, code := job.Publish(t, with); code != 2 || !strings.Contains(out, "download needs sha256") {
			t.Errorf("exit status %d:\n%s", code, out)
		}
	})
}
