package index

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A fault preserves the state of its folder from the last scan, and nothing else: of the
// folder of an address, of all such folders below a folder that cannot be listed, or of the
// files of one version. A folder that no scan has read yet is unknown: it may or may not
// exist.

// A keptFolder has a scan's results for the folder of an address, in case a later scan
// cannot read the folder.
type keptFolder struct {
	folder   folder
	walked   *Report // the report of its walk
	empty    bool    // it had nothing to offer
	provider offeredProvider
	module   offeredModule
}

// keepFolders returns the folders of addresses that the last scan has found in a folder on the way
// to them that cannot be read now. If no scan could read the folder yet, it is unknown.
func (w *walker) keepFolders(f folder) []folder {
	s := w.scan
	s.memo.RetainBelow(f.report)
	var folders []folder
	for _, report := range slices.Sorted(maps.Keys(s.last.kept)) {
		if k := s.last.kept[report]; tree.IsBelow(report, f.report) {
			kept := k.folder
			kept.part, kept.kept = f.part, k
			folders = append(folders, kept)
		}
	}
	known := false
	for report := range s.last.known {
		if tree.IsBelow(report, f.report) {
			w.known = append(w.known, report)
			known = known || report == f.report
		}
	}
	for _, u := range s.last.unknown() {
		if u.report != f.report && tree.IsBelow(u.report, f.report) {
			w.unknown = append(w.unknown, u)
		}
	}
	if !known && s.last.kept[f.report] == nil {
		w.unknown = append(w.unknown, f)
	}
	return folders
}

// keepAddress keeps the last scan's results for the folder of an address, which cannot be
// read now. If no scan could read the folder yet, it is unknown.
func (w *walker) keepAddress(f *folder) {
	w.scan.memo.RetainBelow(f.report)
	w.unread, w.recalled, w.depends = nil, 0, true
	if f.kept = w.scan.last.kept[f.report]; f.kept == nil {
		f.metadata, f.unknown = nil, true
		w.unknown = append(w.unknown, *f)
		return
	}
	f.metadata = f.kept.folder.metadata
	w.report.merge(f.kept.walked)
}

// offeredProvider returns the provider that stays offered. A version that it does not have
// may exist.
func (k *keptFolder) offeredProvider() offeredProvider {
	o := k.provider
	o.passing, o.pending.unreadable = true, true
	return o
}

// offeredModule returns the module that stays offered, like offeredProvider.
func (k *keptFolder) offeredModule() offeredModule {
	o := k.module
	o.pending.unreadable = true
	return o
}

// setAside leaves an archive that cannot be read at the moment to a later scan.
func (w *walker) setAside(a *job) {
	if w.scan.live && a.Bad.Passes() {
		w.failed = failureAt(a.ReportPath(), a.Bad)
		a.Bad, a.pending = nil, true
	}
}

// failureAt says which file could not be read, and why.
func failureAt(report string, f *tree.Finding) string { return report + ": " + f.Detail }

// unknown returns the folders that neither the last scan nor one before it could read.
func (o scanResult) unknown() []folder {
	if o.snapshot == nil {
		return nil
	}
	return o.snapshot.unknown
}

// covers reports whether an address may lie in a folder whose path is the beginning of an
// address.
func (f *folder) covers(a address.Address) bool {
	part, _, _ := strings.Cut(f.report, "/")
	if (part == "modules") != a.IsModule() {
		return false
	}
	if f.hostname != "" {
		if hostname, err := address.ParseHostname(f.hostname); err != nil || hostname != a.Hostname {
			return false
		}
	} else if len(f.names) > 0 && a.Hostname != "" {
		return false
	}
	for i, name := range []string{a.Namespace, a.Name, a.System} {
		if i < len(f.names) && !strings.EqualFold(f.names[i], name) {
			return false
		}
	}
	return true
}

// below returns the folder of that name in f, on the way to an address.
func (f folder) below(name string) folder {
	next := folder{part: f.part, dir: tree.InFolder(f.dir, name), report: path.Join(f.report, name), hostname: f.hostname, names: f.names}
	if len(f.names) == 0 && f.hostname == "" && address.IsHostname(name) {
		next.hostname = name
	} else {
		next.names = append(f.names[:len(f.names):len(f.names)], name)
	}
	return next
}

// emptied returns the finding for a part of the tree in which the last scan found addresses
// and this scan finds none, as under the mount point of a volume that is not mounted. It
// returns nil if the part is not empty, or if the caller of the scan accepts that it is.
func (s *scan) emptied(report string) *tree.Finding {
	if s.accepts {
		return nil
	}
	for other, k := range s.last.kept {
		if !k.empty && tree.IsBelow(other, report) {
			return tree.Faultf(tree.Lasting, tree.Unreadable, "all that was in it is gone at once: is its volume mounted? If it is meant to be empty, ask for a rescan")
		}
	}
	return nil
}

// keepsResults reports whether the scan kept any results of the last scan.
func (s *scan) keepsResults(inv *inventory) bool {
	return slices.ContainsFunc(inv.providers, func(p *providerFolder) bool { return p.kept != nil }) ||
		slices.ContainsFunc(inv.modules, func(m *moduleFolder) bool { return m.kept != nil })
}
