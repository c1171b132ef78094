package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A noticeFile is the registry.hcl of a provider or module, in a folder or at a registry.
type noticeFile interface {
	name() string  // of the file, for messages
	about() string // the provider or module, for messages

	// lock keeps others from changing the content, as far as possible, until unlock.
	lock(context.Context) (unlock func(), err error)

	// read returns the content; nil if there is no file.
	read(context.Context) ([]byte, error)

	// write replaces the content that read has returned. The error is
	// tree.ErrMetadataChanged if the content has changed since.
	write(ctx context.Context, before, content []byte) error

	// known returns the versions that exist, as far as they are known.
	known(context.Context) knownVersions

	close()
}

// knownVersions are the versions of a provider or module, the newest first.
type knownVersions struct {
	versions []*version.Version
	known    bool
	offered  bool   // versions that are not offered are unknown
	more     bool   // there may be other versions
	where    string // the place of the versions, for messages
	absent   string // a hint that the address may be wrong; empty: it has versions
}

// A noticeEdit is a change of the content of a registry.hcl.
type noticeEdit func(before []byte) (noticeResult, error)

// A noticeResult is the new content, with a description of the change.
type noticeResult struct {
	content  []byte
	said     string
	and      string // an addition to the description
	restores bool   // versions are offered again after the change
}

// A noticeChange is a change to a registry.hcl.
type noticeChange struct {
	file     noticeFile
	versions address.Constraints
	there    knownVersions
}

// set sets a notice.
func (n *noticeChange) set(before []byte, e registryhcl.Edit) (noticeResult, error) {
	after, err := registryhcl.Set(before, e)
	if err != nil {
		return noticeResult{}, aboutFile(n.file, err)
	}
	r := noticeResult{content: after, said: fmt.Sprintf("%s %s", e.Kind, n.versions)}
	if bytes.Equal(after, before) {
		r.said = "already " + r.said
	}
	return r, nil
}

// restore removes the notices.
func (n *noticeChange) restore(before []byte) (noticeResult, error) {
	after, removed, err := registryhcl.Remove(before, n.versions)
	if err != nil {
		return noticeResult{}, aboutFile(n.file, err)
	}
	remaining, _ := registryhcl.Parse(after)
	if len(removed) == 0 {
		return noticeResult{}, &notRestoredError{n.whyNotRestored(&remaining)}
	}
	var kinds []string
	for _, k := range removed {
		kinds = append(kinds, string(k))
	}
	r := noticeResult{content: after, restores: true, said: fmt.Sprintf("restored %s (%s)", n.versions, strings.Join(kinds, ", "))}
	if wider := n.overlappingNotices(&remaining); len(wider) > 0 {
		r.and = "; still " + strings.Join(wider, ", ")
	}
	return r, nil
}

// dryRun is the last line of what a dry run says.
const dryRun = "This was a dry run: nothing has been written.\n"

// apply edits the file, or in a dry run prints the change, and describes the change. absent:
// the change affects no version.
func (n *noticeChange) apply(ctx context.Context, edit noticeEdit, dry bool) (text string, absent bool, err error) {
	n.there = n.file.known(ctx)
	var r noticeResult
	text, err = changeFile(ctx, n.file, dry, func(before []byte) (_ []byte, err error) {
		n.noteWithdrawn(before)
		r, err = edit(before)
		return r.content, err
	})
	if err != nil {
		return "", false, err
	}
	if r.restores && !dry {
		n.there = n.file.known(ctx)
	}
	text += cli.Wrap(n.file.about()+": "+r.said+n.covered()+r.and, 0)
	if n.there.absent != "" {
		text += cli.Wrap(n.there.absent, 0)
	}
	if dry {
		text += dryRun
	}
	return text, !r.restores && n.there.known && !n.there.more && n.total() == 0, nil
}

// changeAttempts bounds how often a file is read and changed while others change it.
const changeAttempts = 5

// changeFile edits a file, or in a dry run returns the change. If others have changed the file
// meanwhile, edit gets what they have written.
func changeFile(ctx context.Context, file noticeFile, dry bool, edit func(before []byte) (after []byte, err error)) (change string, err error) {
	if !dry {
		unlock, err := file.lock(ctx)
		if err != nil {
			return "", aboutFile(file, err)
		}
		defer unlock()
	}
	var after []byte
	for attempt := 1; ; attempt++ {
		before, err := file.read(ctx)
		if err != nil {
			return "", err
		}
		if attempt > 1 && hasContent(before, after) {
			return "", nil // it was written, and the answer got lost
		}
		if after, err = edit(before); err != nil || bytes.Equal(after, before) {
			return "", err
		}
		if dry {
			return "Would change " + cli.Printable(file.name()) + ":\n" + lineChanges(string(before), string(after)) + "\n", nil
		}
		err = file.write(ctx, before, after)
		if err == nil || !errors.Is(err, tree.ErrMetadataChanged) || attempt == changeAttempts {
			return "", aboutFile(file, err)
		}
	}
}

// noteWithdrawn notes that there may be versions which are not offered, as the file withdraws
// them.
func (n *noticeChange) noteWithdrawn(before []byte) {
	m, _ := registryhcl.Parse(before)
	one, err := address.ParseModuleVersion(n.versions.String())
	if n.there.offered && slices.ContainsFunc(m.Withdrawn, func(w registryhcl.Notice) bool { return err != nil || w.Versions.Cover(one) }) {
		n.there.more = true
	}
}

// hasContent reports whether a file has that content. A file without content is removed.
func hasContent(file, content []byte) bool {
	return bytes.Equal(file, content) || file == nil && len(bytes.TrimSpace(content)) == 0
}

// aboutFile adds the name of a file to the reason why it cannot be changed. Nil stays nil.
func aboutFile(file noticeFile, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", cli.Printable(file.name()), err)
}

// covered names the versions that the change affects, as far as they are known.
func (n *noticeChange) covered() string {
	if !n.there.known {
		return ""
	}
	total, names := offer.Covered(n.there.versions, n.versions)
	if total == 0 {
		return ", which covers no version " + n.there.where
	}
	return ", which covers " + cli.Count(total, "version") + ": " + names
}

func (n *noticeChange) total() int {
	total, _ := offer.Covered(n.there.versions, n.versions)
	return total
}

// A notRestoredError says why there was nothing to restore.
type notRestoredError struct{ error }

func (n *noticeChange) whyNotRestored(m *registryhcl.File) error {
	err := fmt.Errorf("%s has no block for exactly %s", cli.Printable(n.file.name()), n.versions)
	if wider := n.overlappingNotices(m); len(wider) > 0 {
		return fmt.Errorf("%w: restore what covers it (%s), then add back what should stay", err, strings.Join(wider, ", "))
	}
	if all := listNotices(m, func(address.Constraints) bool { return true }); len(all) > 0 {
		return fmt.Errorf("%w, but it has %s", err, strings.Join(all, ", "))
	}
	return fmt.Errorf("%w: nothing is deprecated or withdrawn there", err)
}

// overlappingNotices lists the notices that cover some of the versions.
func (n *noticeChange) overlappingNotices(m *registryhcl.File) []string {
	return listNotices(m, n.overlaps)
}

// listNotices lists the notices about versions that match.
func listNotices(m *registryhcl.File, match func(address.Constraints) bool) (list []string) {
	for _, notices := range []struct {
		kind registryhcl.Kind
		all  []registryhcl.Notice
	}{{registryhcl.WithdrawnNotice, m.Withdrawn}, {registryhcl.DeprecatedNotice, m.Deprecated}} {
		for _, notice := range notices.all {
			if match(notice.Versions) {
				list = append(list, fmt.Sprintf("%s %q", notices.kind, notice.Versions))
			}
		}
	}
	return list
}

func (n *noticeChange) overlaps(other address.Constraints) bool {
	if v, err := address.ParseModuleVersion(n.versions.String()); err == nil && other.Cover(v) {
		return true // whether it is there or not
	}
	return slices.ContainsFunc(n.there.versions, func(v *version.Version) bool { return n.versions.Cover(v) && other.Cover(v) })
}

// lineChanges lists the lines that differ: with - the lines before the change, and with + the
// lines after it.
func lineChanges(before, after string) string {
	old, now := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	var b strings.Builder
	for _, lines := range []struct {
		sign string
		all  []string
	}{{"-", old}, {"+", now}} {
		for _, line := range lines.all {
			if line != "" {
				b.WriteString(strings.TrimRight(lines.sign+" "+strings.Map(visible, strings.TrimRight(line, "\r\n")), " ") + "\n")
			}
		}
	}
	return b.String()
}

// visible replaces characters that would change the look of a terminal.
func visible(r rune) rune {
	if r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}
