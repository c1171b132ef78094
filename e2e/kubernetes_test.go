package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A manifestObject has the fields of an object in docs/kubernetes.yaml that the tests
// read.
type manifestObject struct {
	Kind string
	Data map[string]string // of a ConfigMap
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					ReadinessProbe, LivenessProbe struct{ HTTPGet struct{ Path, Port string } }
					Ports                         []struct{ Name string }
					VolumeMounts                  []struct{ Name, MountPath string }
				}
				Volumes []struct {
					Name                  string
					PersistentVolumeClaim struct{ ClaimName string }
				}
			}
		}
	}
	Metadata struct{ Name string }
}

// kubernetesManifest decodes docs/kubernetes.yaml.
func kubernetesManifest(t *testing.T) []manifestObject {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(repository(), "docs", "kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return decodeManifest(t, manifest)
}

// decodeManifest decodes objects by the types of Kubernetes, which knows every field in
// them.
func decodeManifest(t *testing.T, manifest []byte) []manifestObject {
	t.Helper()
	var refusal bytes.Buffer
	decode := exec.CommandContext(beforeDeadline(t), "go", "run", ".")
	decode.Dir, decode.Stdin, decode.Stderr = "kubernetes", bytes.NewReader(manifest), &refusal
	decoded, err := decode.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &refusal)
	}
	var objects []manifestObject
	for line := range bytes.Lines(decoded) {
		var o manifestObject
		if err := json.Unmarshal(line, &o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

// Kubernetes accepts the manifest. Caddy runs its Caddyfile, with a tree and a storage
// that are volumes of the pod, and answers its probes.
func TestKubernetesManifest(t *testing.T) {
	t.Parallel()
	objects := kubernetesManifest(t)
	find := func(kind string) manifestObject {
		i := slices.IndexFunc(objects, func(o manifestObject) bool { return o.Kind == kind })
		if i < 0 {
			t.Fatalf("there is no %s", kind)
		}
		return objects[i]
	}
	caddyfile, pod := find("ConfigMap").Data["Caddyfile"], find("Deployment").Spec.Template.Spec
	container := pod.Containers[0]

	volumes := make(map[string]bool)
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		claim := v.PersistentVolumeClaim.ClaimName
		if claim != "" && !slices.ContainsFunc(objects, func(o manifestObject) bool { return o.Kind == "PersistentVolumeClaim" && o.Metadata.Name == claim }) {
			t.Errorf("there is no claim %s", claim)
		}
	}
	mounted := make(map[string]bool)
	for _, m := range container.VolumeMounts {
		mounted[m.MountPath] = true
		if !volumes[m.Name] {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
	for _, dir := range []string{"/storage", "/srv/registry", "/etc/caddy-terraform-registry", "/data", "/config", "/tmp"} {
		if !mounted[dir] {
			t.Errorf("no volume is mounted at %s", dir)
		}
	}

	files := newTree(t).Provider("acme/demo", "1.0.0", platforms("plan9_386"))
	storage := t.TempDir()
	here := substitute(t, caddyfile, "/srv/registry", files.Dir, "/storage", storage)
	validateCaddyfile(t, here)

	_, site, found := strings.Cut(here, "\n}\n\n")
	if !found {
		t.Fatalf("the Caddyfile has no global options before its site:\n%s", here)
	}
	r := startRegistry(t, documentedSite(t, substitute(t, site, ":8080", "registry.example.com")))
	for probe, get := range map[string]struct{ Path, Port string }{
		"readiness": container.ReadinessProbe.HTTPGet, "liveness": container.LivenessProbe.HTTPGet,
	} {
		if answer := r.Get(t, "https://registry.example.com"+get.Path); answer.Status != 200 {
			t.Errorf("%s: %s is answered with %d", probe, get.Path, answer.Status)
		}
		if get.Port != container.Ports[0].Name {
			t.Errorf("%s: there is no port %s", probe, get.Port)
		}
	}
}
