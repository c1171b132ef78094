package upstream

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A ModuleSource is the location of the files of a module's version, as registries send
// it to clients in X-Terraform-Get (checklist 82 to 90).
type ModuleSource struct {
	// Git reports that URL is a repository. Otherwise it is an archive.
	Git bool

	// URL has the scheme https, and no user or password. The query of an archive's URL
	// may be a secret.
	URL *url.URL

	// Ref is the commit, tag or branch of the repository. Empty means the default
	// branch. Git accepts it as the name of a ref, so it cannot be an option either.
	Ref string

	// Tag that led to the Ref; empty if it was not a tag of a list (Client.Tags).
	Tag string

	// Folder is the folder of the module in the package, which follows // in clients'
	// addresses; empty for the root. It has no dots that lead out, and is safe in a URL
	// without escaping.
	Folder string

	// InTopFolder means that the archive has one folder at its root, of any name, and
	// that the package is in this folder (//*, which no current client understands).
	InTopFolder bool

	// Format of an archive: "tar.gz", "tar.bz2" or "zip". It is empty if the URL has to
	// be asked for another location, which Client.ModuleSource has done.
	Format string

	// SHA256 of the archive (checksum=sha256:…); zero if none is given.
	SHA256 wire.SHA256

	checkout *Checkout // has what need not be fetched; nil: there is none

	trust trust // trust in the URL: none, unless Client.ModuleSource has returned it
}

// String returns the source as a client would write it, without the query of an
// archive's URL.
func (s ModuleSource) String() string {
	u := *s.URL
	query := make(url.Values)
	prefix := ""
	if s.Git {
		prefix = "git::"
	}
	if s.Ref != "" {
		query.Set("ref", s.Ref)
	}
	if s.Format != "" {
		query.Set("archive", s.Format)
	}
	if s.SHA256 != (wire.SHA256{}) {
		query.Set("checksum", "sha256:"+s.SHA256.String())
	}
	u.RawQuery = ""
	text := prefix + u.String()
	switch {
	case s.InTopFolder && s.Folder != "":
		text += "//*/" + s.Folder
	case s.InTopFolder:
		text += "//*"
	case s.Folder != "":
		text += "//" + s.Folder
	}
	if len(query) > 0 {
		text += "?" + query.Encode()
	}
	return text
}

// ModuleContent describes the fetched files of a module.
type ModuleContent struct {
	// Commit of the files, in hexadecimal. Empty if an archive does not name its
	// commit.
	Commit string

	// SHA256 of the received archive; zero for a repository.
	SHA256 wire.SHA256
}

// NamedContent returns the content that a source names: the commit, unless it names a
// tag or a branch, or the checksum of the archive.
func (s ModuleSource) NamedContent() (c ModuleContent) {
	if s.Git && git.IsCommit(s.Ref) {
		c.Commit = strings.ToLower(s.Ref) // as git prints it
	}
	c.SHA256 = s.SHA256
	return c
}

// maxLocation is the maximum length of a location in bytes. Signed URLs have some 2 KB.
const maxLocation = 8 << 10

// otherKinds are the kinds of sources that clients know and this package does not, by
// their prefix or scheme.
var otherKinds = map[string]string{
	"hg": "a Mercurial repository", "s3": "a bucket of S3", "gcs": "a bucket of Google Cloud Storage", "gs": "a bucket of Google Cloud Storage",
	"oci": "an OCI registry", "file": "a file on a disk", "ext": "a command",
}

// ParseModuleSource reads a location as clients do. It may be relative to from, the
// requested URL. The error is a sentence that names the form of the location without
// quoting it. It is ErrUnsafe or ErrMalformed.
func ParseModuleSource(location string, from *url.URL) (s ModuleSource, err error) {
	switch {
	case len(location) > maxLocation:
		return s, refuse(ErrMalformed, "the link to the module is too long")
	case !utf8.ValidString(location) || strings.ContainsFunc(location, unicode.IsControl) || strings.Contains(location, "#"):
		return s, refuse(ErrMalformed, "the link to the module has characters in it that no URL has")
	case strings.HasPrefix(location, "/") || strings.HasPrefix(location, "./") || strings.HasPrefix(location, "../"):
		u, err := from.Parse(location)
		if err != nil {
			return s, refuse(ErrMalformed, "the link to the module is not a URL")
		}
		location = u.String()
	}
	text, forced := location, ""
	if m := forcedKind.FindStringSubmatch(location); m != nil {
		forced, text = m[1], m[2]
	}
	if forced != "" && forced != "git" {
		return s, refuseKind(forced)
	}
	text, folder := cutFolder(text)
	if s.Folder, s.InTopFolder, err = parseFolder(folder); err != nil {
		return s, err
	}
	u, shorthand, err := parseLocation(text)
	if err != nil {
		return s, err
	}
	s.Git = forced == "git" || shorthand || strings.HasSuffix(u.Path, ".git")
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return s, refuse(ErrMalformed, "the link to the module is not a URL")
	}
	s.URL = u
	if s.Git {
		return s.repository(query)
	}
	return s.archive(query)
}

var forcedKind = regexp.MustCompile(`^([A-Za-z0-9]+)::(.+)$`)

func refuseKind(kind string) error {
	what, known := otherKinds[strings.ToLower(kind)]
	if !known {
		what = "a package of a kind that is not known"
	}
	return refuse(ErrMalformed, "the module is in %s, which is not fetched: it must be in an archive or a git repository over HTTPS", what)
}

// scpForm is the beginning of an SSH address without a scheme: USER@HOST:PATH.
var scpForm = regexp.MustCompile(`^[^@:/?]+@[^:/?]+:`)

// errSSH refuses a repository over SSH.
var errSSH = refuse(ErrMalformed, "the link to the module is an SSH address, which is not fetched: it must be an HTTPS address, and a private repository needs a token for its host")

// cutFolder splits the part after // from a location, as clients do.
func cutFolder(text string) (rest, folder string) {
	path, query, asked := strings.Cut(text, "?")
	start := 0
	if i := strings.Index(path, "://"); i >= 0 {
		start = i + len("://")
	}
	before, folder, found := strings.Cut(path[start:], "//")
	if !found {
		return text, ""
	}
	rest = path[:start] + before
	if asked {
		rest += "?" + query
	}
	return rest, folder
}

// parseFolder reads the part after // in a location.
func parseFolder(text string) (folder string, inTop bool, err error) {
	if first, rest, _ := strings.Cut(text, "/"); first == "*" {
		inTop, text = true, rest
	}
	if len(text) > 1024 || strings.HasPrefix(text, "/") {
		return "", false, refuse(ErrMalformed, "the folder in the link to the module is not one")
	}
	var segments []string
	for segment := range strings.SplitSeq(text, "/") {
		switch {
		case segment == "" || segment == ".":
			continue
		case segment == "..":
			return "", false, refuse(ErrUnsafe, "the folder in the link to the module leads out of the package")
		case len(segment) > 255 || strings.Trim(segment, safeInURL) != "":
			return "", false, refuse(ErrMalformed, "the folder in the link to the module has a name that not every client finds: its name may have letters, digits and -._~+ in it")
		}
		segments = append(segments, segment)
	}
	return strings.Join(segments, "/"), inTop, nil
}

// safeInURL has the characters with which clients find a folder: they look for its name
// as written in the URL, escaped, and as a glob pattern.
const safeInURL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+"

// parseLocation reads the URL of an archive or a repository. shorthand reports that the
// location is a repository because it has no scheme.
func parseLocation(text string) (u *url.URL, shorthand bool, err error) {
	path, _, _ := strings.Cut(text, "?")
	host, _, _ := strings.Cut(path, "/")
	switch {
	case strings.Contains(path, "://"):
		u, err = url.Parse(text)
	case host == "github.com" || host == "bitbucket.org" || host == "gitlab.com":
		if u, err = url.Parse("https://" + text); err == nil {
			err = expandShorthand(u)
		}
		shorthand = true
	case scpForm.MatchString(text):
		return nil, false, errSSH
	case strings.Contains(path, "::"):
		return nil, false, refuse(ErrMalformed, "the link to the module names two kinds of packages")
	default:
		return nil, false, refuse(ErrMalformed, "the link to the module is a path on a disk or the address of another registry, which clients refuse: it must be a URL")
	}
	if _, refused := errors.AsType[*refusal](err); refused {
		return nil, false, err
	}
	if err != nil {
		return nil, false, refuse(ErrMalformed, "the link to the module is not a URL")
	}
	return u, shorthand, checkLocation(u)
}

// expandShorthand turns HOST/OWNER/NAME into the URL of a repository. GitLab has groups
// in groups.
func expandShorthand(u *url.URL) error {
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = ""
	if n := strings.Count(u.Path, "/"); n < 2 || n > 2 && u.Host != "gitlab.com" {
		return refuse(ErrMalformed, "the link to the module is not HOST/OWNER/NAME: a folder in the repository follows // after the name")
	}
	if !strings.HasSuffix(u.Path, ".git") {
		u.Path += ".git"
	}
	return nil
}

// checkLocation refuses locations that must not be requested, and normalises the
// others.
func checkLocation(u *url.URL) error {
	u.ForceQuery = false
	switch u.Scheme {
	case "https":
		if u.User != nil {
			return refuse(ErrUnsafe, "the link to the module has a user name or password in it: configure them for the host instead")
		}
	case "ssh":
		return errSSH
	case "http", "git":
		return refuse(ErrUnsafe, "the link to the module is without TLS: it must begin with https")
	default:
		return refuseKind(u.Scheme)
	}
	host := u.Hostname()
	if host == "" {
		return refuse(ErrMalformed, "the link to the module is not a URL")
	}
	if _, err := netip.ParseAddr(host); err != nil && !hostName.MatchString(host) {
		return refuse(ErrUnsafe, "the link to the module has a host in it that is not one")
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == ".." || segment == "." {
			return refuse(ErrUnsafe, "the link to the module has a path with dots in it")
		}
	}
	if strings.Contains(u.Path, `\`) || strings.ContainsFunc(u.Path, unicode.IsControl) {
		return refuse(ErrUnsafe, "the link to the module has characters in its path that no file has")
	}
	u.Host = strings.ToLower(strings.TrimSuffix(u.Host, ":443"))
	return nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9.])?$`)

// repository completes the source of a git repository. It ignores the parameter depth,
// which does not matter.
func (s ModuleSource) repository(query url.Values) (ModuleSource, error) {
	for name := range query {
		if name != "ref" && name != "depth" {
			return s, refuse(ErrMalformed, "the link to the module's git repository has parameters other than ref and depth")
		}
	}
	if s.InTopFolder {
		return s, refuse(ErrMalformed, "the link to the module's git repository has the folder *, which clients do not find")
	}
	if s.Ref = query.Get("ref"); s.Ref != "" && !git.IsRef(s.Ref) {
		return s, refuse(ErrUnsafe, "the link to the module's git repository names a ref that is not the name of a tag, branch or commit")
	}
	s.URL.RawQuery = ""
	s.URL.Path, s.URL.RawPath = strings.TrimRight(s.URL.Path, "/"), strings.TrimRight(s.URL.RawPath, "/")
	if s.URL.Path == "" {
		return s, refuse(ErrMalformed, "the link to the module's git repository has no path")
	}
	return s, nil
}

// archiveSuffixes are the formats of archives by the suffix of a path, and by the value
// of archive=.
var archiveSuffixes = []struct{ suffix, format string }{
	{"tar.gz", "tar.gz"}, {"tgz", "tar.gz"}, {"tar.bz2", "tar.bz2"}, {"tar.tbz2", "tar.bz2"}, {"tbz2", "tar.bz2"}, {"zip", "zip"},
	{"tar.xz", ""}, {"txz", ""}, {"xz", ""}, {"tar.zst", ""}, {"tzst", ""}, {"zst", ""}, {"tar", ""}, {"gz", ""}, {"bz2", ""},
}

// archive completes the source of an archive. Clients remove the two parameters that
// are meant for them, and send the others in this order.
func (s ModuleSource) archive(query url.Values) (ModuleSource, error) {
	kind := query.Get("archive")
	for _, a := range archiveSuffixes {
		if kind != a.suffix && (kind != "" || !strings.HasSuffix(s.URL.Path, "."+a.suffix)) {
			continue
		}
		if a.format == "" {
			return s, refuse(ErrMalformed, "the module is in an archive of a kind that is not read: it must be tar.gz, tar.bz2 or zip")
		}
		s.Format = a.format
		break
	}
	if kind != "" && s.Format == "" {
		return s, refuse(ErrMalformed, "the module is not in an archive of a kind that is read: it must be tar.gz, tar.bz2 or zip")
	}
	if checksum := query.Get("checksum"); checksum != "" {
		digits, _ := strings.CutPrefix(checksum, "sha256:")
		sum, err := wire.ParseSHA256(digits)
		if err != nil || sum == (wire.SHA256{}) {
			return s, refuse(ErrMalformed, "the link to the module's archive has a checksum other than sha256")
		}
		s.SHA256 = sum
	}
	query.Del("archive")
	query.Del("checksum")
	s.URL.RawQuery = query.Encode()
	return s, nil
}
