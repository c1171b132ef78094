package index

import (
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A digest is what the memo keeps of a file.
type digest struct {
	archive.Digest
	stamp   tree.Stamp
	earlier *earlierBytes // of a package that is not what it was when it was first offered
}

// earlierBytes identify the bytes that a file had when it was first offered.
type earlierBytes struct {
	sha256  wire.SHA256
	h1      string
	noticed int64 // when they were found to be others, in nanoseconds; zero: not yet
}
