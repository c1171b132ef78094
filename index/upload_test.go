package index_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

const (
	stagedDemo    = "providers/.staging/demo/"
	versionOfDemo = "providers/acme/demo/1.0.0/"
	sumsOfDemo    = "terraform-provider-demo_1.0.0_SHA256SUMS"
)

// stagedRelease returns a bucket with a signed release that is not in its place yet.
func stagedRelease(t *testing.T) (*treetest.Bucket, tree.Part) {
	t.Helper()
	b := new(treetest.Bucket)
	publisher := indextest.NewPublisher(t)
	files := indextest.InBucket(t, b)
	files.ProviderIn(strings.TrimSuffix(stagedDemo, "/"), "demo", "1.0.0", "linux_amd64", "darwin_arm64", "windows_386").Manifest("6.0").Signed(publisher)
	files.Write(stagedDemo+"docs/index.md", "# Demo")
	files.Keys("acme", publisher)
	return b, providersIn(t, b)
}

func providersIn(t *testing.T, b *treetest.Bucket) tree.Part {
	t.Helper()
	files, err := source.Directories{Root: "."}.OpenIn(b)
	if err != nil {
		t.Fatal(err)
	}
	return files.Providers
}

// states returns the contents of a bucket before and after each change that a function
// makes.
func states(t *testing.T, b *treetest.Bucket, change func() error) (all []map[string]string) {
	t.Helper()
	var mutex sync.Mutex // several files are written at once
	note := func(string, string) error {
		mutex.Lock()
		defer mutex.Unlock()
		all = append(all, b.Contents())
		return nil
	}
	note("", "")
	b.Lose = note
	if err := change(); err != nil {
		t.Fatal(err)
	}
	b.Lose = nil
	return all
}

// offeredIn returns the offers of acme/demo 1.0.0 in a bucket with these files, in short.
func offeredIn(t *testing.T, o index.Options, files map[string]string) string {
	t.Helper()
	b := new(treetest.Bucket)
	for name, content := range files {
		b.Put(name, content, time.Now().Add(-time.Hour))
	}
	o.Listed = source.Directories{Root: "."}.Listed(b)
	s, err := index.Scan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Report().Withheld) > 0 {
		return fmt.Sprint("withheld: ", s.Report().Withheld)
	}
	r := s.Provider(index.PlaceOf(ownDemo)).Release("1.0.0")
	if r == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d packages signed by the %s", len(r.Packages), r.Signature)
}

// A bucket is listed in order, some names at one time and the others later. Whatever happens
// in between, the index sees the whole release or nothing of it.
func TestAnUploadIsSeenWholeOrNotAtAll(t *testing.T) {
	b, part := stagedRelease(t)
	all := states(t, b, func() error {
		_, err := part.InstallFolder(t.Context(), ".staging/demo", "acme/demo/1.0.0", sumsOfDemo)
		return err
	})
	last := all[len(all)-1]
	o := options(t, nil)
	whole := offeredIn(t, o, last)
	if !strings.HasPrefix(whole, "3 packages signed by the publisher") {
		t.Fatalf("in the end it offers %s", whole)
	}
	views := make(map[string]int)
	for i, before := range all {
		for _, after := range all[i:] {
			for _, split := range slices.Sorted(maps.Keys(last)) {
				if !strings.HasPrefix(split, versionOfDemo) {
					continue
				}
				view := make(map[string]string)
				for name, content := range before {
					if name <= split {
						view[name] = content
					}
				}
				for name, content := range after {
					if name > split {
						view[name] = content
					}
				}
				seen := offeredIn(t, o, view)
				views[seen]++
				if seen != whole && seen != "nothing" {
					t.Errorf("with %s, it offers %s", strings.Join(slices.Sorted(maps.Keys(view)), " "), seen)
				}
			}
		}
	}
	if len(views) != 2 {
		t.Errorf("the views are %v", views)
	}
}

// A release that is being removed from a bucket is offered until its last file is gone.
func TestARemovedFolderIsSeenWholeOrNotAtAll(t *testing.T) {
	for _, uploaded := range []bool{true, false} {
		b, part := stagedRelease(t)
		if _, err := part.InstallFolder(t.Context(), ".staging/demo", "acme/demo/1.0.0", sumsOfDemo); err != nil {
			t.Fatal(err)
		}
		files := indextest.InBucket(t, b)
		if !uploaded { // but copied there by hand
			files.Remove(versionOfDemo + tree.UploadName)
		}
		all := states(t, b, func() error { return part.RemoveFolder(t.Context(), "acme/demo/1.0.0", sumsOfDemo) })
		o := options(t, nil)
		whole := offeredIn(t, o, all[0])
		for _, state := range all {
			if seen := offeredIn(t, o, state); seen != whole && seen != "nothing" {
				t.Errorf("with %s, it offers %s", strings.Join(slices.Sorted(maps.Keys(state)), " "), seen)
			}
		}
		for _, name := range b.Names() {
			if strings.HasPrefix(name, versionOfDemo) {
				t.Errorf("there is still %s", name)
			}
		}
	}
}

// A report says why an incomplete upload is not offered, and has no problem with a complete
// one.
func TestIncompleteUploadsAreIgnored(t *testing.T) {
	for _, test := range []struct {
		rule    string
		remove  string
		offered bool
	}{
		{"a complete upload", "", true},
		{"an upload without its SHA256SUMS", sumsOfDemo, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			files.ProviderIn(strings.TrimSuffix(versionOfDemo, "/"), "demo", "1.0.0", "linux_amd64").Checksums()
			files.Write(versionOfDemo+tree.UploadName, "{}")
			if test.remove != "" {
				files.Remove(versionOfDemo + test.remove)
			}
			s := scan(t, files)
			offered := s.Provider(index.PlaceOf(ownDemo)).Release("1.0.0") != nil
			if offered != test.offered || len(s.Report().Withheld) > 0 || len(s.Report().Ignored) > 0 == test.offered {
				t.Errorf("offered: %t, %+v", offered, s.Report())
			}
			if !test.offered && !strings.Contains(s.Report().Ignored[0].Detail, "it is being uploaded") {
				t.Errorf("the report says %+v", s.Report().Ignored)
			}
		})
	}
}
