package pull

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/checkout"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// The origin of a hosted module is the git repository that its registry.hcl names: its tags are the
// versions. The Source of all these modules has the empty hostname, and its Client is one of
// upstream.NewCodeHosts.

// taggedVersions returns the versions that are tags, newest first, and when the repository was asked for
// them, which was after since. A repository has as many as a registry may list: whoever names it decides
// how much every request for the list costs.
func (c *originList) taggedVersions(ctx context.Context, since time.Time) (list []wire.ProviderVersion, asked time.Time, err error) {
	source, l, err := c.tags(ctx, c.source, c.address, c.git, since)
	if err != nil {
		return nil, asked, err
	}
	c.compareTags(source, l)
	for _, tag := range l.Tags {
		if v, ok, err := c.git.Tags.Version(tag.Name); ok && err == nil {
			list = append(list, wire.ProviderVersion{Version: v.String()})
		}
	}
	if len(list) > wire.MaxVersions {
		return nil, asked, &upstream.Failure{Host: source.URL.Host, Kind: upstream.ErrTooLarge, Detail: wire.ErrTooManyVersions.Error(), Cause: wire.ErrTooManyVersions}
	}
	return wire.NormalVersions(list), l.Began, nil
}

// atTag returns a hosted module at the commit of its tag. The version is in a list.
func (f *Filler) atTag(ctx context.Context, w *moduleRequest) (upstream.ModuleSource, error) {
	g, err := f.repository(w.Address)
	if err != nil {
		return upstream.ModuleSource{}, err
	}
	source, l, err := f.tags(ctx, w.Source, w.Address, g, time.Time{})
	if err != nil {
		return source, err
	}
	tag, found := l.Find(g.Tags.Tag(w.version))
	if !found { // another instance may have listed it since
		if source, l, err = f.tags(ctx, w.Source, w.Address, g, time.Now()); err != nil {
			return source, err
		}
		tag, found = l.Find(g.Tags.Tag(w.version))
	}
	if !found {
		return source, fmt.Errorf("version %s: %w", w.version, ErrUnlisted)
	}
	return source.AtTag(tag), nil
}

// compareTags notes in the records of the versions that were fetched which of their tags are no longer
// where they were. A record that cannot be read or written is compared again with the next list, and so is
// one that is newer than the list, which may lack its tag: the times of records have whole seconds.
func (c *originList) compareTags(source upstream.ModuleSource, l *checkout.TagList) {
	if c.options.ReadOnly {
		return
	}
	c.readSources(c.address, func(in tree.Part, dir, version string, before *sourceRecord) {
		if before.Pending || before.Tag != c.git.Tags.Tag(version) || !before.isIn(source) || before.Fetched.Add(time.Second).After(l.Began) {
			return
		}
		now := *before
		now.TagNow = ""
		switch tag, found := l.Find(now.Tag); {
		case !found:
			now.TagNow = offer.TagGone
		case tag.Object != now.Commit:
			now.TagNow = tag.Object
		}
		if now.TagNow == before.TagNow || in.WriteFile(path.Join(dir, tree.SourceName(version)), now.encode()) != nil {
			return
		}
		at := cmp.Or(now.TagNow, now.Commit)
		level, message := slog.LevelWarn, "the tag of a version was moved or deleted, and the version stays as it was"
		if now.TagNow == "" {
			level, message = slog.LevelInfo, "the tag of a version is back where it was"
		}
		c.log(level, message, "module", c.address.String(), "version", version, "tag", now.Tag, "commit", now.Commit, "tag_is_at", at)
		c.observe(Event{Kind: TagMoved, Address: c.address, Version: version, Tag: now.Tag, Commit: now.Commit, TagCommit: at}, nil)
	})
}

// tags returns the tags of the repository of a hosted module, in a list that was not begun before since.
func (f *Filler) tags(ctx context.Context, s *Source, a address.Address, g registryhcl.Git, since time.Time) (source upstream.ModuleSource, list *checkout.TagList, err error) {
	if source, err = s.Client.Repository(g.URL, g.Folder); err != nil {
		return source, nil, err
	}
	f.checkouts.NoteModule(source, a)
	list, err = f.tagLists.List(ctx, s.Client, source, since)
	return source, list, err
}

// repository returns the repository of a hosted module. The error is ErrNotMirrored if its registry.hcl
// names none, and ErrUnread if that is not known at the moment.
func (f *Filler) repository(a address.Address) (g registryhcl.Git, err error) {
	m, problems, err := f.metadata(a)
	switch {
	case err != nil:
		return g, err
	case m.Git != nil:
		return *m.Git, nil
	case slices.ContainsFunc(problems, func(p registryhcl.Problem) bool { return p.MayWithdraw }): // half of a file
		return g, unread(fmt.Errorf("%w: %s cannot be read as a whole", tree.ErrNotWritable, tree.MetadataName))
	}
	return g, ErrNotMirrored
}

// tagsOf returns what the record of a list says of a repository: a list of another one does not count.
// It is empty without a repository.
func tagsOf(g registryhcl.Git) string {
	if g.URL == "" {
		return ""
	}
	return g.URL + " " + g.Tags.String()
}

// hostOf returns the host that is asked about a provider or module.
func hostOf(a address.Address, g registryhcl.Git) string {
	if a.Hostname != "" {
		return a.Hostname.ForDisplay()
	}
	u, err := url.Parse(g.URL)
	if err != nil {
		return "git"
	}
	return u.Host
}

// publishable returns why a module may not be published, as an upload with the same faults would not
// be. Modules of an origin are offered nevertheless: its publisher is not here to correct them.
func publishable(d archive.Doubts) error {
	if faults := slices.Concat(d.Unusable, d.Secrets); len(faults) > 0 {
		return &archive.PackageError{Detail: strings.Join(faults, "; ")}
	}
	return nil
}

// Renew has the list of a hosted module renewed, unless it was asked for after since, and returns when
// that is done, or why it is not. told says that the repository has told of a change: clients, too, then
// wait a moment for the new list.
func (f *Filler) Renew(ctx context.Context, a address.Address, since time.Time, told bool) error {
	f.unlisted.Remove(a)
	c, err := f.originList(ctx, a)
	if err != nil {
		return err
	}
	c.takeOver(ctx, checkEvery) // what the tree has counts if the repository cannot be asked

	for range 2 { // the first may be a list that is under way, and was begun before
		c.mutex.Lock()
		if told {
			c.retry = time.Time{}
			if since.After(c.wanted) {
				c.wanted = since
			}
		}
		if !c.asked.Before(since) {
			c.mutex.Unlock()
			return nil
		}
		refreshed := c.refresh.Start(ctx, struct{}{}, func(clients *upstream.Clients) (struct{}, error) { return c.fetchRecord(clients, since) })
		c.mutex.Unlock()
		if _, err = refreshed.Wait(ctx); ctx.Err() != nil {
			return err
		}
	}
	return err
}

// A failedList says why a provider or module could not be listed the last time.
type failedList struct {
	git     registryhcl.Git // whose tags were asked for; zero without a repository
	failure error
}

// Looked returns when this process has last listed the tags of a hosted module's repository with
// success, or another one that shares the tree; zero: it is not known. The error says why the latest try
// has failed; nil: it has not.
func (f *Filler) Looked(a address.Address, g registryhcl.Git) (last time.Time, failure error) {
	if c, ok := f.lists.Get(a); ok && c.git == g {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if c.record != nil {
			last = c.record.Fetched
		}
	}
	if failed, ok := f.failing.Get(a); ok && failed.git == g {
		failure = failed.failure
	}
	if _, is := errors.AsType[*upstream.Failure](failure); failure != nil && !is {
		failure = ErrUnread // it has names of files
	}
	return last, failure
}

// noteListed notes whether the tags of a hosted module's repository could be listed. What this side has
// ended says nothing about that.
func (c *originList) noteListed(err error) {
	switch {
	case c.address.Hostname != "" || isCanceled(err):
	case err == nil:
		c.failing.Remove(c.address)
	default:
		c.failing.Put(c.address, failedList{c.git, err}, cache.UntilEvicted)
	}
}
