package index

import (
	"cmp"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// keysOf names the namespace of a keys file.
type keysOf struct {
	hostname  svchost.Hostname
	namespace string
}

// file returns where the keys of a namespace are expected, in the form that users write.
func (k keysOf) file() string { return "keys/" + k.String() + keysSuffix }

// String returns the namespace in the form that users write: acme, or
// registry.terraform.io/hashicorp.
func (k keysOf) String() string {
	if k.hostname == "" {
		return k.namespace
	}
	return address.DisplayHostname(k.hostname) + "/" + k.namespace
}

const keysSuffix = ".asc"

// unsignedLine is the only line in the keys file of a namespace that is not signed.
const unsignedLine = "unsigned"

// SaysUnsigned reports whether a keys file says that its namespace is not signed, so that
// its releases count as if the namespace had no keys.
func SaysUnsigned(content []byte) bool { return strings.TrimSpace(string(content)) == unsignedLine }

// A keysFile has the keys that count for a namespace: the keys of its keys file, or of the
// copy of a file that is gone or cannot be read.
type keysFile struct {
	*signing.Keyring         // nil: no key counts, and no other may take its place
	bad              []error // about blocks that are left out
	stamp            tree.Stamp
	sum              wire.SHA256 // of the file, or of the copy

	unsigned bool     // the file says that the namespace is not signed
	copied   *keyCopy // replaces the file; nil: these are the file's keys
	unread   bool     // neither the file nor a copy could be read
	gone     bool     // there is no file
}

// Sum identifies the keys in the file.
func (k *keysFile) Sum() wire.SHA256 { return k.sum }

// isFile reports whether the keys come from the file itself, as it was read now or last.
func (k *keysFile) isFile() bool { return k != nil && k.copied == nil && !k.unread }

// verifies reports whether there is a key that signatures can be verified with.
func (k *keysFile) verifies() bool {
	return k != nil && !k.unsigned && k.Keyring != nil && len(k.Keys()) > 0
}

// keysForm changes when other keys of a file are used.
const keysForm = 1

// A keysRecord is the form of a keys file in the memo.
type keysRecord struct {
	Form     int // keysForm, or the file is read again
	Keys     []signing.PublicKey
	Problems []string `json:",omitempty"` // with blocks that are left out
	Unsigned bool     `json:",omitempty"`
}

// digest returns the record for the memo.
func (k *keysFile) digest() memo.Record {
	known := keysRecord{Form: keysForm, Keys: k.Keys(), Unsigned: k.unsigned}
	for _, err := range k.bad {
		known.Problems = append(known.Problems, err.Error())
	}
	content, _ := json.Marshal(known) // texts and times always encode
	return memo.Record{Stamp: k.stamp, Digest: archive.Digest{SHA256: k.sum, Size: k.stamp.Size, Content: content}}
}

// recallKeysFile returns the file with that record, or nil.
func recallKeysFile(d memo.Record) *keysFile {
	var known keysRecord
	if json.Unmarshal(d.Content, &known) != nil || known.Form != keysForm {
		return nil
	}
	file := &keysFile{Keyring: signing.KnownKeyring(known.Keys), stamp: d.Stamp, sum: d.SHA256, unsigned: known.Unsigned}
	for _, problem := range known.Problems {
		file.bad = append(file.bad, errors.New(problem))
	}
	return file
}

// newKeysFile reads the content of a keys file.
func newKeysFile(content []byte, now tree.Stamp) *keysFile {
	file := &keysFile{stamp: now, sum: wire.SHA256Of(content)}
	if file.unsigned = SaysUnsigned(content); file.unsigned {
		file.Keyring = signing.KnownKeyring(nil)
	} else {
		file.Keyring, file.bad = signing.ReadKeyring(content)
	}
	return file
}

// A keysFolder has the keys of all namespaces that a scan knows.
type keysFolder struct {
	files map[keysOf]*keysFile

	// Folders that no scan has been able to list, in which there may be unknown files: the
	// folders of some hostnames, or the whole.
	unlisted    map[svchost.Hostname]bool
	allUnlisted bool

	missing map[keysOf]*tree.Finding // about files that are gone, or whose copies cannot be read
	failed  string                   // why a copy cannot be read; empty: no copy has failed

	walked *Report // the files and problems in the folder
	report *Report // the same, and what is missing
	faulty bool    // a file could not be read, and may be readable a moment later
	young  bool    // a file is too young to be remembered
}

// keysFor returns the keys of a namespace; nil if there are none.
func (k *keysFolder) keysFor(n keysOf) *keysFile {
	if k == nil {
		return nil
	}
	return k.files[n]
}

// listed reports whether the folder of a hostname has been listed, by this scan or an
// earlier one.
func (k *keysFolder) listed(hostname svchost.Hostname) bool {
	return k != nil && !k.allUnlisted && !k.unlisted[hostname]
}

// isGone reports whether there is no file of a namespace.
func (k *keysFolder) isGone(n keysOf) bool {
	file := k.keysFor(n)
	return file == nil && k.listed(n.hostname) || file != nil && file.gone
}

// keep copies the files of the last scan that are in a folder which cannot be listed.
func (k *keysFolder) keep(last *keysFolder, lies func(keysOf) bool) {
	if last == nil {
		return
	}
	for n, file := range last.files {
		if lies(n) && file.isFile() {
			k.files[n] = file
		}
	}
}

// readKeys reads keys/[HOSTNAME/]NAMESPACE.asc of all namespaces. Of two spellings of a
// namespace, the one in lower case is used. A file that cannot be read keeps its last
// content.
func (s *scan) readKeys() *keysFolder {
	w := s.newWalker(nil)
	k := &keysFolder{files: make(map[keysOf]*keysFile), unlisted: make(map[svchost.Hostname]bool), walked: w.report, report: w.report}
	w.readKeys(k)
	k.faulty, k.young = w.faulty, w.young
	return k
}

func (w *walker) readKeys(k *keysFolder) {
	last := w.scan.lastKeys()
	entries, bad := w.listKeys(".", "keys")
	if bad != nil {
		k.keep(last, func(keysOf) bool { return true })
		if k.allUnlisted = last == nil || last.allUnlisted; !k.allUnlisted {
			k.unlisted = last.unlisted
		}
		return
	}
	for _, e := range lowerCaseFirst(entries) {
		isFolder := e.Bad == nil && e.Info.IsDir() || e.Bad != nil && !strings.HasSuffix(e.Name, keysSuffix)
		if isFolder && address.IsHostname(e.Name) {
			w.readKeysOfHostname(k, e)
		} else {
			w.readKeysFile(k, "", e)
		}
	}
}

// lastKeys returns the keys of the last scan; nil before the first.
func (s *scan) lastKeys() *keysFolder {
	if s.last == nil {
		return nil
	}
	return s.last.keys
}

// readKeysOfHostname reads the keys files in the folder of a hostname.
func (w *walker) readKeysOfHostname(k *keysFolder, e tree.Entry) {
	report := path.Join("keys", e.Name)
	hostname, err := address.ParseHostname(e.Name)
	if err != nil {
		w.report.Withhold(report, address.Address{}, "", tree.Findingf(tree.BadName, "%v", err))
		return
	}
	var entries []tree.Entry
	bad := e.Bad
	if bad != nil {
		w.withhold(report, bad)
	} else {
		entries, bad = w.listKeys(e.Path(), report)
	}
	if bad != nil {
		k.keep(w.scan.lastKeys(), func(n keysOf) bool { return n.hostname == hostname })
		k.unlisted[hostname] = !w.scan.lastKeys().listed(hostname)
		return
	}
	for _, e := range lowerCaseFirst(entries) {
		w.readKeysFile(k, hostname, e)
	}
}

// listKeys returns the entries of a folder of keys, including entries that cannot be read,
// which must not count as absent.
func (w *walker) listKeys(dir, report string) (entries []tree.Entry, bad *tree.Finding) {
	usable, unreadable, bad := w.list(w.scan.tree.Keys, dir, report)
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

// readKeysFile adds the keys of a file, or reports why it cannot.
func (w *walker) readKeysFile(k *keysFolder, hostname svchost.Hostname, e tree.Entry) {
	report := path.Join("keys", e.Path())
	withhold := func(f *tree.Finding) {
		w.report.Withhold(report, address.Address{}, "", f)
	}
	name, ok := strings.CutSuffix(e.Name, keysSuffix)
	switch {
	case !ok && e.Bad != nil:
		withhold(e.Bad)
		return
	case !ok || e.Bad == nil && e.Info.IsDir():
		w.strays().InKeys(w.scan.tree.Keys, report, e)
		return
	}
	namespace, err := address.ParseNamespace(name)
	if err != nil {
		withhold(tree.Findingf(tree.BadName, "%v", err))
		return
	}
	of := keysOf{hostname, namespace}
	if k.files[of] != nil {
		withhold(tree.Findingf(tree.Duplicate, "another file has the keys of this namespace, %s.asc: move its keys there", namespace))
		return
	}
	last := w.scan.lastKeys().keysFor(of)
	if !last.isFile() {
		last = nil
	}
	file, err := w.openKeysFile(e, last)
	var bad *tree.Finding
	switch {
	case err == nil:
		for _, err := range file.bad {
			withhold(tree.Findingf(tree.BadKeys, "%v", err))
		}
	case errors.As(err, &bad) && (bad.Reason == tree.Empty || bad.Reason == tree.TooLarge):
		withhold(bad)
		file = new(keysFile)
	default:
		w.withhold(report, tree.AsFinding(err))
		if file = last; file == nil {
			file = &keysFile{unread: true}
		}
	}
	k.files[of] = file
}

// openKeysFile returns the keys in a file, from the last scan or the memo if it has not
// changed.
func (w *walker) openKeysFile(e tree.Entry, last *keysFile) (*keysFile, error) {
	if e.Bad != nil {
		return nil, e.Bad
	}
	now := tree.StampOf(e.Info)
	at := &tree.Location{Dir: e.Dir, Name: e.Name, Report: path.Dir(path.Join("keys", e.Path()))}
	known, remembered := w.scan.memo.Get(at, now)
	if last != nil && last.Keyring != nil && last.stamp == now && now.Settled(w.scan.now) {
		return last, nil
	}
	if remembered {
		if file := recallKeysFile(known); file != nil {
			return file, nil
		}
	}
	content, err := w.scan.tree.Keys.ReadDocument(e.Path())
	if err != nil {
		return nil, err
	}
	file := newKeysFile(content, now)
	at.DetachName()
	w.put(at, file.digest())
	return file, nil
}

// KeysFile returns where the keys of a namespace are, or would be, in any spelling: a part
// of the tree, and the path in it. The hostname is empty for a hosted namespace. The error
// is a StorageError: the place is unknown.
func KeysFile(t tree.Tree, hostname svchost.Hostname, namespace string) (in tree.Part, name string, err error) {
	dir := "."
	if hostname != "" {
		// The spelling that `terraform providers mirror` writes.
		dir, err = findKeys(t.Keys, dir, address.DisplayHostname(hostname), func(name string) bool {
			h, err := address.ParseHostname(name)
			return err == nil && h == hostname
		})
	}
	if err == nil {
		name, err = findKeys(t.Keys, dir, namespace+keysSuffix, func(name string) bool {
			name, ok := strings.CutSuffix(name, keysSuffix)
			parsed, err := address.ParseNamespace(name)
			return ok && err == nil && parsed == namespace
		})
	}
	return t.Keys, name, err
}

// findKeys returns the path of a name in a folder of keys, or of another spelling of it.
func findKeys(p tree.Part, dir, name string, same func(string) bool) (string, error) {
	normal := path.Join(dir, name)
	if exists, err := p.Exists(normal); exists || err != nil {
		return normal, err
	}
	entries, err := p.List(dir)
	if err != nil {
		return "", tree.StorageError(err)
	}
	for _, e := range lowerCaseFirst(entries) {
		if e.Name != name && !same(e.Name) {
			continue
		}
		if e.Bad != nil {
			return "", tree.StorageError(e.Bad)
		}
		return e.Path(), nil
	}
	return normal, nil
}
