package index

import (
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
)

// Clients trust a version not to change: lock files have the hashes of its packages. Nothing
// keeps an operator from writing other bytes to an offered file. The memo then remembers the
// first bytes besides the current ones, for as long as the file keeps its path. When the
// first bytes come back, there is no change any more.

// earlier returns the bytes that an archive had when it was first offered, if the archive has
// other bytes now; nil if the archive is unchanged or new. A file that cannot be
// read for a while, as while another is copied over it, keeps its earlier bytes.
func (x *scanner) earlier(a *job, now memo.Record, at time.Time) *memo.EarlierBytes {
	first := x.firstBytes(a)
	switch {
	case first == nil, now.Bad == nil && first.AreIn(a.Report, now):
		return nil
	case now.Bad != nil || first.Noticed != 0:
		return first
	}
	return first.NoticedAt(at)
}

// firstBytes returns the bytes that an archive had when it was first offered; nil if this is
// unknown.
func (x *scanner) firstBytes(a *job) *memo.EarlierBytes {
	known, ok := x.memo.Known(&a.Location)
	if !ok {
		known, ok = x.compared.Known(&a.Location)
	}
	sound := ok && known.Bad == nil
	switch {
	case known.Earlier != nil:
		return known.Earlier
	case a.first && sound:
		// At a start it is unknown whether the file was offered: it is assumed.
	case a.first:
		return nil
	default:
		offered, before := a.before.bytesOf(a)
		switch {
		case before != nil: // the file is too young for the memo
			return before
		case offered == nil || !sound:
			return offered
		}
	}
	return &memo.EarlierBytes{SHA256: known.SHA256, H1: known.FileHashes.H1()}
}

// bytesOf returns the bytes of an archive that clients could download, or nil if they could
// not, and the earlier bytes, or nil if there were none.
func (e *entry) bytesOf(a *job) (offered, before *memo.EarlierBytes) {
	for _, c := range e.changed() {
		if c.Path == a.ReportPath() {
			before = c.First
		}
	}
	return offer.BytesOf(e.module.Version(a.Version), e.provider.Release(a.Version), a.Path()), before
}
