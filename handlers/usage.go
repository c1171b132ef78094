package handlers

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/usage"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// downloaded counts a file that a client has got if it is a package. What counts is the end of the
// package in the answer to a GET, so that a download counts once when it is complete, in however
// many answers: a HEAD or a 304 has no bytes. A package that the store itself serves counts when
// the client is sent there.
func (g *Registry) downloaded(r *request, f *index.File) {
	if g.Usage == nil || r.Method != http.MethodGet {
		return
	}
	if r.Kind == KindModuleArchive || r.Kind == KindProviderFile && f.Platform != "" {
		g.Usage.Add(usage.Use{Address: g.countedAs(r), Version: r.Version, Platform: r.Platform})
	}
}

// countedAs returns the address under which a request is counted. The URL of a package may have the
// registry's own name, which requests for its usage do not have.
func (g *Registry) countedAs(r *request) address.Address {
	t := &r.target
	if g.Rules == nil && t.Hostname != "" && g.isName(r.self, t.Hostname) {
		return t.WithHostname("")
	}
	return t.resource().Address
}

// asksForBeginning reports whether r asks for the first byte.
func (r *request) asksForBeginning() bool {
	asked := r.Header.Get("Range")
	return asked == "" || strings.HasPrefix(asked, "bytes=0-")
}

// countLocated counts who was told where a package is. Clients have no credentials when they
// download it.
func (g *Registry) countLocated(r *request, version, platform string) {
	if g.Usage == nil || g.UsageBy == "" || r.Method != http.MethodGet || r.knownSubject().Anonymous() {
		return
	}
	names := []string{r.subject.ID}
	if g.UsageBy == usage.ByGroup {
		names = g.rules.AllNamedGroups(r.subject.Groups)
	}
	for _, name := range names {
		g.Usage.Add(usage.Use{Address: r.target.resource().Address, Version: version, Platform: platform, By: name})
	}
}

// Days of an answer with usage.
const (
	defaultUsageDays = 30
	maxUsageDays     = 3660
)

// answerUsage answers with how often a provider or module was downloaded: to whoever may read
// it, and by whom to whoever may manage it.
func (g *Registry) answerUsage(w http.ResponseWriter, r *request) error {
	if g.Usage == nil {
		return fail(http.StatusNotFound, "this registry does not count downloads: its operator can turn that on with the option usage")
	}
	days := defaultUsageDays
	if asked := r.URL.Query().Get("days"); asked != "" {
		n, err := strconv.Atoi(asked)
		if err != nil || n < 1 || n > maxUsageDays {
			return fail(http.StatusBadRequest, "days is a number from 1 to %d", maxUsageDays)
		}
		days = n
	}
	if !g.Usage.Known() {
		return unavailable("the counts of downloads have not been read yet: try again in a moment", nil)
	}
	of := r.target.resource().Address
	if !r.inTree() && g.Usage.Downloads(of) == 0 {
		return g.pendingOrNotFound(w, r)
	}
	r.aboutTarget()
	manages := false
	if g.UsageBy != "" && g.Rules != nil { // a client certificate, say, is no credential in the request
		subject, err := g.subject(r)
		if err != nil {
			return err
		}
		manages = g.rules.Decide(subject, access.Manage, r.target.resource()).Allowed
		r.target.private = true // the answer depends on the user
	}
	return g.writeDocument(w, r, wire.EncodeUsage(g.Usage.Describe(of, days, manages)), links{})
}

// Downloads returns how often a provider or module was downloaded. It is asked for what the user
// may see only.
func (v *View) Downloads(a address.Address) uint64 {
	t := v.targetOf(a)
	return v.registry.Usage.Downloads(t.resource().Address)
}

// Usage returns how often each version of a provider or module was downloaded, and under "" all.
// It is nil if downloads are not counted, or if it is not known yet how many there were. It is asked
// for what the user may see only.
func (v *View) Usage(a address.Address) map[string]usage.Summary {
	if !v.registry.Usage.Known() {
		return nil
	}
	t := v.targetOf(a)
	return v.registry.Usage.Versions(t.resource().Address)
}
