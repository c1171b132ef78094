package upstream

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// CodeHosts are the hosts of repositories that people name in a tree, rather than an origin in its
// answers. Whoever may describe a module may name any repository there.
type CodeHosts struct {
	// Hosts with credentials. Each says which repositories these are for.
	Hosts []Host

	// Private has hosts that may be in a private network: names or IP addresses without a port. That a
	// host has credentials does not say so.
	Private []string

	// Timeout limits the time for which a host may send nothing. Zero means 10 seconds.
	Timeout time.Duration
}

// NewCodeHosts returns a client that fetches repositories, and has no origin. It reads the proxies
// from the environment and sends no request yet. The error describes what is wrong with the hosts.
func NewCodeHosts(h CodeHosts, n Network) (*Client, error) {
	for _, host := range h.Hosts {
		if host.Token != "" && len(host.Allow) == 0 {
			return nil, fmt.Errorf("the host %s has a token and no allow: name the repositories that it is for, since others choose which ones are fetched", host.Name)
		}
	}
	o, err := Origin{Hosts: h.Hosts, Private: h.Private, Timeout: h.Timeout}.withConnectionDefaults()
	if err != nil {
		return nil, err
	}
	c := newClient(o, newGuard(o.Private), n)
	c.repositories = newSlots(maxCodeHosts)
	return c, nil
}

// Repository returns the source of a repository that someone has named in the tree. Its credentials are
// used if Host.Allow has it, and it may be in a private network if CodeHosts.Private has its host.
func (c *Client) Repository(text, folder string) (ModuleSource, error) {
	s, err := ParseModuleSource("git::"+text, new(url.URL))
	if err != nil {
		return s, &Failure{Host: "git", Kind: ErrMalformed, Detail: err.Error()}
	}
	if s.Folder != "" || s.Ref != "" {
		return s, fail(s.URL, ErrMalformed, "its URL is not the URL of a repository")
	}
	s.Folder, s.trust = folder, trusted
	return s, nil
}

// Tags lists the tags of a repository, by name, in one request. Temporary files are in a folder of the
// caller until Tags returns. The error is a Failure, or of the disk.
func (c *Client) Tags(ctx context.Context, s ModuleSource, scratch string) (tags []Tag, err error) {
	release, err := c.ReserveModule(ctx, s)
	if err != nil {
		return nil, err
	}
	defer release()
	err = c.withGit(ctx, s, scratch, maxTagsTime, func(ctx context.Context, f *gitFetch) error {
		from, _ := f.from(s)
		tags, err = git.ListTags(ctx, from, filepath.Join(f.scratch, "tags"))
		return err
	})
	return tags, err
}

// A Checkout is a commit that was fetched once for several modules in it.
type Checkout = git.Checkout

// FetchCommit fetches the whole commit of a source into a folder of the caller, which is empty. The
// caller removes the folder when the checkout is no longer used, or after an error. The caller has
// reserved a slot (ReserveModule).
func (c *Client) FetchCommit(ctx context.Context, s ModuleSource, into string) (k *Checkout, err error) {
	err = c.withGit(ctx, s, into, maxGitTime, func(ctx context.Context, f *gitFetch) error {
		from, _ := f.from(s)
		if k, err = git.FetchAll(ctx, from, filepath.Join(into, "commit")); err == nil {
			k.Size = f.relay.received()
		}
		return err
	})
	return k, err
}

// From returns the source with a checkout of its commit, so that FetchModule need not fetch it.
func (s ModuleSource) From(k *Checkout) ModuleSource {
	s.checkout = k
	return s
}

// A Tag is a tag of a repository, with the commit that it leads to.
type Tag = git.Tag

// AtTag returns the source at a tag.
func (s ModuleSource) AtTag(t Tag) ModuleSource {
	s.Ref, s.Tag = t.Object, t.Name
	return s
}
