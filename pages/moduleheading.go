package pages

import (
	"cmp"
	"path"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// registryCrumb returns the link to what is mirrored from a registry.
func (v *visit) registryCrumb(hostname svchost.Hostname) link {
	return link{address.DisplayHostname(hostname), v.url(route.Route{Kind: route.Place, Address: address.Address{Hostname: hostname}})}
}

// crumbs returns the way to the namespace of a module or provider.
func (v *visit) crumbs(kind string) []link {
	a := v.route.Address
	crumbs := []link{{kind, v.site.Path + "/browse/" + kind}}
	if a.Hostname != "" {
		crumbs = append(crumbs, v.registryCrumb(a.Hostname))
	}
	return append(crumbs, link{a.Namespace, v.url(namespaceRoute(a, kind))})
}

func (m *moduleView) heading() (heading, error) {
	a := m.route.Address
	h := heading{Menu: m.menu(), Notices: m.notices(), Tabs: m.tabs()}
	if m.lacking != nil {
		h.Notices = append([]notice{*m.lacking}, h.Notices...)
	}
	h.Crumbs = m.crumbs("modules")
	h.Before, h.Name, h.After = a.Namespace+"/", a.Name, "/"+a.System
	if m.shown.Path == "" {
		h.Crumbs = append(h.Crumbs, link{a.Name, ""}, link{a.System, ""})
		h.Lede = m.description()
		h.Chips = m.chips()
		others, err := m.otherSystems()
		for _, o := range others {
			h.Chips = append(h.Chips, chip{Label: "also for", Value: o.Text, URL: o.URL})
		}
		return h, err
	}
	h.Crumbs = append(h.Crumbs, link{a.Name + "/" + a.System, m.url(m.route.WithPart(""))}, link{m.shown.Path, ""})
	h.Before, h.Name, h.After = path.Dir(m.shown.Path)+"/", path.Base(m.shown.Path), ""
	h.Lede = summaryOf(m.version.Summary(), m.shown.Path)
	h.Chips = m.requirementChips()
	return h, nil
}

// description returns the operator's description, or the first paragraph of the README.
func (m *moduleView) description() string {
	var said string
	if meta := m.module.Metadata(); meta != nil {
		said = meta.Description
	}
	return cmp.Or(said, m.version.Summary().Description)
}

func (m *moduleView) chips() []chip {
	chips := m.chipsOf(m.version)
	chips = append(chips, chip{Time: m.version.Published()})
	chips = append(chips, m.requirementChips()...)
	chips = append(chips, chip{Label: size(m.version.Archive.Size)})
	if m.whole.License != "" {
		chips = append(chips, chip{Label: m.whole.License})
	}
	return chips
}

// maxProviderChips is how many providers the heading names.
const maxProviderChips = 3

// requirementChips returns the module's requirements.
func (m *moduleView) requirementChips() []chip {
	var chips []chip
	if m.shown.RequiredVersion != "" {
		chips = append(chips, chip{Label: "terraform", Value: m.shown.RequiredVersion})
	}
	for i, p := range m.shown.Providers {
		if i == maxProviderChips {
			chips = append(chips, chip{Label: count(len(m.shown.Providers)-i, "more provider", "more providers")})
			break
		}
		chips = append(chips, chip{Label: cmp.Or(p.Source, p.Name), Value: p.Version})
	}
	return chips
}

// chipsOf says whether a version is the latest, a prerelease or deprecated.
func (m *moduleView) chipsOf(v *index.ModuleVersion) []chip {
	return versionChips(v.Version, v == m.latest, v.Deprecated())
}

func (m *moduleView) notices() []notice {
	return slices.Concat(tagNotices(m.version), doubtNotices(m.version.Doubts), m.versionNotices(&m.version.Facts, &m.latest.Facts))
}

// tagNotices says that the tag of a version is no longer at the version's commit.
func tagNotices(v *index.ModuleVersion) []notice {
	t := v.Tag
	if t == nil || t.Now == "" {
		return nil
	}
	n := notice{Tone: "warn", Title: "The tag of this version has moved.", Text: "In the repository, " + t.Name + " is at another commit now, " + abbreviated(t.Now) + "."}
	if t.IsGone() {
		n.Title, n.Text = "The tag of this version is gone.", "In the repository, "+t.Name+" has been deleted."
	}
	n.Text += " This version stays as it was, at commit " + abbreviated(t.Commit) + "."
	return []notice{n}
}

// doubtNotices says why publishing would refuse the module's package today. The package
// was copied into the folder, or comes from elsewhere.
func doubtNotices(d archive.Doubts) (notices []notice) {
	if len(d.Unusable) > 0 {
		faults := make([]string, len(d.Unusable))
		for i, what := range d.Unusable {
			faults[i] = strings.TrimSuffix(what, ".") // what clients say may have several sentences
		}
		notices = append(notices, notice{Tone: "bad", Title: "Terraform and OpenTofu cannot read all of this version.",
			Text: "Its publisher has to " + strings.Join(faults, ". Its publisher also has to ") + "."})
	}
	for _, text := range d.Secrets {
		notices = append(notices, notice{Tone: "bad", Title: "This version has secrets in it.", Text: "It " + text + "."})
	}
	return notices
}

func (m *moduleView) menu() versionMenu {
	all := withQuery(m.url(m.route.WithPart("")), "tab", tabVersions)
	return newVersionMenu(len(m.module.Versions), slices.Index(m.module.Versions, m.version), all, func(i int) versionLink {
		v := m.module.Versions[i]
		to := m.route.WithVersion(v.Version)
		if m.route.Kind == route.ModuleCode {
			return versionLink{Version: v.Version, URL: withQuery(m.url(to.WithCode(m.route.Rest)), "tab", m.query.tab), Chip: lastChip(m.chipsOf(v))}
		}
		if m.route.Part == "" || v.Summary().MayHave(m.route.Part) {
			to = to.WithPart(m.route.Part)
		}
		return versionLink{Version: v.Version, URL: withQuery(m.url(to), "tab", m.query.tab), Chip: lastChip(m.chipsOf(v))}
	})
}

// tabs returns the tabs that have something to show.
func (m *moduleView) tabs() []tab {
	var tabs []tab
	of := m.route.WithPart(m.shown.Path)
	current := cmp.Or(m.query.tab, tabReadme)
	if m.route.Kind == route.ModuleCode {
		current = ""
	}
	add := func(name, text string, count int, always bool) {
		if count == 0 && !always && name != current {
			return
		}
		t := tab{Text: text, URL: m.url(of), Count: count, Current: name == current}
		if name != tabReadme {
			t.URL = withQuery(t.URL, "tab", name)
		}
		tabs = append(tabs, t)
	}
	s := m.shown
	add(tabReadme, "README", 0, true)
	add(tabInputs, "Inputs", len(s.Variables), true)
	add(tabOutputs, "Outputs", len(s.Outputs), true)
	add(tabResources, "Resources", len(s.Resources), false)
	add(tabDependencies, "Dependencies", len(s.Providers)+len(s.Calls), false)
	tabs = append(tabs, tab{Text: "Code", URL: m.url(m.route.WithCode(s.Path)), Current: m.route.Kind == route.ModuleCode})
	if s.Path != "" {
		return tabs
	}
	add(tabUsedBy, "Used by", m.usedByCount(), false)
	add(tabSubmodules, "Submodules", len(m.whole.Submodules), false)
	add(tabExamples, "Examples", len(m.whole.Examples), false)
	add(tabVersions, "Versions", len(m.module.Versions), true)
	if len(m.module.Versions) > 1 {
		add(tabChanges, "Changes", 0, true)
	}
	return tabs
}

// constraint returns the constraint with which examples call the module.
func (m *moduleView) constraint() string {
	return snippet.ConstraintOn(m.version.Version, m.latest.Version, m.module.Numbers())
}

func (m *moduleView) sidebar() sidebar {
	var b sidebar
	source, constraint := m.source(m.route.Address), m.constraint()
	b.Use = &usage{Code: snippet.Module(source, constraint, m.shown, m.route.Address.Name)}
	if strings.HasPrefix(m.shown.Path, "examples/") {
		b.Use = &usage{Code: snippet.Module(source, constraint, &m.whole.Root, m.route.Address.Name), Note: "The module this is an example of."}
	}
	if m.route.Address.Hostname != "" {
		b.Use.Note = "Mirrored from " + address.DisplayHostname(m.route.Address.Hostname) + ". Clients download it from there, unless they are configured to use this registry instead."
	}
	tag := tagFacts(m.version)
	if meta := m.module.Metadata(); meta != nil {
		for _, f := range sourceFacts(meta) {
			if !slices.ContainsFunc(tag, func(t fact) bool { return t.URL != "" && t.Text == f.Text }) { // a link to the commit says more
				b.Facts = append(b.Facts, f)
			}
		}
	}
	b.Facts = append(b.Facts, tag...)
	packed := m.version.Archive
	ofPackage := []fact{{Term: "Package", Text: packed.Name, URL: m.packageURL(m.version), More: ", " + size(packed.Size)}}
	for _, h := range packageHashes(packed.SHA256.String(), m.version.FileHashes.All(), "") {
		ofPackage = append(ofPackage, h.fact)
	}
	b.Facts = append(b.Facts, m.versionFacts(&m.version.Facts, ofPackage...)...)
	return b
}

// sourceFacts returns the facts that an operator writes.
func sourceFacts(m *registryhcl.File) []fact {
	var facts []fact
	if m.Source != "" {
		_, text, _ := strings.Cut(m.Source, "://")
		facts = append(facts, fact{Term: "Source", Text: strings.TrimSuffix(text, "/"), URL: m.Source})
	}
	if m.Owner != "" {
		facts = append(facts, fact{Term: "Owner", Text: m.Owner})
	}
	return facts
}

// tagFacts returns which commit of which repository a version is; nothing for a version that comes from
// none.
func tagFacts(v *index.ModuleVersion) []fact {
	t := v.Tag
	if t == nil {
		return nil
	}
	name, page := t.Repository()
	facts := []fact{{Term: "Tag", Text: t.Name}, {Term: "Commit", Text: abbreviated(t.Commit), Full: t.Commit}}
	if name != "" {
		facts = append([]fact{{Term: "Repository", Text: name, URL: page}}, facts...)
	}
	return facts
}

// packageURL returns the URL of the package of a version. It contains the path in the tree, so that
// the path has a HOSTNAME if the package lies under one.
func (m *moduleView) packageURL(of *index.ModuleVersion) string {
	a, name := m.route.Address.WithHostname(of.Hostname), of.Archive.Name
	path := m.view.FilesURL() + "/modules/"
	if a.Hostname != "" {
		path += string(a.Hostname) + "/"
	}
	return path + a.Namespace + "/" + a.Name + "/" + a.System + "/" + of.Version + "/" + name + m.linkQuery(a.Hostname, of.Version, name)
}
