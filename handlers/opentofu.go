package handlers

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// maxTokenDownload is the size in bytes of a module package that OpenTofu is
// asked to fetch with its token: it gives the download ten seconds in all, and
// this much comes in time on a line of a megabit a second.
const maxTokenDownload = 1 << 20

// downloadsWithToken tells whether the client fetches module packages with its
// token if it is told to (use_registry_credentials, OpenTofu since 1.12; see
// checklist 84). That is better than a link: nothing in a URL, nothing that
// expires, and a token that is revoked ends at once.
func (r *request) downloadsWithToken(size int64) bool {
	version, ok := strings.CutPrefix(r.UserAgent(), "OpenTofu/1.")
	if !ok || size > maxTokenDownload || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		return false
	}
	minor, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(minor)
	return err == nil && n >= 12
}

// writeTokenLocation tells a client to fetch the package with its token. The
// header says where others would find it, and is set already.
func writeTokenLocation(w http.ResponseWriter, r *request, location string) error {
	body, _ := json.Marshal(struct { // a string and a boolean always encode
		Location       string `json:"location"`
		UseCredentials bool   `json:"use_registry_credentials"`
	}{location, true})
	set(w, "Content-Type", "application/json", "Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	r.answered(r.Request, http.StatusOK, int64(len(body)))
	if r.Method != http.MethodHead {
		w.Write(body)
	}
	return nil
}
