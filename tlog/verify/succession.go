package verify

import (
	"context"
	"fmt"
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// continues checks whether the log was begun in place of the log that the repository has seen: its
// first entry is then a checkpoint of the other log, and not an older one. It returns a sentence
// about that for the user, who decides: all who know the old checkpoint can begin such a log. It
// is empty if there is no proof, also because the log does not answer: the alarm is raised without
// it.
func (l *Log) continues(ctx context.Context, p *Pin) (says string) {
	a, err := l.client.ask(ctx, l.question("continues", maxLookup))
	if err != nil || a.status != http.StatusOK {
		return ""
	}
	found, err := tlog.ParseLookup(string(a.body))
	if err != nil || len(found.Entries) != 1 || found.Entries[0].Proof.Index != 0 {
		return ""
	}
	keys := l.trustedKeys()
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
