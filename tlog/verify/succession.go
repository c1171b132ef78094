package verify

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// continues returns what to say of a log that is in the place of one that the repository has seen,
// if its first entry is a checkpoint of that one which is not older; empty: it is not. That its
// operator may begin a new log is for the user to say: everybody has the old checkpoint.
func (l *Log) continues(ctx context.Context, p *Pin) (says string) {
	a, err := l.client.ask(ctx, l.question("continues", maxLookup))
	if err != nil || a.status != http.StatusOK {
		return ""
	}
	found, err := tlog.ParseLookup(string(a.body))
	if err != nil || len(found.Entries) != 1 || found.Entries[0].Proof.Index != 0 {
		return ""
	}
	var keys []string
	for _, key := range l.trust {
		if name, _, _ := strings.Cut(key, "+"); name == l.origin {
			keys = append(keys, key)
		}
	}
	if len(l.trust) == 0 {
		if keys, err = l.toldKeys(ctx); err != nil {
			return ""
		}
	}
	now, err := verifiersOf(l.origin, keys)
	if err != nil {
		return ""
	}
	if _, err := found.Check(l.origin, now...); err != nil {
		return ""
	}
	s, err := tlog.ParseSuccession(found.Entries[0].Text)
	if err != nil {
		return ""
	}
	before, err := verifiersOf(p.Origin, p.Keys)
	if err != nil {
		return ""
	}
	c, err := tlog.OpenCheckpoint(s.Signed, p.Origin, before...)
	if err != nil || c.Size < p.Size || c.Size == p.Size && c.Root != p.Root {
		return ""
	}
	return fmt.Sprintf(", which was begun in its place after %d entries: ask its operator why, compare the key, and accept it by --update", c.Size)
}
