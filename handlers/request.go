package handlers

import (
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A Kind is the kind of a request. There are few, so that metrics can have them as a
// label.
type Kind int

// The kinds of requests.
const (
	KindOther Kind = iota // a path that belongs to the registry, but leads nowhere
	KindDiscovery
	KindProviderVersions
	KindProviderDownload
	KindModuleVersions
	KindModuleDownload
	KindModuleArchive
	KindMirrorIndex
	KindMirrorArchives
	KindProviderFile
	KindModuleList
	KindModuleSearch
	KindModuleDetail
	KindProviderList
	KindProviderSearch
	KindProviderDetail
	KindPage     // for people, see package pages
	KindPublish  // a file to be published
	KindStaging  // the published or staged files of a version
	KindReady    // a probe
	KindMetadata // a GET of a registry.hcl
	KindTlog     // a file of the transparency log
	KindTlogLookup
	KindRefresh // a webhook of a code host
	KindUsage

	// Kinds is the number of kinds.
	Kinds
)

var kindNames = [Kinds]string{
	"other", "discovery", "provider_versions", "provider_download", "module_versions",
	"module_download", "module_archive", "mirror_index", "mirror_archives", "provider_file",
	"module_list", "module_search", "module_detail", "provider_list", "provider_search", "provider_detail",
	"page", "publish", "staging", "ready", "metadata", "tlog", "tlog_lookup", "refresh", "usage",
}

// String returns the name of the kind in metrics and logs.
func (k Kind) String() string { return kindNames[k] }

// An Exchange describes a request and its answer.
type Exchange struct {
	Kind Kind

	// Version and Platform, OS_ARCH, are the requested ones, or empty if they do not
	// exist. For an Upload they are the ones to be published.
	Version, Platform string

	// Status is the status of the answer. Bytes is the announced length of its body: a
	// client may have left before the last byte. For a package that was not verified
	// yet when its answer began, it counts the bytes that were sent.
	Status int
	Bytes  int64

	// Upload is the file to be published, or nil for any other request.
	Upload *Upload

	address *address.Address
}

// NewPageExchange describes a request for a page and its answer. The address and the
// version are those that the page shows, or zero if it shows no provider or module.
func NewPageExchange(about address.Address, version string, status int, bytes int64) *Exchange {
	e := &Exchange{Kind: KindPage, Version: version, Status: status, Bytes: bytes}
	if about != (address.Address{}) {
		e.address = &about
	}
	return e
}

// Address returns the address of the provider or module, or an empty string.
func (e *Exchange) Address() string {
	if e.address == nil {
		return ""
	}
	return e.address.String()
}

// about records the address in a request. An address that the snapshot has need not be
// copied.
func (e *Exchange) about(a address.Address) { e.address = &a }

// aboutTarget records the address of the target, unless there is one already.
func (r *request) aboutTarget() {
	if r.address == nil {
		r.about(r.target.Address)
	}
}

// answered records the answer.
func (e *Exchange) answered(r *http.Request, status int, bytes int64) {
	e.Status = status
	if r.Method != http.MethodHead {
		e.Bytes = bytes
	}
}

// A request is an HTTP request with everything known about it. Nothing keeps it after
// the answer: its memory is used for the next request. The Exchange stays.
type request struct {
	*http.Request
	*Exchange
	self     svchost.Hostname // the registry's name in the request
	original svchost.Hostname // the registry that the path stands in for; empty: none
	root     string           // the part of the path between the prefix and the protocol
	target   target
	list     *listRequest // for a list or a search
	snapshot *index.Snapshot
	since    time.Time       // when it began to wait; zero: it has not waited
	subject  *access.Subject // the user; nil: not authenticated, since nothing depends on it yet
	visit    bool            // for a page
	isWhole  bool            // a range of a file was requested, and the whole file is the answer
}

// knownSubject returns the user, or an anonymous one if the request has not been
// authenticated.
func (r *request) knownSubject() access.Subject {
	if r.subject == nil {
		return access.Subject{}
	}
	return *r.subject
}

// waiting returns when the request began to wait for the check of its credentials or
// its link, for the tree or for an origin. The first call sets this time. Requests for
// public packages rarely wait, and need not read the clock.
func (r *request) waiting() time.Time {
	if r.since.IsZero() {
		r.since = time.Now()
	}
	return r.since
}

// maxSegment is longer than any hostname or file name. A longer segment need not be
// parsed, and must not be repeated in an error.
const maxSegment = 300

// split appends the decoded segments of an escaped path to segments. It decodes after
// splitting, so an encoded slash stays within its segment, where it is refused.
func split(path string, segments []string) ([]string, error) {
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		if len(segments) == cap(segments) {
			return nil, errNotFound
		}
		if strings.IndexByte(segment, '%') >= 0 {
			decoded, err := url.PathUnescape(segment)
			if err != nil || !utf8.ValidString(decoded) || strings.ContainsAny(decoded, "/\x00") {
				return nil, fail(http.StatusBadRequest, "the path has an escape that is in no address")
			}
			segment = decoded
		}
		if len(segment) > maxSegment {
			return nil, errNotFound
		}
		segments = append(segments, segment)
	}
	return segments, nil
}
