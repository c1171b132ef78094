package wire

import (
	"encoding/json"
	"time"
)

// The statuses of a Publication.
const (
	Published = "published" // clients are offered it
	Staged    = "staged"    // more files are needed
)

// A Publication is the answer to a request that publishes a file, and to one for
// what has been published or staged of a version.
type Publication struct {
	Status  string `json:"status"`
	Address string `json:"address"`           // NAMESPACE/TYPE or NAMESPACE/NAME/SYSTEM
	Version string `json:"version,omitempty"` // empty for a registry.hcl

	// File is the one of the request, as it is named in the tree, and SHA256 that of
	// its bytes, in hexadecimal digits.
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256,omitempty"`

	// Files are those that are published or staged, by name. The answer to a file has them
	// only if it has completed a release, with which they have been published.
	Files []PublishedFile `json:"files,omitempty"`

	// Missing are the names of files without which the version is not published.
	Missing []string `json:"missing,omitempty"`

	// Expires is when what is staged will be dropped.
	Expires *time.Time `json:"expires,omitempty"`

	// Notes are what users of the version may have trouble with.
	Notes []string `json:"notes,omitempty"`

	// Message is what else is to be said, in one sentence.
	Message string `json:"message,omitempty"`
}

// A PublishedFile is a file of a version that is published or staged.
type PublishedFile struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // in hexadecimal digits
	Size   int64  `json:"size"`   // in bytes
}

// Encode returns the JSON document. It ends its line, since curl and the like print it.
func (p Publication) Encode() []byte {
	document, _ := json.Marshal(p) // strings, numbers and times always encode
	return append(document, '\n')
}
