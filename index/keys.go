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
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// keysOf names the namespace a keys file is for.
type keysOf struct {
	hostname  svchost.Hostname
	namespace string
}

// file is where the keys of a namespace are expected, as users write it.
func (k keysOf) file() string {
	if k.hostname == "" {
		return "keys/" + k.namespace + ".asc"
	}
	return "keys/" + address.DisplayHostname(k.hostname) + "/" + k.namespace + ".asc"
}

// A keysFile is a namespace's keys. One that cannot be read has no Keyring, and is
// there all the same: other keys must not take its place.
type keysFile struct {
	*signing.Keyring
	bad   []error // about blocks it leaves out
	stamp stamp
	sum   wire.SHA256 // of the file
}

// A keysRecord is what the memo remembers of a keys file.
type keysRecord struct {
	Keys     []signing.PublicKey
	Problems []string `json:",omitempty"` // with blocks that are left out
}

// digest is what the memo remembers.
func (f *keysFile) digest() digest {
	known := keysRecord{Keys: f.Keys()}
	for _, err := range f.bad {
		known.Problems = append(known.Problems, err.Error())
	}
	content, _ := json.Marshal(known) // texts and times always encode
	return digest{stamp: f.stamp, sha256: f.sum, size: f.stamp.size, content: content}
}

// recallKeysFile returns the file that a digest is of, or nil.
func recallKeysFile(d digest) *keysFile {
	var known keysRecord
	if json.Unmarshal(d.content, &known) != nil {
		return nil
	}
	file := &keysFile{Keyring: signing.KnownKeyring(known.Keys), stamp: d.stamp, sum: d.sha256}
	for _, problem := range known.Problems {
		file.bad = append(file.bad, errors.New(problem))
	}
	return file
}

// readKeys reads keys/[HOSTNAME/]NAMESPACE.asc of all namespaces. Of two spellings of
// a namespace the one in lower case is used.
func (w *walker) readKeys() map[keysOf]*keysFile {
	keys := make(map[keysOf]*keysFile)
	list := func(dir, report string) []entry {
		entries, unreadable, _ := w.list(w.scan.tree.Keys, dir, report)
		for _, e := range unreadable {
			w.withhold(inFolder(report, e.name), e.bad)
		}
		return lowerCaseFirst(entries)
	}
	for _, e := range list(".", "keys") {
		if e.info.IsDir() && address.IsHostname(e.name) {
			hostname, err := address.ParseHostname(e.name)
			if err != nil {
				w.report.withhold(found(BadName, "%v", err).at(path.Join("keys", e.name), address.Address{}, ""))
				continue
			}
			for _, e := range list(e.path(), path.Join("keys", e.name)) {
				w.readKeysFile(keys, hostname, e)
			}
			continue
		}
		w.readKeysFile(keys, "", e)
	}
	return keys
}

// lowerCaseFirst moves entries in lower case before the others.
func lowerCaseFirst(entries []entry) []entry {
	slices.SortStableFunc(entries, func(a, b entry) int {
		lower := func(e entry) int {
			if e.name == strings.ToLower(e.name) {
				return 0
			}
			return 1
		}
		return cmp.Compare(lower(a), lower(b))
	})
	return entries
}

// readKeysFile adds the keys of a file to keys, or reports why not.
func (w *walker) readKeysFile(keys map[keysOf]*keysFile, hostname svchost.Hostname, e entry) {
	report := path.Join("keys", e.path())
	name, ok := strings.CutSuffix(e.name, ".asc")
	if !ok || e.info.IsDir() {
		w.strayInKeys(report, e)
		return
	}
	withhold := func(f *finding) {
		w.report.withhold(f.at(report, address.Address{}, ""))
	}
	namespace, err := address.ParseNamespace(name)
	if err != nil {
		withhold(found(BadName, "%v", err))
		return
	}
	of := keysOf{hostname, namespace}
	if keys[of] != nil {
		withhold(found(Duplicate, "another file has the keys of this namespace, %s.asc: move its keys there", namespace))
		return
	}
	now := stampOf(e.info)
	at := &location{dir: e.dir, name: e.name, report: path.Dir(report)}
	known, remembered := w.scan.memo.get(at, now)
	file := w.scan.last.keys[of]
	if file != nil && (file.Keyring == nil || file.stamp != now || !now.settled(w.scan.now)) {
		file = nil
	}
	if file == nil && remembered {
		file = recallKeysFile(known)
	}
	if file == nil {
		content, err := w.scan.tree.Keys.read(e.path())
		if err != nil {
			withhold(asFinding(err))
			keys[of] = &keysFile{}
			return
		}
		file = &keysFile{stamp: now, sum: sha256Of(content)}
		file.Keyring, file.bad = signing.ReadKeyring(content)
		at.detachName()
		w.scan.memo.put(at, file.digest(), w.scan.now)
	}
	for _, err := range file.bad {
		withhold(found(BadKeys, "%v", err))
	}
	keys[of] = file
}
