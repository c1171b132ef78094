package checkout

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/scratch"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// TagLists are the lists of the tags of repositories. They are safe for concurrent use.
type TagLists struct {
	ctx     context.Context               // in which repositories are asked
	lists   cache.Cache[string, *TagList] // by URL
	listing flight.Group[string, *TagList]
}

// A TagList has the tags of a repository, or the failure to list them. All modules in the repository
// share it.
type TagList struct {
	Began time.Time      // when the repository was asked
	Tags  []upstream.Tag // by name

	err error
}

const (
	// tagsLifetime is how long the list of a repository is used for other modules in it. Each module
	// keeps its own list for longer.
	tagsLifetime = 30 * time.Second

	// maxTagLists and maxTagBytes limit the lists in memory.
	maxTagLists = 1024
	maxTagBytes = 32 << 20
)

// NewTagLists returns lists of tags. Repositories are asked until the end of ctx. panicked is called when
// that has panicked.
func NewTagLists(ctx context.Context, panicked func(err error, stack []byte)) *TagLists {
	return &TagLists{
		ctx: ctx, listing: flight.Group[string, *TagList]{Panicked: panicked},
		lists: cache.Cache[string, *TagList]{MaxEntries: maxTagLists, MaxBytes: maxTagBytes, Size: (*TagList).weigh},
	}
}

// List returns the tags of a repository in a list that was not begun before since, nor long ago. The
// repository is asked once for all modules that want its tags at about the same time.
func (t *TagLists) List(ctx context.Context, from *upstream.Client, repository upstream.ModuleSource, since time.Time) (*TagList, error) {
	url := repository.URL.String()
	if recent := time.Now().Add(-tagsLifetime); since.Before(recent) {
		since = recent
	}
	for {
		if l, ok := t.lists.Get(url); ok && !l.Began.Before(since) {
			return l, l.err
		}
		// One that is under way may have begun before.
		l, err := t.listing.Do(ctx, url, func(clients *upstream.Clients) (*TagList, error) {
			l := &TagList{Began: time.Now()}
			l.Tags, l.err = ask(clients.Context(t.ctx), from, repository)
			if upstream.IsKind(l.err, context.Canceled, context.DeadlineExceeded, upstream.ErrBusy, tree.ErrNotWritable, tree.ErrDiskFull) {
				return nil, l.err // it says nothing about the repository
			}
			t.lists.Put(url, l, tagsLifetime)
			return l, nil
		})
		if err != nil {
			return nil, err
		}
		if !l.Began.Before(since) {
			return l, l.err
		}
	}
}

func ask(ctx context.Context, from *upstream.Client, repository upstream.ModuleSource) ([]upstream.Tag, error) {
	in, err := scratch.New()
	if err != nil {
		return nil, err
	}
	defer in.Remove()
	tags, err := from.Tags(ctx, repository, in.Files())
	if _, is := errors.AsType[*upstream.Failure](err); err != nil && !is && ctx.Err() == nil { // an error of the local disk
		return nil, tree.StorageError(err)
	}
	return tags, err
}

// Find returns a tag by its name.
func (l *TagList) Find(name string) (tag upstream.Tag, found bool) {
	i, found := slices.BinarySearchFunc(l.Tags, name, func(t upstream.Tag, name string) int { return cmp.Compare(t.Name, name) })
	if !found {
		return tag, false
	}
	return l.Tags[i], true
}

// weigh estimates how many bytes a list takes in memory.
func (l *TagList) weigh() int {
	total := 128
	for _, t := range l.Tags {
		total += 64 + len(t.Name) + len(t.Object)
	}
	return total
}
