package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// helm is built from its Go module, at the version that helm/go.mod pins.
var helm = sync.OnceValues(func() (string, error) { return goTool("helm") })

// Helm accepts the chart. With every setting, Kubernetes accepts the rendered
// manifests, and Caddy runs their Caddyfile.
func TestChart(t *testing.T) {
	t.Parallel()
	binary, err := helm()
	require(t, err)
	chart := filepath.Join(repository(), "charts", "caddy-terraform-registry")
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(beforeDeadline(t), binary, args...)
		var refusal bytes.Buffer
		cmd.Stderr = &refusal
		out, err := cmd.Output()
		return append(out, refusal.Bytes()...), err
	}
	if out, err := run("lint", "--strict", "--kube-version", "1.30.0", "--set", "hostname=registry.example.com", chart); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
	if out, err := run("template", "registry", chart); err == nil || !strings.Contains(string(out), "hostname") {
		t.Errorf("without a hostname: %v\n%s", err, out)
	}

	for _, option := range []string{"tlog", "ui\ntlog {\n\trequire\n}"} {
		out, err := run("template", "registry", chart, "--kube-version", "1.30.0", "--set", "hostname=registry.example.com", "--set-literal", "options="+option)
		if err == nil || !strings.Contains(string(out), "tlog.volume.enabled=true") {
			t.Errorf("a log without a folder, which ends with the pod: %v\n%s", err, out)
		}
	}

	for _, test := range []struct {
		rule   string
		values []string
		kinds  []string // in addition to those that are always there
		lacks  string   // a kind
		says   string   // in the Caddyfile
	}{
		{"volumes by default", nil, []string{"PersistentVolumeClaim", "PodDisruptionBudget", "Ingress"}, "NetworkPolicy", "root /srv/registry"},
		{"a bucket, and no volume for the tree",
			[]string{"tree.bucket.url=s3://acme-terraform?region=eu-central-1", "tree.bucket.prefix=registry", "tree.bucket.redirect=true", "storage.volume.existingClaim=storage"},
			nil, "PersistentVolumeClaim", "redirect"},
		{"volumes that exist", []string{"tree.volume.existingClaim=tree", "storage.volume.existingClaim=storage"}, nil, "PersistentVolumeClaim", "root /srv/registry"},
		{"secrets that exist",
			[]string{"existingSecrets.tokens=tokens", "existingSecrets.signingKey=key", "existingSecrets.environment=credentials", "options=auth terraform_tokens /etc/registry/tokens/tokens"},
			nil, "NetworkPolicy", "auth terraform_tokens"},
		{"what a cluster adds", []string{"networkPolicy.enabled=true", "metrics.serviceMonitor.enabled=true", "ingress.enabled=false", "replicas=1"},
			[]string{"NetworkPolicy", "ServiceMonitor"}, "Ingress", "metrics /metrics"},
		{"another prefix, which probes have too", []string{"prefix=/terraform"}, nil, "NetworkPolicy", "prefix /terraform"},
		{"options of servers", []string{"serverOptions=client_ip_headers X-Real-IP"}, nil, "NetworkPolicy", "client_ip_headers X-Real-IP"},
		{"a log on a volume of its own", []string{"tlog.volume.enabled=true", "options=tlog /srv/log"}, []string{"PersistentVolumeClaim"}, "NetworkPolicy", "tlog /srv/log"},
		{"a log in the bucket", []string{"tree.bucket.url=s3://acme-terraform?region=eu-central-1", "storage.volume.existingClaim=storage", "options=tlog"},
			nil, "PersistentVolumeClaim", "\ttlog\n"},
		{"one pod on volumes of one node, which ends before the next starts",
			[]string{"replicas=1", "tree.volume.accessModes={ReadWriteOnce}", "storage.volume.accessModes={ReadWriteOnce}"},
			[]string{"PersistentVolumeClaim"}, "PodDisruptionBudget", "root /srv/registry"},
		{"a log on a volume of one pod", []string{"replicas=1", "tlog.volume.enabled=true", "tlog.volume.accessModes={ReadWriteOncePod}", "options=tlog /srv/log"},
			[]string{"PersistentVolumeClaim"}, "PodDisruptionBudget", "tlog /srv/log"},
		{"a name in place of the chart's", []string{"nameOverride=terraform-registry-of-a-company-with-a-long-name-and-departments"}, nil, "NetworkPolicy", "ui"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			// Helm assumes an old version of Kubernetes if it is not built by its makefile.
			args := []string{"template", "registry", chart, "--kube-version", "1.30.0", "--set", "hostname=registry.example.com"}
			for _, value := range test.values {
				args = append(args, "--set", value)
			}
			rendered, err := run(args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, rendered)
			}
			// The type of a ServiceMonitor is not one of Kubernetes' own.
			var known [][]byte
			kinds := []string{}
			for document := range bytes.SplitSeq(rendered, []byte("\n---\n")) {
				switch {
				case bytes.Contains(document, []byte("kind: ServiceMonitor")):
					kinds = append(kinds, "ServiceMonitor")
				case bytes.Contains(document, []byte("\nkind: ")):
					known = append(known, document)
				}
			}
			objects := decodeManifest(t, bytes.Join(known, []byte("\n---\n")))
			caddyfile := ""
			for _, o := range objects {
				kinds = append(kinds, o.Kind)
				if o.Kind == "Service" && len(o.Metadata.Name) > 63 {
					t.Errorf("Kubernetes refuses the name %s", o.Metadata.Name)
				}
				if o.Kind == "ConfigMap" {
					caddyfile = o.Data["Caddyfile"]
				}
			}
			for _, kind := range append([]string{"ConfigMap", "Deployment", "Service", "ServiceAccount"}, test.kinds...) {
				if !slices.Contains(kinds, kind) {
					t.Errorf("there is no %s among %v", kind, kinds)
				}
			}
			if slices.Contains(kinds, test.lacks) {
				t.Errorf("there is a %s among %v", test.lacks, kinds)
			}
			if !strings.Contains(caddyfile, test.says) {
				t.Errorf("the Caddyfile does not say %q:\n%s", test.says, caddyfile)
			}
			validateRendered(t, caddyfile)
			if oneNode := strings.Contains(string(rendered), "ReadWriteOnce"); oneNode != strings.Contains(string(rendered), "type: Recreate") {
				t.Errorf("volumes of one node: %t, and the strategy is\n%s", oneNode, rendered)
			}
			prefix := "/v1"
			if match := regexp.MustCompile(`(?m)^\s*prefix (/\S+)$`).FindStringSubmatch(caddyfile); match != nil {
				prefix = match[1]
			}
			if !strings.Contains(string(rendered), "path: "+prefix+"/ready\n") {
				t.Errorf("no probe asks for %s/ready", prefix)
			}
		})
	}
}

// validateRendered has Caddy validate the Caddyfile of a pod, with folders of this machine.
func validateRendered(t *testing.T, caddyfile string) {
	t.Helper()
	binary, err := blobBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "tokens"), "")
	for _, name := range []string{"registry", "log"} {
		require(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	here := strings.NewReplacer("/srv/registry", filepath.Join(dir, "registry"), "/srv/log", filepath.Join(dir, "log"), "/storage", filepath.Join(dir, "storage"), "/etc/registry/tokens/tokens", filepath.Join(dir, "tokens"))
	writeFile(t, filepath.Join(dir, "Caddyfile"), here.Replace(caddyfile))
	cmd := exec.CommandContext(beforeDeadline(t), binary, "validate", "--config", filepath.Join(dir, "Caddyfile"))
	cmd.Env = []string{"HOME=" + dir, "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, caddyfile, out)
	}
}
