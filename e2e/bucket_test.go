package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Both clients work with a tree on an object store as with one on a disk.
func TestBucket(t *testing.T) {
	t.Parallel()
	s := newObjectStore(t)
	acme := publisher(t, "acme")
	s.Put(t, newTree(t).
		Keys("acme", acme).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Module("acme/vpc/aws", "1.0.0", asTarGz).
		Module("acme/vpc/aws", "2.0.0", asFolder))
	const host = "registry.example.com"
	r := startRegistryOnBucket(t, s, nil, onBucket(host, "rescan off"))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, r, greeting(host+"/acme/demo", "1.0.0"))
		ws.Write(t, "module.tf", `
module "packed" {
  source  = "`+host+`/acme/vpc/aws"
  version = "1.0.0"
}
module "folder" {
  source  = "`+host+`/acme/vpc/aws"
  version = "2.0.0"
}
`)
		c.Run(t, ws, "init")
		c.Run(t, ws, "apply", "-auto-approve")
	})

	t.Run("a scan of what is known lists, and reads nothing", func(t *testing.T) {
		s.Requests()
		r.Rescan(t)
		if asked := s.Requests(); asked["LIST"] != 3 || len(asked) != 1 { // providers, modules, keys
			t.Errorf("the store is asked %v", asked)
		}
	})
	zip := "https://" + host + "/v1/mirror/" + host + "/acme/demo/" + zipOfDemo("1.0.0", thisPlatform)
	for _, fault := range []struct {
		rule   string
		status int
		code   string
	}{
		{"a store that is down", http.StatusInternalServerError, "InternalError"},
		{"a store that has too much to do", http.StatusServiceUnavailable, "SlowDown"},
		{"a bucket that is not there", http.StatusNotFound, "NoSuchBucket"},
		{"credentials that have expired", http.StatusForbidden, "ExpiredToken"},
		{"credentials that may not list", http.StatusForbidden, "AccessDenied"},
	} {
		t.Run(fault.rule+" takes nothing away", func(t *testing.T) {
			s.Fail(fault.status, fault.code)
			from := len(r.Log.Entries())
			for range 2 {
				if got := r.Admin(t, http.MethodPost, "/terraform_registry/rescan"); got.Status != http.StatusServiceUnavailable {
					t.Errorf("a scan: got %d %s", got.Status, got.Body)
				}
			}
			failures := r.Log.Find(from, func(e Entry) bool { return strings.Contains(e.Line, fault.code) && e.Logger == "terraform_registry" })
			if len(failures) != 1 {
				t.Errorf("two scans log %d lines about it: %v", len(failures), failures)
			}
			if !r.lists(t, versionsOfDemo, "1.0.0") {
				t.Error("a version is not listed any more")
			}
			if got := r.Get(t, zip); got.Status != http.StatusServiceUnavailable {
				t.Errorf("a download: got %d", got.Status)
			}
			s.Fail(0, "")
			if got := r.Get(t, zip); got.Status != http.StatusOK {
				t.Errorf("a download afterwards: got %d %s", got.Status, got.Body)
			}
			r.Rescan(t)
		})
	}
	t.Run("a restart lists, and reads nothing", func(t *testing.T) {
		r.Restart(t, onBucket(host, "rescan off"))
		if read := r.firstScan(t).number("read"); read != 0 {
			t.Errorf("it reads %d archives", read)
		}
	})
}

// Instances that share a bucket and Caddy's storage see a change as soon as one of them
// is told of it, and no archive is read twice.
func TestInstancesOnABucket(t *testing.T) {
	t.Parallel()
	s := newObjectStore(t)
	s.Put(t, newTree(t).Provider("acme/demo", "1.0.0").Module("acme/vpc/aws", "1.0.0", asTarGz))
	const host = "registry.example.com"
	site := onBucket(host, "rescan off")
	one := startRegistryOnBucket(t, s, nil, site)
	one.Settle(t)
	two := startRegistryOnBucket(t, s, one, site)
	if read := two.firstScan(t).number("read"); read != 0 {
		t.Errorf("an instance with an empty disk reads %d archives that another one has read", read)
	}

	s.Put(t, newTree(t).Provider("acme/demo", "1.1.0"))
	one.Rescan(t) // as by the event of a store
	if !one.lists(t, versionsOfDemo, "1.1.0") {
		t.Fatal("the instance that was told does not list it")
	}
	told := time.Now()
	eventually(t, "the other instance lists it", func() bool { return two.lists(t, versionsOfDemo, "1.1.0") })
	t.Logf("the other instance lists it after %s", time.Since(told).Round(time.Millisecond))
	if read := two.archivesRead(t); read != 0 {
		t.Errorf("the other instance has read %g archives", read)
	}
}

// With redirect the store serves packages: clients follow, whichever requests they begin
// with, and the links of private files are checked before.
func TestRedirectToABucket(t *testing.T) {
	t.Parallel()
	s := newObjectStore(t)
	s.Put(t, newTree(t).Provider("acme/demo", "1.0.0").Module("acme/vpc/aws", "1.0.0", asTarGz))
	tokens := newTokens(t)
	ci := tokens.New("ci")
	const public, private = "registry.example.com", "private.example.com"
	r := startRegistryOnBucket(t, s, nil,
		onBucket(public, "redirect"),
		onBucket(private, append(privately(tokens), "redirect 1m", "rescan 10m")...)) // an index of its own

	eachClient(t, func(t *testing.T, c Client) {
		for _, host := range []string{public, private} {
			ws := newWorkspace(t, r, greeting(host+"/acme/demo", "1.0.0"))
			ws.Write(t, "module.tf", `
module "vpc" {
  source  = "`+host+`/acme/vpc/aws"
  version = "1.0.0"
}
`)
			ws.Setenv("TF_TOKEN_private_example_com", ci)
			ws.Setenv("NO_PROXY", "127.0.0.1")
			c.Run(t, ws, "init")
			c.Run(t, ws, "apply", "-auto-approve")
		}
	})

	link := r.Download(t, private, ci).Package
	unsigned, _, _ := strings.Cut(link, "?")
	if got := r.Get(t, unsigned); got.Status != http.StatusNotFound && got.Status != http.StatusUnauthorized {
		t.Errorf("a private package without its link: got %d", got.Status)
	}
	redirected := 0
	for _, e := range r.Log.Entries() {
		if e.access() && e.Status == http.StatusTemporaryRedirect {
			redirected++
		}
		if strings.Contains(e.Line, "X-Amz-Signature=") {
			t.Errorf("the log has a signature of the store: %s", e.Line)
		}
	}
	if redirected == 0 {
		t.Error("no client was redirected")
	}
}
