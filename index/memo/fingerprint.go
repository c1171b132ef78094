package memo

import (
	"crypto/sha256"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// ListedFolders identify the states of folders when they were listed.
type ListedFolders []listedFolder

type listedFolder struct {
	dir, report string // its paths in its part, and in a report
	entries     wire.SHA256
}

// Note notes the entries of a folder. lasts is false, and nothing is noted, if the folder could
// change without another digest.
func (l *ListedFolders) Note(dir, report string, entries []tree.Entry, now time.Time) (lasts bool) {
	sum, lasts := fingerprint(entries, now)
	if lasts {
		*l = append(*l, listedFolder{dir, report, sum})
	}
	return lasts
}

// Unchanged reports whether the folders are as they were noted. list lists a folder again.
func (l ListedFolders) Unchanged(now time.Time, list func(dir, report string) ([]tree.Entry, error)) bool {
	for _, f := range l {
		entries, err := list(f.dir, f.report)
		if err != nil {
			return false
		}
		if sum, lasts := fingerprint(entries, now); !lasts || sum != f.entries {
			return false
		}
	}
	return true
}

// fingerprint returns a digest of the names of entries, and of the stamps of the files among
// them. lasts reports whether any change would change the digest.
func fingerprint(entries []tree.Entry, now time.Time) (sum wire.SHA256, lasts bool) {
	h := sha256.New()
	var b []byte
	lasts = true
	for _, e := range entries {
		b = append(b[:0], e.Name...)
		b = append(b, 0)
		switch {
		case e.Bad != nil || e.Link:
			lasts = false
		case e.Info.IsDir():
			b = append(b, 'd')
		default:
			stamp := tree.StampOf(e.Info)
			lasts = lasts && stamp.Settled(now)
			b = appendStamp(append(b, 'f'), stamp)
			if !e.Info.Mode().IsRegular() {
				lasts = false
			}
		}
		h.Write(b)
	}
	h.Sum(sum[:0])
	return sum, lasts
}

// AppendFile appends what identifies a file as it was listed.
func AppendFile(b []byte, file *tree.Location, at tree.Stamp) []byte {
	return appendStamp(appendString(appendString(b, file.Dir), file.Name), at)
}
