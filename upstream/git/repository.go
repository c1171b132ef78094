package git

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Repository is read by the git binary. It may be used by one goroutine at a time.
type Repository struct {
	dir     string // in which git runs
	fetches bool   // dir is temporary, and objects are fetched into it from origin

	thin   []string        // last fetched commits without contents
	whole  map[string]bool // objects with their contents
	reader *objectReader   // nil: it is not needed yet

	name        string
	secret      *strings.Replacer // replaces credentials in git's messages
	environment []string
	sealed      bool // no user waits for it
}

// Open opens the repository that contains a folder of the user. The repository is only
// read.
func Open(ctx context.Context, folder string) (*Repository, error) {
	r := &Repository{dir: folder, name: printable(folder), whole: make(map[string]bool), secret: strings.NewReplacer(), environment: userEnvironment()}
	return r, r.run(ctx, nil, "rev-parse", "--git-dir")
}

// Connect makes an empty repository in a new folder, into which objects are fetched from
// a URL with the configuration and credentials of the user.
func Connect(ctx context.Context, url, folder string) (*Repository, error) {
	bare, credentials := cutCredentials(url)
	r := &Repository{dir: folder, name: printable(bare), whole: make(map[string]bool), secret: strings.NewReplacer(), environment: userEnvironment()}
	if credentials != "" {
		r.secret = strings.NewReplacer(credentials+"@", "", credentials, "xxxxx")
	}
	return r, r.connect(ctx, url)
}

// connect makes the repository, with a URL as its origin.
func (r *Repository) connect(ctx context.Context, url string, options ...string) error {
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return err
	}
	r.fetches = true
	options = append([]string{"--quiet", "--bare", "--template="}, options...) // a template has hooks
	if err := r.run(ctx, nil, "init", options...); err != nil {
		return err
	}
	return r.run(ctx, nil, "remote", "add", "--", "origin", url)
}

// cutCredentials cuts a user and password out of a URL.
func cutCredentials(s string) (bare, credentials string) {
	scheme, rest, found := strings.Cut(s, "://")
	end := strings.IndexAny(rest+"/", "/?#")
	at := strings.LastIndexByte(rest[:end], '@')
	if !found || at < 0 {
		return s, ""
	}
	return scheme + "://" + rest[at+1:], rest[:at]
}

// Name returns the name of the repository for messages. It has no credentials, and is
// quoted if it has unprintable characters.
func (r *Repository) Name() string { return r.name }

// Fetches reports whether objects are fetched into the repository.
func (r *Repository) Fetches() bool { return r.fetches }

// maxTags is the maximum number of tags in a repository.
const maxTags = 100_000

// Tags returns the names of all tags, in order. They are the tags of the origin if
// objects are fetched.
func (r *Repository) Tags(ctx context.Context) (tags []string, err error) {
	take := func(line string) error {
		// ls-remote prints an object and a tab before it.
		if name, ok := strings.CutPrefix(line[strings.IndexByte(line, '\t')+1:], "refs/tags/"); ok {
			tags = append(tags, name)
		}
		if len(tags) > maxTags {
			return fmt.Errorf("%s: it has more than %d tags", r.name, maxTags)
		}
		return nil
	}
	if r.fetches {
		err = r.lines(ctx, nil, take, "ls-remote", "--refs", "--tags", "--quiet", "origin")
	} else {
		err = r.lines(ctx, nil, take, "for-each-ref", "--format=%(refname)", "refs/tags/")
	}
	slices.Sort(tags)
	return tags, err
}

// FetchTags fetches the commits of tags and their trees, without the contents of files.
// The names are from Tags. Nothing is fetched into a user's repository.
func (r *Repository) FetchTags(ctx context.Context, tags []string) error {
	if !r.fetches {
		return nil
	}
	refs := make([]string, len(tags))
	for i, tag := range tags {
		refs[i] = "+refs/tags/" + tag + ":refs/tags/" + tag
	}
	return r.fetchThin(ctx, refs)
}

// fetchThin fetches commits and their trees, without the contents of files.
func (r *Repository) fetchThin(ctx context.Context, names []string) error {
	r.thin = names
	return r.fetch(ctx, names, "--depth=1", withoutContents)
}

// withoutContents is the option to fetch no contents of files, except for named
// objects.
const withoutContents = "--filter=blob:none"

// fetch fetches the named objects.
func (r *Repository) fetch(ctx context.Context, names []string, options ...string) error {
	options = append(options, "--quiet", "--no-tags", "--no-write-fetch-head", "--stdin", "origin")
	return r.run(ctx, list(names), "fetch", options...)
}

// Objects returns the objects for names, in the same order. They have a type such as
// commit or tree. An object is empty if there is no such object of that type. Names
// must not have a line break.
func (r *Repository) Objects(ctx context.Context, typ string, names []string) ([]string, error) {
	objects := make([]string, len(names))
	i := 0
	take := func(line string) error {
		if object, is, _ := strings.Cut(line, " "); i < len(names) && strings.HasPrefix(is, typ+" ") {
			objects[i] = object
		}
		i++
		return nil
	}
	return objects, r.lines(ctx, list(names), take, "cat-file", "--batch-check")
}

// CommitTimes returns the times of commits, by commit.
func (r *Repository) CommitTimes(ctx context.Context, commits []string) (map[string]time.Time, error) {
	times := make(map[string]time.Time, len(commits))
	take := func(line string) error {
		seconds, commit, _ := strings.Cut(line, " ")
		s, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: git says that the commit %s was made at %s", r.name, printable(commit), printable(seconds))
		}
		times[commit] = time.Unix(s, 0).UTC()
		return nil
	}
	return times, r.lines(ctx, list(commits), take, "rev-list", "--no-walk", "--timestamp", "--stdin")
}
