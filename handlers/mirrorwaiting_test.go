package handlers_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
)

// starting makes the mirror one that has just started without a memo. It cannot read zips with the text
// path in their path before a request waits for what is read.
func (p *pulling) starting(path string) {
	p.t.Helper()
	blocked := indextest.Gate{Fs: p.tree.Fs, Path: path, Opened: make(chan struct{})}
	open := sync.OnceFunc(func() { close(blocked.Opened) })
	o := optionsWith(p.t, p.tree, newKey(p.t))
	o.Open = indextest.On(p.t, blocked).Open
	x := index.New(o)
	x.Start()
	p.t.Cleanup(func() { x.Close() })
	p.t.Cleanup(open) // before the index is closed
	<-x.Ready()
	p.registry.Snapshot, p.registry.Changed = x.Snapshot, x.Refresh
	p.registry.Next = func(ctx context.Context, after *index.Snapshot, wanted ...index.Selection) *index.Snapshot {
		open()
		return x.Next(ctx, after, wanted...)
	}
}

// A package in the tree is listed while the tree is being read, whatever may be fetched.
func TestArchivesWaitForTheTree(t *testing.T) {
	origin, publisher := signedTree(t)
	const demo = originHost + "/acme/demo"
	p := pullThrough(t, origin, pull.Policy{Platforms: []address.Platform{{OS: "linux", Arch: "amd64"}}}, func(files *indextest.Tree) {
		files.Keys(originHost+"/acme", publisher)
		files.Provider(demo, "1.0.0", "linux_amd64").Signed(publisher)
	})
	platforms := func(version string) (list []string) {
		for platform := range p.hashes(originPath + "demo/" + version + ".json") {
			list = append(list, platform)
		}
		slices.Sort(list)
		return list
	}
	if got := platforms("1.1.0"); !slices.Equal(got, []string{"linux_amd64"}) {
		t.Fatalf("before the tree has it: %v", got)
	}
	p.tree.Provider(demo, "1.1.0", "darwin_arm64", "linux_amd64").Signed(publisher)
	p.starting("_darwin_")
	for range 2 { // also once it has been read
		if got := platforms("1.1.0"); !slices.Equal(got, []string{"darwin_arm64", "linux_amd64"}) {
			t.Errorf("the tree has further platforms: %v", got)
		}
	}
}
