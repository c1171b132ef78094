package wire

import (
	"encoding/json"
	"time"
)

// The statuses of a Publication.
const (
	Published = "published" // offered to clients
	Staged    = "staged"    // more files are needed
)

// A Publication is the answer to a request that publishes a file, or that asks which
// files of a version are published or staged.
type Publication struct {
	Status  string `json:"status"`
	Address string `json:"address"`           // NAMESPACE/TYPE or NAMESPACE/NAME/SYSTEM
	Version string `json:"version,omitempty"` // empty for a registry.hcl

	// File is the name of the requested file in the tree, and SHA256 the digest of its
	// bytes, in hexadecimal.
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256,omitempty"`

	// Files lists published or staged files by name. The answer to a file has it only
	// if that file completed a release, and then lists all files of the release.
	Files []PublishedFile `json:"files,omitempty"`

	// Missing has the names of files without which the version is not published.
	Missing []string `json:"missing,omitempty"`

	// Expires is the time at which the staged files will be deleted.
	Expires *time.Time `json:"expires,omitempty"`

	// Notes describe problems that users of the version may have.
	Notes []string `json:"notes,omitempty"`

	// Message has further information in one sentence.
	Message string `json:"message,omitempty"`
}

// A PublishedFile is a file of a version that is published or staged.
type PublishedFile struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // in hexadecimal digits
	Size   int64  `json:"size"`   // in bytes
}

// Encode returns the JSON document. It ends with a line feed for the terminals of
// curl's users.
func (p Publication) Encode() []byte {
	document, _ := json.Marshal(p) // strings, numbers and times always encode
	return append(document, '\n')
}
