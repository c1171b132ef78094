package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Files of a release are sent to two instances over a bucket, in any order, and one of
// them publishes it: whole, to the clients of both.
func TestPublishToABucket(t *testing.T) {
	t.Parallel()
	s := newObjectStore(t)
	acme := publisher(t, "acme")
	s.Put(t, newTree(t).Keys("acme", acme))
	tokens := newTokens(t)
	token := tokens.New("ci")
	const public, private = "registry.example.com", "private.example.com"
	sites := []Site{
		onBucket(public, "rescan off", "publish", "auth terraform_tokens "+tokens.File, "access {", "allow ci manage acme", "allow anonymous read *", "}"),
		onBucket(private, append(privately(tokens), "rescan 10m")...), // an index of its own
	}
	one := startRegistryOnBucket(t, s, nil, sites...)
	one.Settle(t)
	two := startRegistryOnBucket(t, s, one, sites...)
	two.Settle(t)

	d := newDist(t, signedBy(acme))
	senders := []*Sender{one.sender(t, token), two.sender(t, token)}
	names := d.names()
	last := len(names) - 1
	for i, name := range names[:last] {
		senders[i%2].put(t, demoPath+name, d[name]).is(t, http.StatusAccepted, `"status":"staged"`)
		if one.lists(t, versionsOfDemo, "1.0.0") || two.lists(t, versionsOfDemo, "1.0.0") {
			t.Fatalf("after %s, the release is listed", name)
		}
	}
	docs := filepath.Join(t.TempDir(), "docs.zip")
	if err := writeZip(docs, "docs/index.md", strings.NewReader("# Demo\n")); err != nil {
		t.Fatal(err)
	}
	senders[0].put(t, demoPath+"docs.zip", readFile(t, docs)).is(t, http.StatusAccepted, `"status":"staged"`)

	t.Run("while the store is down, publishers are told to send again", func(t *testing.T) {
		s.Fail(http.StatusServiceUnavailable, "SlowDown")
		answer := senders[0].put(t, demoPath+names[last], d[names[last]])
		answer.is(t, http.StatusServiceUnavailable, "the registry's object store failed: send the file again")
		if strings.Contains(answer.Body, "SlowDown") {
			t.Errorf("the answer has details of the store: %s", answer.Body)
		}
		s.Fail(0, "")
	})
	s.Requests()
	senders[0].put(t, demoPath+names[last], d[names[last]]).is(t, http.StatusCreated, `"status":"published"`)
	t.Logf("the last file takes the requests %v", s.Requests())
	for _, name := range names {
		senders[1].put(t, demoPath+name, d[name]).is(t, http.StatusOK, `"status":"published"`)
	}
	senders[1].put(t, demoPath+names[0], d[names[0]]+"x").is(t, http.StatusConflict, "a version never changes")
	packed := filepath.Join(t.TempDir(), "1.0.0")
	asTarGz(t, packed, moduleFiles("acme/vpc/aws", "1.0.0"))
	module := readFile(t, packed+".tar.gz")
	senders[1].put(t, "modules/acme/vpc/aws/1.0.0.tar.gz", module).is(t, http.StatusCreated, `"status":"published"`)
	senders[0].put(t, "modules/acme/vpc/aws/1.0.0.tar.gz", module).is(t, http.StatusOK, "")
	senders[1].put(t, "modules/acme/vpc/aws/registry.hcl", `description = "A VPC"`).is(t, http.StatusCreated, "")

	for _, r := range []*Registry{one, two} {
		for _, host := range []string{public, private} {
			for _, path := range []string{"providers/acme/demo", "modules/acme/vpc/aws"} {
				eventually(t, host+" offers "+path, func() bool {
					return strings.Contains(r.GetAs(t, token, "https://"+host+"/v1/"+path+"/versions").Body, `"1.0.0"`)
				})
			}
		}
	}
	eachClient(t, func(t *testing.T, c Client) {
		for _, host := range []string{public, private} {
			ws := newWorkspace(t, two, greeting(host+"/acme/demo", "1.0.0"))
			ws.Write(t, "module.tf", "module \"vpc\" {\n  source  = \""+host+"/acme/vpc/aws\"\n  version = \"1.0.0\"\n}\n")
			ws.Setenv("TF_TOKEN_private_example_com", token)
			expect(t, c.Run(t, ws, "init"), acme.KeyID(t))
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
		}
	})

	t.Run("private packages need their link", func(t *testing.T) {
		link := two.Download(t, private, token).Package
		if got := two.Get(t, link); got.Status != http.StatusOK {
			t.Errorf("with its link: got %d", got.Status)
		}
		unsigned, _, _ := strings.Cut(link, "?")
		if got := two.Get(t, unsigned); got.Status != http.StatusNotFound && got.Status != http.StatusUnauthorized {
			t.Errorf("without: got %d", got.Status)
		}
	})
	t.Run("nothing is left staged, here or there", func(t *testing.T) {
		for _, name := range s.files(t) {
			if strings.Contains(name, ".staging") {
				t.Errorf("in the bucket there is %s", name)
			}
		}
		for _, r := range []*Registry{one, two} {
			if left, err := os.ReadDir(r.tmp()); err != nil || len(left) > 0 {
				t.Errorf("on the disk there is %v, %v", left, err)
			}
		}
	})
}

// Clients that can reach only the mirror get providers and modules of an origin through
// a bucket. The first client causes the download. Clients of another instance need no
// origin.
func TestPullThroughIntoABucket(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	const vpcOfOrigin = "origin.example.com/acme/vpc/aws"
	eachClient(t, func(t *testing.T, c Client) {
		outside := newOutside(t, newTree(t).Provider("acme/demo", "1.0.0", signedBy(acme)).Keys("acme", acme).Module("acme/vpc/aws", "1.0.0", asTarGz))
		s := newObjectStore(t)
		site := onBucket("mirror.example.com", "rescan off", "upstream origin.example.com {", "modules", "}")
		start := func(beside *Registry) *Registry {
			r := outside.newMirror(t)
			r.onBucket(t, s, beside)
			r.start(t, []Site{site})
			return r
		}
		one := start(nil)
		one.Settle(t)
		two := start(one)
		installs := func(r *Registry) {
			t.Helper()
			ws := newWorkspace(t, r, greeting(demoOfOrigin, "1.0.0"))
			ws.Write(t, "module.tf", "module \"vpc\" {\n  source  = \""+vpcOfOrigin+"\"\n  version = \"1.0.0\"\n}\n")
			ws.CLIConfig(t, standingIn("origin.example.com"))
			expect(t, c.Run(t, ws, "init"), acme.KeyID(t))
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
		}
		installs(one)
		want := []string{
			"keys/origin.example.com/acme.asc",
			"modules/origin.example.com/acme/vpc/aws/1.0.0.tar.gz",
			"providers/origin.example.com/acme/demo/" + zipOfDemo("1.0.0", thisPlatform),
			"providers/origin.example.com/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS",
			"providers/origin.example.com/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS.sig",
		}
		got := slices.DeleteFunc(s.files(t), isRecord)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the bucket has %v, want %v", got, want)
		}
		outside.Origin.Stop(t)
		eventually(t, "the other instance lists what was fetched", func() bool {
			return two.lists(t, "https://mirror.example.com/v1/registries/origin.example.com/modules/acme/vpc/aws/versions", "1.0.0") &&
				two.lists(t, mirrored("origin.example.com", "index.json"), "1.0.0")
		})
		installs(two)
	})
}
