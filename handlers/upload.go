package handlers

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An Upload is a file that was sent to be published, with the outcome.
type Upload struct {
	Kind    publish.Kind
	File    string // the name of the file in the tree
	Outcome UploadOutcome

	// Subject is the ID of the sender, or empty if the sender is anonymous or unknown.
	Subject string

	// Files are the names of the files that have been published with it, for
	// UploadPublished.
	Files []string

	// Notices are the notices that a registry.hcl has changed, for UploadPublished.
	Notices publish.NoticeChanges

	// Reason is the message for the sender, for every outcome that is an error.
	Reason string
}

// An UploadOutcome is the outcome of an Upload. There are few, so that metrics can have
// them as a label.
type UploadOutcome uint8

// The outcomes of uploads.
const (
	UploadPublished   UploadOutcome = iota
	UploadStaged                    // more files are needed
	UploadUnchanged                 // the same bytes were there
	UploadConflict                  // other bytes are there, or a registry.hcl other than the expected one
	UploadRefused                   // it cannot be published as it is
	UploadDenied                    // by the rules, or for lack of valid credentials
	UploadTooLarge                  // larger than files may be
	UploadDiskFull                  // there is no room for it
	UploadInterrupted               // the client stopped sending
	UploadUnavailable               // nothing can be published at the moment
	UploadFailed                    // the registry failed

	// UploadOutcomes is the number of outcomes.
	UploadOutcomes
)

var uploadOutcomeNames = [UploadOutcomes]string{
	"published", "staged", "unchanged", "conflict", "refused", "denied", "too_large", "disk_full",
	"interrupted", "unavailable", "failed",
}

// String returns the name of the outcome in metrics and logs.
func (o UploadOutcome) String() string { return uploadOutcomeNames[o] }

// outcomeOf returns the outcome for the result of the Publisher or of a check before
// it.
func outcomeOf(result publish.Result, err error) UploadOutcome {
	if err == nil {
		switch result.Outcome {
		case publish.Added:
			return UploadPublished
		case publish.Waiting:
			return UploadStaged
		}
		return UploadUnchanged
	}
	if errors.Is(err, publish.ErrInterrupted) {
		return UploadInterrupted
	}
	switch status, _ := Status(publishFailed(err)); status {
	case http.StatusConflict, http.StatusPreconditionFailed:
		return UploadConflict
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusPreconditionRequired:
		return UploadRefused
	case http.StatusUnauthorized, http.StatusForbidden:
		return UploadDenied
	case http.StatusRequestEntityTooLarge:
		return UploadTooLarge
	case http.StatusInsufficientStorage:
		return UploadDiskFull
	case http.StatusServiceUnavailable:
		return UploadUnavailable
	}
	return UploadFailed
}

// Header fields of Artifactory's clients, such as GoReleaser.
const (
	checksumPrefix = "X-Checksum"
	checksumSHA256 = "X-Checksum-Sha256"
	checksumDeploy = "X-Checksum-Deploy"
)

// allowSecrets is the header field by which a publisher permits something that looks
// like a secret, such as the key of a test.
const allowSecrets = "X-Allow-Secrets"

// fromArtifactoryClient reports whether the client takes the registry for Artifactory,
// whose errors have another form.
func (r *request) fromArtifactoryClient() bool {
	for name := range r.Header {
		if strings.HasPrefix(name, checksumPrefix) {
			return true
		}
	}
	return false
}

// readUpload reads the header's description of the file, without a body.
func readUpload(r *http.Request) (publish.Upload, error) {
	u := publish.Upload{Size: r.ContentLength, Bodiless: strings.EqualFold(r.Header.Get(checksumDeploy), "true")}
	if r.Header.Get("Content-Range") != "" {
		return u, fail(http.StatusBadRequest, "a file cannot be sent in parts: leave out Content-Range")
	}
	for _, value := range r.Header.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(value), "identity") {
			return u, fail(http.StatusUnprocessableEntity, "a file is published as it is: leave out Content-Encoding")
		}
	}
	u.AllowSecrets, _ = strconv.ParseBool(r.Header.Get(allowSecrets)) // any other value is false
	var err error
	if u.SHA256, err = announcedSHA256(r.Header); err != nil {
		return u, fail(http.StatusBadRequest, "%v", err)
	}
	if u.Bodiless && u.SHA256 == (wire.SHA256{}) {
		return u, publish.ErrNothing // no file can be found by another checksum
	}
	return u, nil
}

// announcedSHA256 returns the SHA-256 in the header, or zero if there is none. It
// ignores other algorithms.
func announcedSHA256(h http.Header) (announced wire.SHA256, err error) {
	add := func(field string, sum wire.SHA256, err error) error {
		switch {
		case err != nil:
			return errors.New(field + " has a malformed SHA-256")
		case announced != (wire.SHA256{}) && announced != sum:
			return errors.New("the header announces two different SHA-256 digests")
		}
		announced = sum
		return nil
	}
	for _, value := range h.Values(checksumSHA256) {
		sum, err := wire.ParseSHA256(strings.TrimSpace(value))
		if err := add(checksumSHA256, sum, err); err != nil {
			return announced, err
		}
	}
	// RFC 3230 has a bare value, RFC 9530 a byte sequence between colons. The lists can
	// have only digests beside sha-256, and no digest contains a comma.
	for _, field := range [...]string{"Digest", "Content-Digest", "Repr-Digest"} {
		mark := ":"
		if field == "Digest" {
			mark = ""
		}
		for member := range strings.SplitSeq(strings.Join(h.Values(field), ","), ",") {
			algorithm, value, _ := strings.Cut(strings.TrimSpace(member), "=")
			if !strings.EqualFold(algorithm, "sha-256") {
				continue
			}
			sum, err := decodeDigest(value, mark)
			if err := add(field, sum, err); err != nil {
				return announced, err
			}
		}
	}
	return announced, nil
}

var errDigestForm = errors.New("it is not the form of a digest")

// decodeDigest reads a digest in base64 with mark before and after it.
func decodeDigest(value, mark string) (sum wire.SHA256, err error) {
	inner, begins := strings.CutPrefix(value, mark)
	inner, ends := strings.CutSuffix(inner, mark)
	digest, err := base64.StdEncoding.DecodeString(inner)
	if !begins || !ends || err != nil || len(digest) != len(sum) {
		return sum, errDigestForm
	}
	return wire.SHA256(digest), nil
}
