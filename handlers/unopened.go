package handlers

import (
	"errors"
	"io"
	"net/http"
)

// needsNoContent reports whether no byte of a file is needed to answer r: by HEAD,
// or by 304 as the client has it. Whatever else HEAD asks for, such as a range,
// is worked out from the size.
func (r *request) needsNoContent(etag string) bool {
	if r.Method == http.MethodHead {
		return true
	}
	// A field that is not a list of tags to the last is for http.ServeContent to
	// read, and If-Match comes before.
	none := r.Header.Get("If-None-Match")
	return r.Header.Get("If-Match") == "" && (none == etag || none == "W/"+etag || none == "*")
}

// unopened stands for a file of which no byte is needed: http.ServeContent asks for
// the size by seeking.
type unopened struct{ size, offset int64 }

func (u *unopened) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += u.offset
	case io.SeekEnd:
		offset += u.size
	}
	if offset < 0 {
		return 0, errNegativeOffset
	}
	u.offset = offset
	return offset, nil
}

// Read is not called: if it were, the answer would end before its length.
func (u *unopened) Read([]byte) (int, error) { return 0, errUnopened }

var (
	errNegativeOffset = errors.New("negative offset")
	errUnopened       = errors.New("the file was not opened")
)
