package index

// The documents of the provider registry and the network mirror: what clients
// read of them is in the protocols of their names, and in what the clients do.

// versionsDocument lists releases for the provider registry, newest first. Nil
// without a release: an empty list gives clients a worse message than a 404
// (checklist 18).
func versionsDocument(releases []*Release) *Document {
	type listed struct {
		Version   string     `json:"version"`
		Protocols []string   `json:"protocols"`
		Platforms []Platform `json:"platforms"`
	}
	var list struct {
		Versions []listed `json:"versions"`
	}
	for _, r := range releases {
		if len(r.Keys) == 0 {
			continue // clients would refuse it: only the mirror can offer it
		}
		l := listed{Version: r.Version, Protocols: r.Protocols}
		for _, p := range r.Packages {
			l.Platforms = append(l.Platforms, p.Platform)
		}
		list.Versions = append(list.Versions, l)
	}
	if list.Versions == nil {
		return nil
	}
	var w documentWriter
	w.value(list)
	return w.document(nil)
}

// mirrorIndex is the mirror's index.json.
func mirrorIndex(releases []*Release) *Document {
	var w documentWriter
	writeVersions(&w, releases, func(r *Release) string { return r.Version })
	return w.document(nil)
}

// encode makes the documents of one release, when the first of them is asked
// for: most releases of a large tree never are.
func (r *Release) encode() { r.encoding.Do(r.encodeNow) }

func (r *Release) encodeNow() {
	r.archives = MirrorArchives(r, nil)
	if len(r.Keys) == 0 {
		return
	}
	tail := r.downloadTail()
	for _, p := range r.Packages {
		p.download = r.downloadDocument(p, tail)
	}
}

// hashes are those the mirror lists, h1: and zh: of every platform (checklist
// 69). Where the zip's entries have a hash of their own, clients compute both.
func (p *Package) hashes() []string {
	if p.packedH1 != "" {
		return []string{p.H1, p.packedH1, "zh:" + p.File.SHA256.String()}
	}
	return []string{p.H1, "zh:" + p.File.SHA256.String()}
}

// downloadDocument is the registry's answer for one platform. All links are in
// its head; the tail is the same for every platform.
func (r *Release) downloadDocument(p *Package, tail *sharedTail) *Document {
	var w documentWriter
	w.WriteString(`{"protocols":`)
	w.value(r.Protocols)
	w.WriteString(`,"os":`)
	w.value(p.OS)
	w.WriteString(`,"arch":`)
	w.value(p.Arch)
	w.WriteString(`,"filename":`)
	w.value(p.File.Name)
	w.WriteString(`,"download_url":`)
	w.link(p.File.Name)
	w.WriteString(`,"shasum":`)
	w.value(p.File.SHA256.String())
	w.WriteString(`,"shasums_url":`)
	w.link(r.checksums.Name)
	w.WriteString(`,"shasums_signature_url":`)
	w.link(r.signature.Name)
	return w.document(tail)
}

// downloadTail has the keys, one armor block each (checklist 43), and for
// OpenTofu ≥ 1.12 the hashes and sizes of all platforms (48).
func (r *Release) downloadTail() *sharedTail {
	type key struct {
		ID             string `json:"key_id"`
		Armor          string `json:"ascii_armor"`
		TrustSignature string `json:"trust_signature"` // empty: checklist 44
		Source         string `json:"source"`
		SourceURL      string `json:"source_url"`
	}
	type hashed struct {
		Hashes []string `json:"hashes"`
		Size   int64    `json:"package_size"`
	}
	var keys struct {
		Keys []key `json:"gpg_public_keys"`
	}
	for _, k := range r.Keys {
		keys.Keys = append(keys.Keys, key{ID: k.ID, Armor: k.Armor})
	}
	var w documentWriter
	w.WriteString(`,"signing_keys":`)
	w.value(keys)
	if !r.sharesBytes() {
		packages := make(map[string]hashed)
		for _, p := range r.Packages {
			packages[p.Platform.String()] = hashed{p.hashes(), p.File.Size}
		}
		w.WriteString(`,"packages":`)
		w.value(packages)
	}
	w.WriteByte('}')
	return newSharedTail(w.Bytes())
}

// sharesBytes reports whether two platforms have a hash in common. OpenTofu
// panics on that when it is told so (checklist 49).
func (r *Release) sharesBytes() bool {
	seen := make(map[string]bool)
	for _, p := range r.Packages {
		for _, hash := range p.hashes() {
			if seen[hash] {
				return true
			}
			seen[hash] = true
		}
	}
	return false
}
