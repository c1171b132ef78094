package handlers_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// A moduleDetail has the fields of a module's version that editors and tools read.
type moduleDetail struct {
	ID          string       `json:"id"`
	Version     string       `json:"version"`
	Source      string       `json:"source"`
	PublishedAt time.Time    `json:"published_at"`
	Root        modulePart   `json:"root"`
	Submodules  []modulePart `json:"submodules"`
	Examples    []modulePart `json:"examples"`
	Providers   []string     `json:"providers"`
	Versions    []string     `json:"versions"`
	Deprecation *struct {
		Reason string `json:"reason"`
		Link   string `json:"link"`
	} `json:"deprecation"`
}

type modulePart struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	Readme string `json:"readme"`
	Inputs []struct {
		Name        string `json:"name"`
		Type        string `json:"type"`
		Description string `json:"description"`
		Default     string `json:"default"`
		Required    bool   `json:"required"`
	} `json:"inputs"`
	Outputs []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"outputs"`
}

func TestModuleDetail(t *testing.T) {
	s := serve(t, registry(scan(t, catalogTree(t))))
	s.rule("it has the fields of the public registry", func(t *testing.T, s *site) {
		const want = `{"id":"acme/vpc/aws/1.10.0","owner":"platform team","namespace":"acme","name":"vpc","version":"1.10.0","provider":"aws",` +
			`"description":"A network with subnets in every zone.","source":"https://github.com/acme/terraform-aws-vpc",` +
			`"published_at":"2026-01-02T03:04:05Z","downloads":0,"verified":true,` +
			`"root":{"path":"","name":"vpc","readme":"# VPC\n\nA network with subnets in every zone.\n\n## Usage\n\nSet the cidr and peer with others.\n","empty":false,` +
			`"inputs":[{"name":"cidr","type":"string","description":"Addresses of the network.","default":"","required":true},` +
			`{"name":"zones","type":"list(string)","description":"","default":"[\"a\",\"b\"]","required":false},` +
			`{"name":"name","type":"string","description":"","default":"\"main\"","required":false},` +
			`{"name":"flow_logs","type":"","description":"","default":"null","required":false}],` +
			`"outputs":[{"name":"id","description":"Of the network."}],` +
			`"dependencies":[{"name":"dns","source":"registry.example.com/acme/dns/aws","version":"1.0.0"}],` +
			`"provider_dependencies":[{"name":"aws","namespace":"hashicorp","source":"hashicorp/aws","version":"\u003e= 5.0"},` +
			`{"name":"demo","namespace":"acme","source":"registry.example.com/acme/demo","version":"~\u003e 1.0"}],` +
			`"resources":[{"name":"main","type":"aws_vpc"}]},` +
			`"submodules":[{"path":"modules/peering","name":"peering","readme":"# Peering\n\nConnects two networks of one account.\n","empty":false,` +
			`"inputs":[{"name":"other_account","type":"","description":"","default":"","required":true}],` +
			`"outputs":[],"dependencies":[],"provider_dependencies":[],"resources":[]}],` +
			`"examples":[{"path":"examples/complete","name":"complete","readme":"","empty":false,"inputs":[],"outputs":[],` +
			`"dependencies":[{"name":"vpc","source":"../..","version":""}],"provider_dependencies":[],"resources":[]}],` +
			`"providers":["aws","google"],"versions":["1.9.0","1.10.0","2.0.0-rc.1"],"deprecation":null}`
		for _, path := range []string{"/v1/modules/acme/vpc/aws", "/v1/modules/acme/vpc/aws/1.10.0", "/v1/modules/Acme/VPC/aws/1.10.0"} {
			if a := s.get(path); a.body != want {
				t.Errorf("%s: got %s\nwant %s", path, a.body, want)
			}
		}
	})
	s.rule("a version that is deprecated says so", func(t *testing.T, s *site) {
		var d moduleDetail
		s.json("/v1/modules/acme/vpc/aws/1.9.0", &d)
		if d.Deprecation == nil || d.Deprecation.Reason != "subnets overlap" || d.Deprecation.Link != "https://example.com/1.10" {
			t.Errorf("got %+v", d.Deprecation)
		}
	})
	s.rule("a version that is withdrawn is gone, with the reason", func(t *testing.T, s *site) {
		a := s.get("/v1/modules/acme/vpc/aws/1.8.0")
		mustRefuse(t, a, http.StatusGone)
		if !strings.Contains(a.body, "CVE-2026-1") {
			t.Errorf("got %s", a.body)
		}
	})
	s.rule("a module with nothing in it is empty", func(t *testing.T, s *site) {
		a := s.get("/v1/modules/acme/vpc/google")
		if want := `"root":{"path":"","name":"vpc","readme":"","empty":true,"inputs":[],"outputs":[],"dependencies":[],"provider_dependencies":[],"resources":[]},"submodules":[],"examples":[],`; !strings.Contains(a.body, want) {
			t.Errorf("got %s", a.body)
		}
	})
	for _, path := range []string{"acme/nothing/aws", "acme/vpc/azurerm", "acme/vpc/aws/9.9.9", "acme/vpc/aws/latest", "acme/vpc/aws/1.10", "a.b/vpc/aws", "acme/vpc/versions", "acme/vpc/download", "search/vpc/aws"} {
		s.rule("what does not exist is 404: "+path, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/modules/"+path), http.StatusNotFound)
		})
	}
}

// Editors ask for the versions, then for the detail of the version in use, and read
// these fields of it. They take a required input for an optional one if the module was
// published before 2022-08-20, when the public registry did not know better.
func TestModuleDetailForEditors(t *testing.T) {
	s := serve(t, registry(scan(t, catalogTree(t))))
	if got := s.moduleVersions("acme/vpc/aws"); !slices.Contains(got, "1.10.0") {
		t.Fatalf("got %v", got)
	}
	var d moduleDetail
	s.json("/v1/modules/acme/vpc/aws/1.10.0", &d)
	if reliable := time.Date(2022, 8, 20, 0, 0, 0, 0, time.UTC); d.Version != "1.10.0" || !d.PublishedAt.After(reliable) {
		t.Errorf("it is version %s of %v", d.Version, d.PublishedAt)
	}
	for _, i := range d.Root.Inputs {
		var value any
		if i.Required != (i.Default == "") {
			t.Errorf("%s: required is %v, and the default %q", i.Name, i.Required, i.Default)
		}
		if i.Default != "" && json.Unmarshal([]byte(i.Default), &value) != nil {
			t.Errorf("%s: the default %s is not JSON", i.Name, i.Default)
		}
	}
	if len(d.Root.Inputs) != 4 || len(d.Root.Outputs) != 1 || len(d.Submodules) != 1 || d.Submodules[0].Path != "modules/peering" || len(d.Submodules[0].Inputs) != 1 {
		t.Errorf("got %+v", d)
	}
}

// Renovate finds the changelog of a private module by the source in its versions. For
// an HCP Terraform registry it uses the source in the detail, which must be a URL.
func TestModuleSourceForRenovate(t *testing.T) {
	s := serve(t, registry(scan(t, catalogTree(t))))
	var versions struct {
		Modules []struct {
			Source   string
			Versions []struct{ Version string }
		}
	}
	s.json("/v1/modules/acme/vpc/aws/versions", &versions)
	var d moduleDetail
	s.json("/v1/modules/acme/vpc/aws", &d)
	const source = "https://github.com/acme/terraform-aws-vpc"
	if versions.Modules[0].Source != source || d.Source != source {
		t.Errorf("the source is %q, and in the detail %q", versions.Modules[0].Source, d.Source)
	}
	if !slices.Contains(d.Versions, d.Version) || d.PublishedAt.IsZero() {
		t.Errorf("version %q of %v is of %v", d.Version, d.Versions, d.PublishedAt)
	}
}

// Some file systems have no times. Editors still need a date.
func TestPublishedAtWithoutTimes(t *testing.T) {
	files := catalogTree(t)
	for _, never := range []time.Time{time.Unix(0, 0), time.Unix(1, 0), {}} {
		if err := files.Fs.Chtimes("modules/acme/vpc/google/1.0.0/main.tf", never, never); err != nil {
			t.Fatal(err)
		}
		var d moduleDetail
		snapshot := scan(t, files)
		serve(t, registry(snapshot)).json("/v1/modules/acme/vpc/google", &d)
		if want := snapshot.Taken.UTC().Truncate(24 * time.Hour); !d.PublishedAt.Equal(want) {
			t.Errorf("with files of %v: got %v, want the day of the scan", never, d.PublishedAt)
		}
	}
}

// A package that has changed since it was verified is not described. The next snapshot
// describes its new content.
func TestModuleDetailOfChangedPackage(t *testing.T) {
	files := catalogTree(t)
	changed := 0
	g := registry(scan(t, files))
	g.Changed = func(...string) { changed++ }
	files.Write("modules/acme/vpc/aws/1.10.0.tar.gz", indextest.TarGz("main.tf", `variable "other" {}`))
	mustRefuse(t, serve(t, g).get("/v1/modules/acme/vpc/aws/1.10.0"), http.StatusServiceUnavailable)
	if changed != 1 {
		t.Errorf("a scan follows %d times", changed)
	}
	next := scan(t, files)
	later := &handlers.Registry{Snapshot: func() *index.Snapshot { return next }}
	var d moduleDetail
	serve(t, later).json("/v1/modules/acme/vpc/aws/1.10.0", &d)
	if len(d.Root.Inputs) != 1 || d.Root.Inputs[0].Name != "other" {
		t.Errorf("got %+v", d.Root)
	}
}
