package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Source is a commit of another repository, for a server to fetch.
type Source struct {
	// URL to which git connects: http://… of a relay on this machine.
	URL string

	// Name of the repository in messages.
	Name string

	// Ref is a commit, a tag or a branch. Empty: the default branch.
	Ref string

	// From has what need not be fetched, if it is of the same commit. May be nil.
	From *Checkout

	// Header of each request over HTTP, such as "Name: value". It is not among git's
	// arguments, which other users of the machine can see.
	Header string
}

// ErrNoCommit means that a Ref is not a commit, tag or branch of the repository.
var ErrNoCommit = errors.New("there is no such commit, tag or branch in the repository")

// Fetch makes a repository with one commit of a source, and returns that commit. The
// repository has the names of the commit's files; FetchContents fetches contents. Git
// writes only to folder, which Fetch makes and the caller removes.
func Fetch(ctx context.Context, s Source, folder string) (r *Repository, commit string, err error) {
	if s.Ref != "" && !IsRef(s.Ref) {
		return nil, "", ErrNoCommit
	}
	if err := s.prepare(folder); err != nil {
		return nil, "", err
	}
	if s.From != nil && s.From.commit == s.Ref {
		return s.borrow(ctx, folder)
	}
	formats := []string{"sha1", "sha256"}
	if len(s.Ref) == 64 && IsCommit(s.Ref) {
		slices.Reverse(formats)
	}
	for _, format := range formats {
		if r, err = s.connect(ctx, folder, format); err != nil {
			return nil, "", err
		}
		commit, err = r.fetchRef(ctx, s.Ref)
		if !failedWith(err, "mismatched algorithms") { // the repository has the other format of IDs
			break
		}
	}
	if err != nil {
		return nil, "", err
	}
	return r, commit, nil
}

// prepare makes the folder to which git writes, with its configuration.
func (s Source) prepare(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	return os.WriteFile(configurationFile(folder), []byte(s.configuration()), 0o600)
}

// connect makes an empty repository with one format of IDs in a folder that is prepared, into which
// objects of the source can be fetched.
func (s Source) connect(ctx context.Context, folder, format string) (*Repository, error) {
	r := &Repository{
		dir: filepath.Join(folder, format), name: s.Name, whole: make(map[string]bool), secret: strings.NewReplacer(),
		environment: sealedEnvironment(folder), sealed: true,
	}
	return r, r.connect(ctx, s.URL, "--object-format="+format)
}

// configuration returns the whole configuration of a sealed git.
func (s Source) configuration() string {
	var b strings.Builder
	// Servers may not lead git to another server, by a redirect or otherwise.
	b.WriteString("[protocol]\n\tallow = never\n\tversion = 2\n[protocol \"http\"]\n\tallow = always\n")
	b.WriteString("[http]\n\tfollowRedirects = false\n\tproxy = \n")
	if s.Header != "" {
		fmt.Fprintf(&b, "\textraHeader = %q\n", s.Header)
	}
	b.WriteString("[transfer]\n\tbundleURI = false\n[credential]\n\thelper = \n")
	// Objects that fsck complains about are common, and nothing is checked out. Large
	// files are streamed instead of being read into memory.
	b.WriteString("[fetch]\n\tfsckObjects = false\n[core]\n\taskPass = \n\tbigFileThreshold = 16m\n")
	// Each thread would use memory of its own to unpack deltas.
	b.WriteString("[pack]\n\tthreads = 1\n")
	return b.String()
}

// fetched is the ref for a fetched tag or branch.
const fetched = "refs/fetched"

// fetchRef fetches the commit of a ref without the contents of files, and returns the
// commit.
func (r *Repository) fetchRef(ctx context.Context, ref string) (commit string, err error) {
	if IsCommit(ref) {
		return r.fetchCommit(ctx, strings.ToLower(ref))
	}
	for _, name := range refNames(ref) {
		err := r.fetchThin(ctx, []string{"+" + name + ":" + fetched})
		if failedWith(err, "couldn't find remote ref") {
			continue
		}
		if err != nil {
			return "", err
		}
		return r.commit(ctx, fetched)
	}
	if isAbbreviated(ref) {
		// Servers cannot say which commits begin like this. Their history without trees
		// is small, if they can leave trees out.
		if err := r.fetchHistory(ctx, "--filter=tree:0"); err != nil {
			return "", err
		}
		if commit, err = r.commit(ctx, ref); err != nil {
			return "", err
		}
		return r.fetchCommit(ctx, commit)
	}
	return "", ErrNoCommit
}

// fetchCommit fetches a commit by its ID.
func (r *Repository) fetchCommit(ctx context.Context, id string) (string, error) {
	err := r.fetchThin(ctx, []string{id})
	switch {
	case failedWith(err, refusesIDs...):
		// The server sends only the history of its branches and tags.
		if err := r.fetchHistory(ctx, "--no-filter"); err != nil {
			return "", err
		}
	case failedWith(err, "not our ref"):
		return "", ErrNoCommit
	case err != nil:
		return "", err
	}
	commit, err := r.commit(ctx, id)
	if err == nil && commit != id { // id is an annotated tag's
		return "", ErrNoCommit
	}
	return commit, err
}

// refusesIDs are git's messages if a server sends only what it advertises, as servers
// may with the first version of the protocol.
var refusesIDs = []string{"does not allow request for unadvertised object", "Server does not support"}

// fetchHistory fetches all branches and tags.
func (r *Repository) fetchHistory(ctx context.Context, filter string) error {
	return r.fetch(ctx, []string{"+refs/heads/*:refs/history/heads/*", "+refs/tags/*:refs/history/tags/*"}, filter)
}

// commit returns the commit for a name in the repository.
func (r *Repository) commit(ctx context.Context, name string) (string, error) {
	objects, err := r.Objects(ctx, "commit", []string{name + "^{commit}"})
	if err != nil {
		return "", err
	}
	if objects[0] == "" {
		return "", ErrNoCommit
	}
	return objects[0], nil
}

// refNames returns the refs that a name may mean, in the order in which git looks for
// them.
func refNames(ref string) []string {
	if ref == "" || ref == "HEAD" {
		return []string{"HEAD"}
	}
	names := []string{"refs/tags/" + ref, "refs/heads/" + ref}
	if strings.HasPrefix(ref, "refs/") {
		return append([]string{ref}, names...)
	}
	if branch, ok := strings.CutPrefix(ref, "origin/"); ok { // as in a clone
		names = append(names, "refs/heads/"+branch)
	}
	return names
}

// IsCommit reports whether a ref is the whole ID of a commit.
func IsCommit(ref string) bool { return (len(ref) == 40 || len(ref) == 64) && isHexadecimal(ref) }

// isAbbreviated reports whether a ref may be the beginning of a commit's ID.
func isAbbreviated(ref string) bool { return len(ref) >= 7 && len(ref) < 64 && isHexadecimal(ref) }

func isHexadecimal(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// IsRef reports whether git accepts the name of a tag or branch (git help
// check-ref-format). Other names are not passed to git, since they could be options,
// patterns or revisions.
func IsRef(ref string) bool {
	if len(ref) > 1<<10 || strings.HasPrefix(ref, "-") || ref == "@" || strings.HasSuffix(ref, ".") ||
		strings.Contains(ref, "..") || strings.Contains(ref, "@{") || !utf8.ValidString(ref) {
		return false
	}
	for segment := range strings.SplitSeq(ref, "/") {
		if segment == "" || strings.HasPrefix(segment, ".") || strings.HasSuffix(segment, ".lock") {
			return false
		}
	}
	return !strings.ContainsFunc(ref, func(r rune) bool {
		return unicode.IsControl(r) || strings.ContainsRune(` ~^:?*[\`, r)
	})
}

// failedWith reports whether git failed with one of these texts in its message.
func failedWith(err error, texts ...string) bool {
	failed, is := errors.AsType[*CommandError](err)
	return is && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(failed.said, text) })
}
