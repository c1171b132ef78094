package publish_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// The paths of the staged files of acme/demo 1.0.0.
const (
	stageOfDemo     = "providers/" + tree.StagingName + "/acme@demo@1.0.0/"
	stagedRelease   = stageOfDemo + "release/acme/demo/1.0.0/"
	stagedUndecided = stageOfDemo + "undecided/"
)

// Every namespace can be staged, even one with the name of a folder in a stage.
func TestNamespacesNamedAsFoldersOfAStage(t *testing.T) {
	eachTree(t, testNamespacesNamedAsFoldersOfAStage)
}

func testNamespacesNamedAsFoldersOfAStage(t *testing.T, on treeKind) {
	d := newDist(t, "")
	docs := indextest.Zip("docs/index.md", "# Demo")
	for _, namespace := range []string{"docs", "undecided", "release"} {
		t.Run(namespace, func(t *testing.T) {
			r := on.newRegistry(t)
			a := address.Address{Namespace: namespace, Name: "demo"}
			var last publish.Result
			for _, name := range append([]string{"docs.zip"}, linuxZip, sums, manifest, darwinZip) {
				f, err := publish.ParseReleaseFile(a, "1.0.0", name)
				if err != nil {
					t.Fatal(err)
				}
				content := d[name]
				if name == "docs.zip" {
					content = docs
				}
				if last, err = r.Put(t.Context(), f, upload(content)); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if last.Outcome != publish.Added {
				t.Errorf("the last file has the outcome %+v", last)
			}
			folder := "providers/" + namespace + "/demo/1.0.0"
			r.holds(append(filesIn(folder, d.names()...), folder+"/docs/index.md")...)
			r.isClean()
		})
	}
}

// After a crash in the middle of a decision, or on a disk that loses files, no file
// counts as another one.
func TestStagesThatAreDamaged(t *testing.T) { eachTree(t, testStagesThatAreDamaged) }

func testStagesThatAreDamaged(t *testing.T, on treeKind) {
	author, stranger := indextest.NewPublisher(t), indextest.NewPublisher(t)
	d := newDist(t, "").signed(author)
	undecided := func(name, content string) string {
		return fmt.Sprintf("%s%s@%x", stagedUndecided, name, sha256.Sum256([]byte(content)))
	}
	t.Run("builds that SHA256SUMS has dropped", func(t *testing.T) {
		r := on.newRegistry(t)
		r.Keys("acme", author)
		for _, name := range []string{sums, manifest, linuxZip} {
			r.Write(stagedRelease+name, d[name])
		}
		wrong, other := stranger.Sign(d[sums]), newDist(t, "other")[linuxZip]
		r.Write(undecided(signature, wrong), wrong)
		r.Write(undecided(darwinZip, other), other)
		state, err := r.State(t.Context(), demo, "1.0.0")
		if err != nil || !slices.Equal(state.Missing, []string{signature, darwinZip}) || len(state.Files) != 3 {
			t.Errorf("the state is %+v, %v", state, err)
		}
		f := releaseFile(t, "1.0.0", darwinZip)
		announced := upload(other)
		announced.SHA256 = sha256.Sum256([]byte(other))
		_, err = r.Put(t.Context(), f, announced)
		saying(t, err, publish.ErrRefused, "the SHA256SUMS that is staged lists")
		r.putAll(d, darwinZip, signature)
		r.offers(d)
	})
	t.Run("a SHA256SUMS that cannot be read", func(t *testing.T) {
		d := newDist(t, "")
		r := on.newRegistry(t)
		r.Write(stagedRelease+sums, "\x00\x00\x00")
		r.Write(stagedRelease+linuxZip, d[linuxZip])
		result := r.mustPut(manifest, d[manifest], publish.Waiting)
		if !slices.Equal(result.Missing, []string{sums}) {
			t.Errorf("missing are %v", result.Missing)
		}
		r.putAll(d, sums, darwinZip)
		r.offers(d)
	})
}

// A checked package is known by its file: if other bytes take its place, they are read.
func TestStagedPackagesThatAreExchanged(t *testing.T) {
	eachTree(t, testStagedPackagesThatAreExchanged)
}

func testStagedPackagesThatAreExchanged(t *testing.T, on treeKind) {
	d, other := newDist(t, "one"), newDist(t, "two")
	if len(d[linuxZip]) != len(other[linuxZip]) {
		t.Fatal("the builds have different sizes, and are told apart by that")
	}
	r := on.newRegistry(t)
	for _, name := range []string{sums, manifest, linuxZip} {
		r.mustPut(name, d[name], publish.Waiting)
	}
	r.Write(stagedRelease+linuxZip, other[linuxZip])
	_, err := r.put(darwinZip, d[darwinZip])
	saying(t, err, publish.ErrRefused, linuxZip)
	if r.index.Snapshot().Provider(index.PlaceOf(demo)).Release("1.0.0") != nil {
		t.Error("the release is offered")
	}
	state, err := r.State(t.Context(), demo, "1.0.0")
	if err != nil || !strings.Contains(strings.Join(state.Missing, " "), linuxZip) {
		t.Errorf("the state is %+v, %v", state, err)
	}
	r.mustPut(linuxZip, d[linuxZip], publish.Added)
	r.offers(d)
}
