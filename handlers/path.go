package handlers

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// maxSegment is more than any hostname or file name has. What is longer need not
// reach the parsers, and must not come back in an error.
const maxSegment = 300

// split appends the decoded segments of an escaped path to segments. It is
// decoded after it is split, so an encoded slash stays inside of its segment
// and is refused there.
func split(path string, segments []string) ([]string, error) {
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		if len(segments) == cap(segments) {
			return nil, notFound
		}
		if strings.IndexByte(segment, '%') >= 0 {
			decoded, err := url.PathUnescape(segment)
			if err != nil || !utf8.ValidString(decoded) || strings.ContainsAny(decoded, "/\x00") {
				return nil, fail(http.StatusBadRequest, "the path has an escape that no address has")
			}
			segment = decoded
		}
		if len(segment) > maxSegment {
			return nil, notFound
		}
		segments = append(segments, segment)
	}
	return segments, nil
}
