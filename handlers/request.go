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

// A Kind is what a request asks for. There are few of them, so that metrics can
// have them as a label.
type Kind int

// The kinds of requests.
const (
	KindOther Kind = iota // a path of the registry with nothing at it
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
	KindPage     // for people, see the package pages
	KindPublish  // a file to be published
	KindStaging  // what is published or staged of a version
	KindReady    // a probe
	KindMetadata // a registry.hcl that is read

	// Kinds is the number of kinds.
	Kinds
)

var kindNames = [Kinds]string{
	"other", "discovery", "provider_versions", "provider_download", "module_versions",
	"module_download", "module_archive", "mirror_index", "mirror_archives", "provider_file",
	"module_list", "module_search", "module_detail", "provider_list", "provider_search", "provider_detail",
	"page", "publish", "staging", "ready", "metadata",
}

// String is the name of the kind in metrics and logs.
func (k Kind) String() string { return kindNames[k] }

// An Exchange is what a request was about and how it was answered.
type Exchange struct {
	Kind Kind

	// Version and Platform, OS_ARCH, that were requested; empty if they do not
	// exist. Those of an Upload are what they are to be.
	Version, Platform string

	// Status of the answer, and the bytes of its body as announced: a client may
	// have left before the last of them.
	Status int
	Bytes  int64

	// Upload is the file that was sent to be published; nil for any other request.
	Upload *Upload

	address *address.Address
}

// NewPageExchange describes a request for a page and its answer. The address and the
// version are those of what the page shows; zero if it is about no provider or module.
func NewPageExchange(about address.Address, version string, status int, bytes int64) *Exchange {
	e := &Exchange{Kind: KindPage, Version: version, Status: status, Bytes: bytes}
	if about != (address.Address{}) {
		e.address = &about
	}
	return e
}

// Address is that of the provider or module; empty if there is none.
func (e *Exchange) Address() string {
	if e.address == nil {
		return ""
	}
	return e.address.String()
}

// about records the address in a request. That of a provider or module of the snapshot
// need not be copied.
func (e *Exchange) about(a address.Address) { e.address = &a }

// answered records the answer.
func (e *Exchange) answered(r *http.Request, status int, bytes int64) {
	e.Status = status
	if r.Method != http.MethodHead {
		e.Bytes = bytes
	}
}

// A request is an HTTP request with what is known about it. Nothing keeps it after the
// answer: its memory is used for the next. The Exchange stays.
type request struct {
	*http.Request
	*Exchange
	self     svchost.Hostname // the name the registry was asked by
	original svchost.Hostname // of the registry that it stands in for; empty: for none
	root     string           // what comes between the prefix and the protocol in the path
	target   target
	list     *listRequest // of a list or a search
	snapshot *index.Snapshot
	since    time.Time       // when it began to wait; zero: it has not
	subject  *access.Subject // who makes it; nil: nothing has depended on it yet
	visit    bool            // it is for a page
}

// known is who makes the request, anonymous if that has not been found out.
func (r *request) known() access.Subject {
	if r.subject == nil {
		return access.Subject{}
	}
	return *r.subject
}

// waiting returns when the request began to wait, for the check of its credentials
// or its link, for the tree or for an origin: now, if it is called for the first
// time. Requests for what is public rarely wait, and need not read the clock.
func (r *request) waiting() time.Time {
	if r.since.IsZero() {
		r.since = time.Now()
	}
	return r.since
}

// maxSegment is longer than any hostname or file name. A longer segment need not
// be parsed, and must not be repeated in an error.
const maxSegment = 300

// split appends the decoded segments of an escaped path to segments. Segments are
// decoded after the path is split, so an encoded slash stays within its segment
// and is refused there.
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
