package pages

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// A providerView has the data for the pages of one release of a provider.
type providerView struct {
	*visit
	provider *index.Provider
	release  *index.Release
	latest   *index.Release
	docs     *content.Docs // nil if the release has no documentation
	lacking  *notice       // that the page asked for is missing, and another one is shown instead
}

// isBelowOverview reports whether the page is one of the documentation's pages below its overview.
func (p *providerView) isBelowOverview() bool { return strings.Contains(p.route.Rest, "/") }

// provider answers with a page of a provider.
func (v *visit) provider() (*answer, error) {
	if v.query.tab == tabOverview {
		return v.moved(v.url(v.route)), nil
	}
	p, release, err := v.view.ProviderRelease(v.route.Address, v.route.Version)
	if err != nil {
		latest := ""
		if p != nil {
			latest = p.Latest().Version
		}
		return v.absentVersion(latest, p.Numbers(), err)
	}
	v.version, v.route.Address = release.Version, v.view.WithoutOwnName(v.route.Address)
	docs, err := v.view.Docs(release)
	if err != nil {
		return nil, err
	}
	if docs != nil && len(docs.Pages) == 0 {
		docs = nil
	}
	pv := &providerView{visit: v, provider: p, release: release, latest: p.Latest(), docs: docs}
	switch {
	case docs == nil && v.route.Rest != "":
		return pv.absentDocs()
	case docs != nil && (v.route.Rest != "" || v.query.tab == ""):
		return pv.doc()
	case docs != nil && v.query.tab == tabPages:
		return pv.docsList()
	}
	return pv.answer()
}

func (p *providerView) answer() (*answer, error) {
	frame, err := p.page(p.route.Address.String() + " " + p.release.Version)
	if err != nil {
		return nil, err
	}
	frame.Current, frame.Description = "providers", p.description()
	model := providerPage{page: frame, heading: p.heading(), sidebar: p.sidebar(), Tab: cmp.Or(p.query.tab, tabPackages)}
	switch model.Tab {
	case tabPackages:
		model.Packages, model.Signature = p.packages(), p.signature()
	case tabVersions:
		model.Versions = p.versions()
	case tabUsedBy:
		model.UsedBy, err = p.usedBy(p.latest.Version, p.provider.Numbers())
	default:
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(model.Tabs, func(t tab) bool { return t.Current }); at > 0 || p.docs != nil {
		model.Title = model.Tabs[at].Text + " · " + model.Title
	}
	return pageAnswer("provider", model)
}

func (p *providerView) heading() heading {
	a := p.route.Address
	h := heading{Before: a.Namespace + "/", Name: a.Name, Menu: p.menu(), Notices: p.notices(), Tabs: p.tabs()}
	h.Crumbs = p.crumbs("providers")
	if p.isBelowOverview() {
		h.Crumbs = append(h.Crumbs, link{a.Name, p.url(p.route.WithVersion(p.route.Version))})
		return h
	}
	h.Crumbs = append(h.Crumbs, link{a.Name, ""})
	h.Lede, h.Chips = p.description(), p.chips()
	return h
}

// description returns the operator's description, or the description of the
// documentation's overview.
func (p *providerView) description() string {
	if m := p.provider.Metadata(); m != nil && m.Description != "" {
		return m.Description
	}
	if p.docs != nil {
		if overview := p.docs.Page(content.DocOverview, ""); overview != nil {
			return overview.Description
		}
	}
	return ""
}

func (p *providerView) chips() []chip {
	chips := p.chipsOf(p.release)
	chips = append(chips, chip{Time: p.release.Published()}, chip{Label: count(len(p.release.Packages), "platform", "platforms")})
	switch p.release.Signature.By {
	case index.ByPublisher:
		chips = append(chips, chip{Label: "signed by", Value: signer(p.release.Signature), Tone: "good"})
	case index.NotSigned:
		chips = append(chips, chip{Label: "not signed", Tone: "warn"})
	}
	return append(chips, chip{Label: "protocol", Value: strings.Join(p.release.Protocols(), ", ")})
}

// chipsOf says whether a release is the latest, a prerelease or deprecated.
func (p *providerView) chipsOf(r *index.Release) []chip {
	return versionChips(r.Version, r == p.latest, r.Deprecated())
}

func (p *providerView) notices() []notice {
	notices := p.versionNotices(&p.release.Facts, &p.latest.Facts)
	if p.lacking != nil {
		notices = append([]notice{*p.lacking}, notices...)
	}
	return notices
}

// menu links each release that has documentation to the same page of it, and every
// other release to its overview.
func (p *providerView) menu() versionMenu {
	return newVersionMenu(len(p.provider.Releases), slices.Index(p.provider.Releases, p.release), p.tabURL(tabVersions), func(i int) versionLink {
		r := p.provider.Releases[i]
		to := p.route.WithVersion(r.Version)
		if p.isBelowOverview() && r.Docs() != "" {
			to.Rest = p.route.Rest
		}
		return versionLink{Version: r.Version, URL: withQuery(p.url(to), "tab", p.query.tab), Chip: lastChip(p.chipsOf(r))}
	})
}

// tabURL returns the URL of a tab of the same version. It names the version in the same
// way as the request.
func (p *providerView) tabURL(tab string) string {
	r := p.route
	r.Rest = ""
	switch tab {
	case tabDocs:
		return p.url(r)
	case tabPackages:
		if p.docs == nil {
			return p.url(r)
		}
	}
	return withQuery(p.url(r), "tab", tab)
}

func (p *providerView) tabs() []tab {
	var tabs []tab
	current := cmp.Or(p.query.tab, tabDocs)
	switch {
	case p.route.Rest != "", current == tabPages:
		current = tabDocs
	case p.docs == nil:
		current = cmp.Or(p.query.tab, tabPackages)
	}
	add := func(name, text string, count int) {
		if slices.ContainsFunc(tabs, func(t tab) bool { return t.Text == text }) {
			return // it came first
		}
		tabs = append(tabs, tab{Text: text, URL: p.tabURL(name), Count: count, Current: name == current})
	}
	if p.docs != nil {
		add(tabDocs, "Documentation", len(p.docs.Pages))
	} else {
		add(tabPackages, "Packages", len(p.release.Packages))
	}
	add(tabVersions, "Versions", len(p.provider.Releases))
	add(tabPackages, "Packages", len(p.release.Packages))
	if n := p.usedByCount(); n > 0 || current == tabUsedBy {
		add(tabUsedBy, "Used by", n)
	}
	return tabs
}

func (p *providerView) sidebar() sidebar {
	var b sidebar
	a := p.route.Address
	b.Use = &usage{Code: snippet.Provider(p.source(a), a.Name, snippet.ConstraintOn(p.release.Version, p.latest.Version, p.provider.Numbers()))}
	switch {
	case a.Hostname != "" && !p.view.Hosted(a):
		b.Use.Note = "Clients download it from here if they use this registry as a network mirror or in place of " + address.DisplayHostname(a.Hostname) + "."
	case p.release.Signature.By == index.NotSigned:
		b.Use.Note = "Not signed: clients install it only if they use this registry as a network mirror."
	}
	if m := p.provider.Metadata(); m != nil {
		b.Facts = sourceFacts(m)
	}
	b.Facts = append(b.Facts, p.versionFacts(&p.release.Facts, fact{Term: "Protocol", Text: strings.Join(p.release.Protocols(), ", ")})...)
	return b
}

// packages returns the packages of the release, with their checksums and signature.
func (p *providerView) packages() packages {
	var all packages
	var hashes []string
	for _, k := range p.release.Packages {
		all.Rows = append(all.Rows, packageRow{
			Platform: k.Platform.String(), File: link{k.File.Name, p.fileURL(k.File.Name)}, Size: size(k.File.Size),
			Hashes: packageHashes(k.File.SHA256.String(), k.FileHashes.All(), k.Platform.String()),
		})
		hashes = slices.AppendSeq(append(hashes, k.File.SHA256.ZH()), k.FileHashes.All())
	}
	for _, missing := range p.release.Missing() {
		all.Missing = append(all.Missing, missing.Platform.String())
	}
	a := p.route.Address
	all.Lock = snippet.LockBlock(a.WithHostname(cmp.Or(a.Hostname, p.view.Hostname())), p.release.Version, hashes)
	all.Checksums = link{"SHA256SUMS", p.fileURL(address.ChecksumsName(a.Name, p.release.Version))}
	if name := address.SignatureName(a.Name, p.release.Version); p.provider.File(name) != nil {
		all.Signature = link{"its signature", p.fileURL(name)}
	}
	return all
}

// fileURL returns the URL at which clients download a file of the provider.
func (p *providerView) fileURL(name string) string {
	a := p.route.Address
	host := cmp.Or(a.Hostname, p.view.Hostname())
	return p.view.FilesURL() + "/mirror/" + strings.Join([]string{string(host), a.Namespace, a.Name, name}, "/") + p.linkQuery(p.release.Hostname, p.release.Version, name)
}

// signature returns the signer of the release and the key.
func (p *providerView) signature() signature {
	s := p.release.Signature
	switch s.By {
	case index.NotSigned:
		return signature{Title: "Not signed", Text: "Nobody vouches for these packages. Clients install them only if they use this registry as a network mirror."}
	case index.ByRegistry:
		return signature{
			Title: "Signed by this registry",
			Text:  "The signature proves that clients get what is stored here, not who made it.",
			Facts: keyFacts(s.KeyID, nil),
		}
	}
	return signature{
		Title: "Signed by its publisher",
		Text:  "Clients verify the signature with this key, which the registry trusts for " + p.route.Address.Namespace + ".",
		Facts: keyFacts(s.KeyID, s.Key()),
	}
}

// signer names who signed something: the name in the user ID of the publisher's key, or the
// ID of the key.
func signer(s *index.Signature) string {
	switch s.By {
	case index.NotSigned:
		return "nobody"
	case index.ByRegistry:
		return "this registry"
	}
	if key := s.Key(); key != nil {
		name, _, _ := strings.Cut(key.UserID, "<")
		if name = strings.TrimSpace(name); name != "" {
			return shortened(name, maxSigner)
		}
	}
	return "key " + s.KeyID
}

// maxSigner is how much of a signer's name is shown beside other things.
const maxSigner = 40

// maxUserID is how much of a key's user ID is shown.
const maxUserID = 100

// keyFacts returns the facts about a key. It is nil if only the ID of the key is known.
func keyFacts(id string, key *signing.PublicKey) []fact {
	facts := []fact{{Term: "Key", Text: id, Full: id}}
	if key == nil {
		return facts
	}
	if user := strings.TrimSpace(key.UserID); user != "" {
		facts = append(facts, fact{Term: "User ID", Text: shortened(user, maxUserID)})
	}
	day := func(t time.Time) string { return t.Format("2 Jan 2006") }
	if !key.Created.IsZero() {
		facts = append(facts, fact{Term: "Created", Text: day(key.Created)})
	}
	if key.Expires.IsZero() {
		return append(facts, fact{Term: "Expires", Text: "never"})
	}
	return append(facts, fact{Term: "Expires", Text: day(key.Expires)})
}

// versions returns the rows of all releases.
func (p *providerView) versions() []versionGroup {
	var offered []versionRow
	used := downloads(p.view.Usage(p.route.Address))
	for _, r := range p.provider.Releases {
		row := p.versionRow(r.Version, p.chipsOf(r), r.Deprecated())
		row.Published, row.Used, row.Platforms, row.Signed = r.Published(), used.summary(r.Version), len(r.Packages), signer(r.Signature)
		offered = append(offered, row)
	}
	return p.groupVersions(offered, p.provider.Withdrawn())
}
