package handlers

import (
	"net/http"
)

// serveReady answers whether the registry has a snapshot of its tree, for load
// balancers and Kubernetes, which send requests to other instances until it has. Probes
// have no token, so this is anonymous, and reveals no more than discovery does. Unlike
// other requests it does not wait for the snapshot, since probes count a late answer as
// a failure.
//
// Where the log is required, an instance that has not read it yet offers nothing: a new one must
// not take the place of another one that has.
//
// An instance is ready while archives are still being read: requests for these wait,
// and everything else is served.
func (g *Registry) serveReady(w http.ResponseWriter, r *request) error {
	r.Kind = KindReady
	if g.Ready != nil && !g.Ready() {
		return errStarting
	}
	if g.RequireLog && g.Log() == nil {
		return errNoLog
	}
	return r.write(w, http.StatusOK, Content{Type: "text/plain; charset=utf-8", Body: []byte("ready\n"), Caching: "no-store"})
}
