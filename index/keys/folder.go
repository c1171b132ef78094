package keys

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Folder has the keys of all namespaces that a scan knows.
type Folder struct {
	files map[Namespace]*File

	// Folders that no scan has been able to list, in which there may be unknown files: the
	// folders of some hostnames, or the whole.
	unlisted    map[svchost.Hostname]bool
	allUnlisted bool

	missing map[Namespace]*tree.Finding // about files that are gone, or whose copies cannot be read
	walked  *report.Report              // the files and problems in the folder

	// Report has the files and problems in the folder, and what is missing.
	Report *report.Report

	// Failed says why a copy cannot be read; empty: no copy has failed.
	Failed string

	// Faulty means that a file could not be read, and may be readable a moment later.
	Faulty bool

	// Young means that a file is too young to be remembered.
	Young bool
}

// IsEmpty reports whether there are no keys.
func (k *Folder) IsEmpty() bool { return len(k.files) == 0 }

// For returns the keys of a namespace; nil if there are none.
func (k *Folder) For(n Namespace) *File {
	if k == nil {
		return nil
	}
	return k.files[n]
}

// listed reports whether the folder of a hostname has been listed, by this scan or an
// earlier one.
func (k *Folder) listed(hostname svchost.Hostname) bool {
	return k != nil && !k.allUnlisted && !k.unlisted[hostname]
}

// isGone reports whether there is no file of a namespace.
func (k *Folder) isGone(n Namespace) bool {
	file := k.For(n)
	return file == nil && k.listed(n.Hostname) || file != nil && file.gone
}

// keep copies the files of the last scan that are in a folder which cannot be listed.
func (k *Folder) keep(last *Folder, lies func(Namespace) bool) {
	if last == nil {
		return
	}
	for n, file := range last.files {
		if lies(n) && file.IsFile() {
			k.files[n] = file
		}
	}
}

// A Walk lists folders of keys for a Reader.
type Walk interface {
	layout.Walk

	// List returns the usable entries of a directory, and the entries that cannot be read.
	List(part tree.Part, dir, report string) (usable, unreadable []tree.Entry, bad *tree.Finding)

	// Withhold reports a file or folder without an address.
	Withhold(report string, f *tree.Finding)

	// Put remembers the record of a file.
	Put(file *tree.Location, d memo.Record)

	// Ends reports whether a file could not be read that may be readable a moment later, and
	// whether a file was too young to be remembered.
	Ends() (faulty, young bool)
}

// A Reader reads the keys in a tree.
type Reader struct {
	Part   tree.Part // the part of the tree with the keys
	Walk   Walk
	Report *report.Report // of the Walk
	Memo   *memo.Memo
	Last   *Folder   // as of the last scan; nil before the first
	Now    time.Time // when the scan began
}

// Read reads keys/[HOSTNAME/]NAMESPACE.asc of all namespaces. Of two spellings of a
// namespace, the one in lower case is used. A file that cannot be read, or that someone is
// writing, keeps its last content.
func (r *Reader) Read() *Folder {
	k := r.read()
	faulty, young := r.Walk.Ends()
	k.Faulty, k.Young = faulty, k.Young || young
	return k
}

func (r *Reader) read() *Folder {
	k := &Folder{files: make(map[Namespace]*File), unlisted: make(map[svchost.Hostname]bool), walked: r.Report, Report: r.Report}
	entries, bad := r.list(".", "keys")
	if bad != nil {
		k.keep(r.Last, func(Namespace) bool { return true })
		if k.allUnlisted = r.Last == nil || r.Last.allUnlisted; !k.allUnlisted {
			k.unlisted = r.Last.unlisted
		}
		return k
	}
	for _, e := range lowerCaseFirst(entries) {
		isFolder := e.Bad == nil && e.Info.IsDir() || e.Bad != nil && !strings.HasSuffix(e.Name, suffix)
		if isFolder && address.IsHostname(e.Name) {
			r.readHostname(k, e)
		} else {
			r.readFile(k, "", e)
		}
	}
	return k
}

// readHostname reads the keys files in the folder of a hostname.
func (r *Reader) readHostname(k *Folder, e tree.Entry) {
	report := path.Join("keys", e.Name)
	hostname, err := address.ParseHostname(e.Name)
	if err != nil {
		r.Report.Withhold(report, address.Address{}, "", tree.Findingf(tree.BadName, "%v", err))
		return
	}
	var entries []tree.Entry
	bad := e.Bad
	if bad != nil {
		r.Walk.Withhold(report, bad)
	} else {
		entries, bad = r.list(e.Path(), report)
	}
	if bad != nil {
		k.keep(r.Last, func(n Namespace) bool { return n.Hostname == hostname })
		k.unlisted[hostname] = !r.Last.listed(hostname)
		return
	}
	for _, e := range lowerCaseFirst(entries) {
		r.readFile(k, hostname, e)
	}
}

// list returns the entries of a folder of keys, including entries that cannot be read,
// which must not count as absent.
func (r *Reader) list(dir, report string) (entries []tree.Entry, bad *tree.Finding) {
	usable, unreadable, bad := r.Walk.List(r.Part, dir, report)
	return slices.Concat(usable, unreadable), bad
}

// lowerCaseFirst moves entries in lower case before the others.
func lowerCaseFirst(entries []tree.Entry) []tree.Entry {
	slices.SortStableFunc(entries, func(a, b tree.Entry) int {
		lower := func(e tree.Entry) int {
			if e.Name == strings.ToLower(e.Name) {
				return 0
			}
			return 1
		}
		return cmp.Compare(lower(a), lower(b))
	})
	return entries
}

// readFile adds the keys of a file, or reports why it cannot.
func (r *Reader) readFile(k *Folder, hostname svchost.Hostname, e tree.Entry) {
	report := path.Join("keys", e.Path())
	withhold := func(f *tree.Finding) {
		r.Report.Withhold(report, address.Address{}, "", f)
	}
	name, ok := strings.CutSuffix(e.Name, suffix)
	switch {
	case !ok && e.Bad != nil:
		withhold(e.Bad)
		return
	case !ok || e.Bad == nil && e.Info.IsDir():
		layout.Strays{Report: r.Report, Walk: r.Walk}.InKeys(r.Part, report, e)
		return
	}
	namespace, err := address.ParseNamespace(name)
	if err != nil {
		withhold(tree.Findingf(tree.BadName, "%v", err))
		return
	}
	of := Namespace{Hostname: hostname, Name: namespace}
	if k.files[of] != nil {
		withhold(tree.Findingf(tree.Duplicate, "another file has the keys of this namespace, %s.asc: move its keys there", namespace))
		return
	}
	last := r.Last.For(of)
	if !last.IsFile() {
		last = nil
	}
	file, err := r.openFile(e, last)
	var bad *tree.Finding
	switch {
	case err == nil:
		for _, err := range file.bad {
			withhold(tree.Findingf(tree.BadKeys, "%v", err))
		}
	case errors.As(err, &bad) && (bad.Reason == tree.Empty || bad.Reason == tree.TooLarge):
		withhold(bad)
		file = new(File)
	default:
		r.Walk.Withhold(report, tree.AsFinding(err))
		if file = last; file == nil {
			file = &File{unread: true}
		}
	}
	if e.Bad == nil && file.isCutOff(last) && !tree.StampOf(e.Info).Settled(r.Now) {
		file, k.Young = last, true
	}
	k.files[of] = file
}

// openFile returns the keys in a file, from the last scan or the memo if it has not
// changed.
func (r *Reader) openFile(e tree.Entry, last *File) (*File, error) {
	if e.Bad != nil {
		return nil, e.Bad
	}
	now := tree.StampOf(e.Info)
	at := &tree.Location{Dir: e.Dir, Name: e.Name, Report: path.Dir(path.Join("keys", e.Path()))}
	known, remembered := r.Memo.Get(at, now)
	if last != nil && last.Keyring != nil && last.settled && last.stamp == now {
		return last, nil
	}
	if remembered {
		if file := recallFile(known); file != nil {
			return file, nil
		}
	}
	content, err := r.Part.ReadDocument(e.Path())
	if err != nil {
		return nil, err
	}
	file := newFile(content, now)
	file.settled = now.Settled(r.Now)
	at.DetachName()
	r.Walk.Put(at, file.digest())
	return file, nil
}

// WithCopies returns the keys, with copies in place of the files of namespaces that are gone or
// cannot be read.
func (k *Folder) WithCopies(ctx context.Context, m *CopyMemo, namespaces []Namespace) *Folder {
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	files, errs := make([]*File, len(namespaces)), make([]error, len(namespaces))
	eachCopy(namespaces, func(i int, n Namespace) { files[i], errs[i] = m.substitute(ctx, n, k.isGone(n)) })
	changed := k
	for i, n := range namespaces {
		if files[i] == nil && errs[i] == nil && k.files[n] == nil {
			continue
		}
		if changed == k {
			changed = k.clone()
		}
		changed.replace(n, files[i], errs[i])
	}
	if changed != k {
		changed.finish()
	}
	return changed
}

// clone returns a copy that can be changed.
func (k *Folder) clone() *Folder {
	other := *k
	other.files, other.missing = maps.Clone(k.files), make(map[Namespace]*tree.Finding)
	maps.Copy(other.missing, k.missing)
	return &other
}

// replace replaces the keys of a namespace by the copy of its keys file, which may be nil.
// err says why there may be a copy that cannot be read.
func (k *Folder) replace(n Namespace, file *File, err error) {
	delete(k.missing, n)
	if file == nil {
		delete(k.files, n)
	} else {
		k.files[n] = file
	}
	switch {
	case err != nil:
		k.missing[n] = tree.Faultf(tree.Passing, tree.Unreadable, "whether the namespace had keys cannot be read: %v", tree.WithoutPath(err))
	case file != nil && file.gone && file.copied != nil:
		k.missing[n] = n.Missing()
	}
}

// finish adds what is missing to the report.
func (k *Folder) finish() {
	k.Report, k.Failed = report.New(), ""
	k.Report.Merge(k.walked)
	for n, f := range k.missing {
		k.Report.Withhold(n.File(), address.Address{}, "", f)
		if f.Passes() {
			k.Failed = f.Line(n.File())
		}
	}
}
