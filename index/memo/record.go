package memo

import (
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Record has the results of reading a file.
type Record struct {
	archive.Digest
	Stamp   tree.Stamp
	Earlier *EarlierBytes // of a package whose bytes have changed since it was first offered
}

// EarlierBytes identify the bytes that a file had when it was first offered.
type EarlierBytes struct {
	SHA256  wire.SHA256
	H1      string
	Noticed int64 // when their change was noticed, in nanoseconds; zero: not yet
}
