package index_test

import (
	"context"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// options are those of a registry that signs what publishers did not.
func options(t testing.TB, open func() (index.Tree, error)) index.Options {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	return index.Options{
		Open:   open,
		Signer: key,
	}
}

// scan looks at a tree once.
func scan(t testing.TB, tree *indextest.Tree) *index.Snapshot {
	t.Helper()
	return scanWith(t, options(t, tree.Open))
}

func scanWith(t testing.TB, o index.Options) *index.Snapshot {
	t.Helper()
	s, err := index.Scan(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const zipName = "terraform-provider-demo_1.0.0_linux_amd64.zip"
