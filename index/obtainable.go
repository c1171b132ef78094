package index

import (
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"
)

// An Obtainable is a package that a mirror does not hold and can get, with what
// is known of it: the digest that the signed SHA256SUMS of its release has, or
// what another mirror says.
type Obtainable struct {
	Platform
	Name   string
	SHA256 SHA256   // zero: not known
	H1     []string // "h1:…", of the files in it
}

// hashes are those that clients can check (checklist 68).
func (o Obtainable) hashes() []string {
	if o.SHA256 == (SHA256{}) {
		return o.H1
	}
	return append(slices.Clone(o.H1), "zh:"+o.SHA256.String())
}

// ObtainableIn are the packages of one version of the provider called typ that a
// SHA256SUMS lists, ordered by platform. Whatever else it lists is left out.
func ObtainableIn(typ, version string, sums Checksums) []Obtainable {
	var list []Obtainable
	for name, sum := range sums {
		f, ok, _ := parseReleaseFile(typ, name)
		if ok && f.kind == packageFile && f.version.String() == version {
			list = append(list, Obtainable{Platform: f.platform, Name: name, SHA256: sum})
		}
	}
	slices.SortFunc(list, func(a, b Obtainable) int { return strings.Compare(a.Platform.String(), b.Platform.String()) })
	return list
}

// SignedByPublisher tells whether the SHA256SUMS of r is its publisher's, which
// lists all packages there are.
func (r *Release) SignedByPublisher() bool { return r.signature != nil && r.signature.sign == nil }

// Missing are the packages that are not held of a release its publisher signed.
// Of one that the registry signed nothing is known beyond what is held.
func (p *Provider) Missing(r *Release) []Obtainable {
	if !r.SignedByPublisher() {
		return nil
	}
	sums, err := ParseChecksums(r.checksums.content)
	if err != nil {
		return nil // it was verified, so this is not
	}
	return slices.DeleteFunc(ObtainableIn(p.Address.Type, r.Version, sums), func(o Obtainable) bool {
		return r.Package(o.OS, o.Arch) != nil
	})
}

// MirrorIndex is index.json of a provider with what the mirror holds of it, which
// may be nil, and further versions that it can get.
func MirrorIndex(held *Provider, further []string) *Document {
	all := make(map[string]*version.Version)
	add := func(text string) {
		if v, err := ParseProviderVersion(text); err == nil {
			all[text] = v
		}
	}
	for _, text := range further {
		add(text)
	}
	if held != nil {
		for _, r := range held.Releases {
			add(r.Version)
		}
	}
	versions := make([]*version.Version, 0, len(all))
	for _, v := range all {
		versions = append(versions, v)
	}
	newestFirst(versions, func(v *version.Version) *version.Version { return v })
	var w documentWriter
	writeVersions(&w, versions, func(v *version.Version) string { return v.String() })
	return w.document(nil)
}

// MirrorArchives is VERSION.json of a release with what the mirror holds of it,
// which may be nil, and the packages that it can get.
func MirrorArchives(held *Release, further []Obtainable) *Document {
	return mirrorArchives(held, further, Obtainable.hashes)
}

// MirrorArchivesH1 is MirrorArchives for clients that know h1: only. They refuse
// a list of hashes without one, and take a package that has no list.
func MirrorArchivesH1(held *Release, further []Obtainable) *Document {
	return mirrorArchives(held, further, func(o Obtainable) []string {
		if len(o.H1) == 0 {
			return nil
		}
		return o.hashes()
	})
}

func mirrorArchives(held *Release, further []Obtainable, hashes func(Obtainable) []string) *Document {
	var w documentWriter
	w.WriteString(`{"archives":{`)
	if held != nil {
		for _, p := range held.Packages {
			w.archive(p.Platform, p.hashes(), p.File.Name)
		}
	}
	for _, o := range further {
		if held == nil || held.Package(o.OS, o.Arch) == nil {
			w.archive(o.Platform, hashes(o), o.Name)
		}
	}
	w.WriteString(`}}`)
	return w.document(nil)
}

// writeVersions writes index.json. The values are objects (checklist 64).
func writeVersions[T any](w *documentWriter, list []T, text func(T) string) {
	w.WriteString(`{"versions":{`)
	for i, v := range list {
		if i > 0 {
			w.WriteByte(',')
		}
		w.value(text(v))
		w.WriteString(`:{}`)
	}
	w.WriteString(`}}`)
}

// archive writes one entry of VERSION.json, and the comma before it. The hashes are
// optional.
func (w *documentWriter) archive(p Platform, hashes []string, file string) {
	if b := w.Bytes(); b[len(b)-1] != '{' {
		w.WriteByte(',')
	}
	w.value(p.String())
	w.WriteString(`:{`)
	if hashes != nil {
		w.WriteString(`"hashes":`)
		w.value(hashes)
		w.WriteByte(',')
	}
	w.WriteString(`"url":`)
	w.link(file)
	w.WriteByte('}')
}
