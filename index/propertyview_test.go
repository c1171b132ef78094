package index_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A scope is the subject of a line of a view: the provider or module of a name, under any
// HOSTNAME and in any spelling, since these depend on one another. In a pattern, an empty
// field stands for any value.
type scope struct{ kind, namespace, name string }

// Kinds of scopes that are no addresses.
const (
	keysKind    = "keys"
	outsideKind = "outside" // of the folders of addresses
	totalsKind  = "totals"
)

// covers reports whether the pattern s covers a scope.
func (s scope) covers(other scope) bool {
	return (s.kind == "" || s.kind == other.kind) && (s.namespace == "" || s.namespace == other.namespace) && (s.name == "" || s.name == other.name)
}

func scopeOf(a address.Address) scope {
	if a.IsModule() {
		return scope{"modules", a.Namespace, a.Name + "/" + a.System}
	}
	return scope{"providers", a.Namespace, a.Name}
}

// addressOfPath returns the address in whose folder a path in a report lies.
func addressOfPath(report string) (a address.Address, ok bool) {
	part, rest, _ := strings.Cut(report, "/")
	names, hostname := strings.Split(rest, "/"), ""
	if address.IsHostname(names[0]) {
		hostname, names = names[0], names[1:]
	}
	var err error
	switch {
	case tree.IsHiddenOrTemporary(hostname):
		return a, false
	case part == "providers" && len(names) >= 2:
		a, err = address.ParseProvider(hostname, names[0], names[1])
	case part == "modules" && len(names) >= 3:
		a, err = address.ParseModule(hostname, names[0], names[1], names[2])
	default:
		return a, false
	}
	return a, err == nil
}

// scopeAt returns the scope of a path in a report.
func scopeAt(report string) scope {
	if a, ok := addressOfPath(report); ok {
		return scopeOf(a)
	}
	if tree.IsBelow(report, tree.ReportedKeys) {
		name := strings.ToLower(path.Base(report))
		return scope{keysKind, strings.TrimSuffix(name, path.Ext(name)), ""}
	}
	return scope{kind: outsideKind}
}

// A line is a fact about a snapshot that a client, a page or an operator may see.
type line struct {
	scope
	text string
}

// A view is everything that is seen of a snapshot, apart from the following, which are not
// the same in another process:
//   - its time, and how many archives were read for it;
//   - that the bytes of an offered version have changed: only an index that has offered the
//     first bytes knows.
type view struct {
	snapshot *index.Snapshot
	lines    []line
}

func (v *view) add(s scope, format string, args ...any) {
	v.lines = append(v.lines, line{s, fmt.Sprintf(format, args...)})
}

// hostnames are the hostnames as which a registry of the random tree may answer.
var hostnames = []svchost.Hostname{"", "registry.example.com", "mirror.example.com", "elsewhere.example.com"}

// addressesIn returns the addresses of some snapshots and of the random tree, under all
// hostnames.
func addressesIn(snapshots ...*index.Snapshot) (all []address.Address) {
	add := func(a address.Address) {
		for _, h := range hostnames {
			all = append(all, a.WithHostname(h))
		}
	}
	for _, name := range slices.Concat(randomProviders, randomModules) {
		a, err := address.Parse(name)
		if err != nil {
			panic(err)
		}
		add(a)
	}
	for _, s := range snapshots {
		for p := range s.Providers() {
			add(p.Address)
		}
		for m := range s.Modules() {
			add(m.Address)
		}
	}
	slices.SortFunc(all, func(a, b address.Address) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// look makes the view of a snapshot, with the answers for these addresses.
func look(s *index.Snapshot, addresses []address.Address) *view {
	v := &view{snapshot: s}
	v.report()
	for _, a := range addresses {
		v.address(a)
	}
	v.catalog()
	return v
}

func (v *view) report() {
	r := v.snapshot.Report()
	totals := scope{kind: totalsKind}
	for _, o := range r.Offered {
		o.Notes = withoutChanged(o.Notes)
		a, err := address.Parse(o.Address)
		if err != nil {
			panic(err)
		}
		v.add(scopeOf(a), "offered %+v", o)
	}
	for _, p := range r.Withheld {
		v.add(scopeAt(p.Path), "withheld %+v", p)
	}
	for _, p := range r.Ignored {
		v.add(scopeAt(p.Path), "ignored %+v", p)
	}
	v.add(totals, "hint %q, pending %d, ignored %d, temporary %d, withdrawn %d", r.Hint, r.Pending, r.IgnoredTotal, r.TemporaryTotal, r.WithdrawnTotal)
	v.add(totals, "keys expire at %v", v.snapshot.KeysExpire.UTC())
}

// withoutChanged leaves out the notes about bytes that have changed.
func withoutChanged(notes []string) []string {
	return slices.DeleteFunc(slices.Clone(notes), func(note string) bool {
		return strings.Contains(note, "it was first offered with")
	})
}

// address adds everything that is answered about an address.
func (v *view) address(a address.Address) {
	s := v.snapshot
	versions := append([]string{""}, randomVersions...)
	var pending []bool
	for _, version := range versions {
		pending = append(pending, s.Pending(index.PlaceOf(a), version))
	}
	v.add(scopeOf(a), "%s: pending %v, list %v, unknown %v", a, pending, s.ListPending(index.PlaceOf(a)), s.Unknown(index.PlaceOf(a)))
	v.add(scopeOf(a), "%s: metadata %s, hosted %s", a, metadataText(s.Metadata(index.PlaceOf(a))), metadataText(s.Metadata(index.Place{Address: a, Merged: true})))
	v.add(scopeOf(a), "%s: withdrawn %s, hosted %s", a, withdrawnText(s.WithdrawnVersions(index.PlaceOf(a))), withdrawnText(s.WithdrawnVersions(index.Place{Address: a, Merged: true})))
	if a.IsModule() {
		v.module(a, "module", s.Module(index.PlaceOf(a)))
		v.module(a, "hosted module", s.Module(index.Place{Address: a, Merged: true}))
		return
	}
	v.provider(a, "provider", s.Provider(index.PlaceOf(a)))
	v.provider(a, "hosted provider", s.Provider(index.Place{Address: a, Merged: true}))
}

func metadataText(f *registryhcl.File) string {
	if f == nil {
		return "none"
	}
	return fmt.Sprintf("%q %q %q %v %v", f.Description, f.Source, f.Owner, noticesText(f.Deprecated), noticesText(f.Withdrawn))
}

func noticesText(notices []registryhcl.Notice) (texts []string) {
	for _, n := range notices {
		texts = append(texts, fmt.Sprintf("%s: %s", n.Versions, noticeText(&n)))
	}
	return texts
}

func noticeText(n *registryhcl.Notice) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprintf("%q", n.String())
}

func withdrawnText(list []index.WithdrawnVersion) (text string) {
	for _, w := range list {
		text += fmt.Sprintf("[%s %s]", w.Version, noticeText(&w.Notice))
	}
	return text
}

func documentText(d *wire.Document) string {
	if d == nil {
		return "none"
	}
	return fmt.Sprintf("%s%s %v %s", bytes.TrimSpace(d.Head), bytes.TrimSpace(d.Tail), d.Links, d.Tag)
}

func (v *view) provider(a address.Address, what string, p *index.Provider) {
	add := func(format string, args ...any) {
		v.add(scopeOf(a), "%s of %s: %s", what, a, fmt.Sprintf(format, args...))
	}
	if p == nil {
		return
	}
	add("address %s, latest %s, metadata %s, withdrawn %s", p.Address, p.Latest().Version, metadataText(p.Metadata()), withdrawnText(p.Withdrawn()))
	add("versions %s", documentText(p.Versions()))
	add("index %s", documentText(p.Index()))
	for _, r := range p.Releases {
		add("%s: hostname %q, signature %s, protocols %v, published %v, deprecated %s, missing %v, found %v",
			r.Version, r.Hostname, r.Signature, r.Protocols(), r.Published().UTC(), noticeText(r.Deprecated()), r.Missing(), p.Release(r.Version) == r)
		for _, k := range r.Signature.Keys {
			add("%s: key %s %x, expires %v", r.Version, k.ID, sha256.Sum256([]byte(k.Armor)), k.Expires.UTC())
		}
		checksums, signature := r.Documents()
		add("%s: SHA256SUMS %q, signature %x", r.Version, checksums, sha256.Sum256(signature))
		add("%s: archives %s", r.Version, documentText(r.Archives()))
		for _, k := range r.Packages {
			add("%s: package %s: %s, %v, found %v, download %s", r.Version, k.Platform, v.file(k.File), k.Hashes(), p.File(k.File.Name) == k.File, documentText(k.Download()))
		}
		add("%s: docs %s", r.Version, v.docs(r))
	}
}

// file describes a file that clients download. A file that is not as the snapshot says
// cannot be opened.
func (v *view) file(f *index.File) string {
	text := fmt.Sprintf("%s %s %s %d %s %s at %s, folder %v, immutable %v, tag %s", f.Name, f.Version, f.Platform, f.Size, f.SHA256, f.ContentType, f.Path(), f.IsFolder(), f.Immutable(), f.Tag())
	o, err := v.snapshot.Open(f)
	if err != nil {
		return fmt.Sprintf("%s, not opened: %v", text, err)
	}
	defer o.Close()
	content, err := io.ReadAll(o)
	return fmt.Sprintf("%s, sound %v, error %v", text, wire.SHA256Of(content) == f.SHA256, err)
}

func (v *view) docs(r *index.Release) string {
	if r.Docs() == "" {
		return "none"
	}
	d, err := v.snapshot.Docs(context.Background(), r)
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for i := range d.Pages {
		p := &d.Pages[i]
		page, _, err := v.snapshot.ReadDoc(context.Background(), p)
		fmt.Fprintf(&text, "[%s %s %q %s %q %v]", p.Category, p.Slug, p.Title, p.Path, page, err)
	}
	return text.String()
}

func (v *view) module(a address.Address, what string, m *index.Module) {
	add := func(format string, args ...any) {
		v.add(scopeOf(a), "%s of %s: %s", what, a, fmt.Sprintf(format, args...))
	}
	if m == nil {
		return
	}
	add("address %s, latest %s, metadata %s, withdrawn %s", m.Address, m.Latest().Version, metadataText(m.Metadata()), withdrawnText(m.Withdrawn()))
	add("list %s", documentText(m.List()))
	for _, r := range m.Versions {
		add("%s: hostname %q, %s %s, folder %q, doubts %v, summary %+v, published %v, deprecated %s, found %v",
			r.Version, r.Hostname, v.file(r.Archive), r.FileHashes, r.Folder, r.Doubts, r.Summary(), r.Published().UTC(), noticeText(r.Deprecated()), m.Version(r.Version) == r)
	}
}

// catalog adds what lists and search say.
func (v *view) catalog() {
	c := catalog.For(v.snapshot)
	for _, e := range slices.Concat(c.Modules, c.Providers) {
		v.entry("catalog", e)
		for _, h := range hostnames[1:] {
			if merged, ok := c.Merged(e.Address.WithHostname(h)); ok && merged != nil {
				v.entry("merged catalog", merged)
			}
		}
	}
	for _, h := range hostnames[1:] {
		v.add(scope{kind: totalsKind}, "catalog has %s: %v", h, c.Has(h))
	}
}

func (v *view) entry(what string, e *catalog.Entry) {
	v.add(scopeOf(e.Address), "%s: %s %s of %d, %q %q %q, %v, deprecated %s", what, e.Address, e.Version, e.Versions, e.Description, e.Source, e.Owner, e.Published.UTC(), noticeText(e.Deprecated))
}

// without returns the lines that no pattern covers. If there are patterns, the totals are
// left out as well: they include what the patterns cover.
func (v *view) without(patterns []scope) (lines []string) {
	for _, l := range v.lines {
		if l.kind == totalsKind && len(patterns) > 0 || slices.ContainsFunc(patterns, func(p scope) bool { return p.covers(l.scope) }) {
			continue
		}
		lines = append(lines, l.text)
	}
	return lines
}

// difference returns how two views differ, apart from what the patterns cover; empty if they
// do not.
func difference(got, want *view, patterns []scope) string {
	a, b := got.without(patterns), want.without(patterns)
	if slices.Equal(a, b) {
		return ""
	}
	var text strings.Builder
	n := 0
	list := func(sign string, lines, others []string) {
		known := make(map[string]bool)
		for _, l := range others {
			known[l] = true
		}
		for _, l := range lines {
			if !known[l] && n < 40 {
				fmt.Fprintf(&text, "%s %s\n", sign, l)
				n++
			}
		}
	}
	list("-", b, a)
	list("+", a, b)
	if n == 0 {
		return "the same lines are in another order, or there more than once\n"
	}
	return text.String()
}

// folderOf returns the folder to name to the index after a change of a file: of an address
// in its normal spelling, or of keys. It is empty outside of these.
func folderOf(name string) string {
	if tree.IsBelow(name, tree.ReportedKeys) {
		return tree.ReportedKeys
	}
	if a, ok := addressOfPath(name); ok {
		return tree.ReportedFolder(a)
	}
	return ""
}
