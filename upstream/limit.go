package upstream

import (
	"io"
	"net/http"
)

// The largest documents. Real ones have a tenth of it and less; a registry that
// needs more would not be read by every client either.
const (
	maxDiscovery = 1 << 20 // that of the clients
	maxVersions  = 8 << 20
	maxMetadata  = 4 << 20

	// These are remembered, for as many releases as mostReleases. SHA256SUMS has a
	// line of some 110 bytes for each platform: of the largest providers 15 to 20,
	// where there is room for 500.
	maxChecksums = 64 << 10
	maxSignature = 16 << 10
	maxManifest  = 16 << 10
)

// readBounded reads the body of an answer, as unpacked by net/http.
func readBounded(answer *http.Response, limit int64) (body []byte, tooLarge bool, err error) {
	if answer.ContentLength > limit {
		return nil, true, nil
	}
	body, err = io.ReadAll(io.LimitReader(answer.Body, limit+1))
	return body, err == nil && int64(len(body)) > limit, err
}
