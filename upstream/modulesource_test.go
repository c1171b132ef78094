package upstream_test

import (
	"errors"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

const moduleDownload = "https://" + host + "/v1/modules/acme/vpc/aws/1.0.0/download"

func parseSource(t testing.TB, location string) (upstream.ModuleSource, error) {
	t.Helper()
	from, err := url.Parse(moduleDownload)
	if err != nil {
		t.Fatal(err)
	}
	return upstream.ParseModuleSource(location, from)
}

// Answers of registries. The source is written in the form of String, with the query of
// an archive after a space.
func TestParseModuleSource(t *testing.T) {
	const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, test := range []struct{ rule, location, want string }{
		{"the public registry's", "git::https://github.com/terraform-aws-modules/terraform-aws-vpc?ref=26c38a66f12e7c6c93b6a2ba127ad68981a48671", "git::https://github.com/terraform-aws-modules/terraform-aws-vpc?ref=26c38a66f12e7c6c93b6a2ba127ad68981a48671"},
		{"OpenTofu's", "git::https://github.com/acme/vpc?ref=v1.0.0", "git::https://github.com/acme/vpc?ref=v1.0.0"},
		{"a shallow clone", "git::https://github.com/acme/vpc.git?depth=1&ref=v1.0.0", "git::https://github.com/acme/vpc.git?ref=v1.0.0"},
		{"a folder", "git::https://example.com/acme/vpc.git//modules/a?ref=v1.0.0", "git::https://example.com/acme/vpc.git//modules/a?ref=v1.0.0"},
		{"no ref", "git::https://example.com:443/acme/vpc/", "git::https://example.com/acme/vpc"},
		{"a port", "git::https://Example.com:8443/acme/vpc", "git::https://example.com:8443/acme/vpc"},
		{"a branch with a slash", "git::https://example.com/vpc?ref=release/1.x", "git::https://example.com/vpc?ref=release%2F1.x"},
		{"GitHub's shorthand", "github.com/acme/vpc?ref=v1", "git::https://github.com/acme/vpc.git?ref=v1"},
		{"GitHub's shorthand with a folder", "github.com/acme/vpc//modules/a?ref=v1", "git::https://github.com/acme/vpc.git//modules/a?ref=v1"},
		{"a shorthand as git", "git::github.com/acme/vpc.git", "git::https://github.com/acme/vpc.git"},
		{"Bitbucket's shorthand", "bitbucket.org/acme/vpc", "git::https://bitbucket.org/acme/vpc.git"},
		{"GitLab's shorthand", "gitlab.com/acme/team/vpc", "git::https://gitlab.com/acme/team/vpc.git"},
		{"a repository by its suffix", "https://example.com/vpc.git?ref=v1", "git::https://example.com/vpc.git?ref=v1"},
		{"an archive", "https://files.example.com/vpc.tar.gz", "https://files.example.com/vpc.tar.gz?archive=tar.gz"},
		{"other suffixes", "https://files.example.com/vpc.tgz", "https://files.example.com/vpc.tgz?archive=tar.gz"},
		{"bzip2", "https://files.example.com/vpc.tar.bz2", "https://files.example.com/vpc.tar.bz2?archive=tar.bz2"},
		{"a kind that is said", "https://files.example.com/vpc?archive=zip", "https://files.example.com/vpc?archive=zip"},
		{"a kind that is said counts", "https://files.example.com/vpc.zip?archive=tgz", "https://files.example.com/vpc.zip?archive=tar.gz"},
		{"a folder of an archive", "https://files.example.com/vpc.zip//modules/a", "https://files.example.com/vpc.zip//modules/a?archive=zip"},
		{"a checksum", "https://files.example.com/vpc.zip?checksum=sha256:" + sum, "https://files.example.com/vpc.zip?archive=zip&checksum=sha256%3A" + sum},
		{"a checksum by its length", "https://files.example.com/vpc.zip?checksum=" + sum, "https://files.example.com/vpc.zip?archive=zip&checksum=sha256%3A" + sum},
		{"a signed URL", "https://files.example.com/vpc.zip?sig=b&exp=a", "https://files.example.com/vpc.zip?archive=zip exp=a&sig=b"},
		{"the folder of any name of the published protocol", "https://api.github.com/repos/hashicorp/terraform-aws-consul/tarball/v0.0.1//*?archive=tar.gz", "https://api.github.com/repos/hashicorp/terraform-aws-consul/tarball/v0.0.1//*?archive=tar.gz"},
		{"a folder in the folder of any name", "https://example.com/x.tar.gz//*/modules/a", "https://example.com/x.tar.gz//*/modules/a?archive=tar.gz"},
		{"an absolute path", "/files/vpc.tar.gz?token=a", "https://" + host + "/files/vpc.tar.gz?archive=tar.gz token=a"},
		{"a relative path", "./archive.tar.gz//a", "https://" + host + "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz//a?archive=tar.gz"},
		{"a path upwards", "../../x.zip", "https://" + host + "/v1/modules/acme/vpc/x.zip?archive=zip"},
		{"another host by the scheme of this one", "//files.example.com/x.zip", "https://files.example.com/x.zip?archive=zip"},
		{"GitLab's API", "https://gitlab.example.com/api/v4/projects/a%2Fb/x.tgz", "https://gitlab.example.com/api/v4/projects/a%2Fb/x.tgz?archive=tar.gz"},
		{"a URL to ask", "https://example.com/vpc?x=1", "https://example.com/vpc x=1"},
		{"an IP address", "https://[2001:db8::1]:8443/x.zip", "https://[2001:db8::1]:8443/x.zip?archive=zip"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s, err := parseSource(t, test.location)
			if err != nil {
				t.Fatal(err)
			}
			got := s.String()
			if s.URL.RawQuery != "" {
				got += " " + s.URL.RawQuery
			}
			if got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestModuleSourceIsRefused(t *testing.T) {
	for _, test := range []struct {
		rule, location string
		kind           error
		says           string
	}{
		{"a bucket of S3", "s3::https://s3.amazonaws.com/b/x.zip", upstream.ErrMalformed, "bucket of S3"},
		{"a bucket of Google", "gcs::https://www.googleapis.com/storage/v1/b/x.zip", upstream.ErrMalformed, "Google Cloud"},
		{"Mercurial", "hg::https://example.com/x", upstream.ErrMalformed, "Mercurial"},
		{"an OCI registry", "oci://example.com/x?tag=1", upstream.ErrMalformed, "OCI"},
		{"a file", "file:///etc/passwd", upstream.ErrMalformed, "file on a disk"},
		{"a file by git", "git::file:///srv/secret", upstream.ErrMalformed, "file on a disk"},
		{"a path by git", "git::/srv/secret", upstream.ErrMalformed, "path on a disk"},
		{"a command", "ext::sh -c secret", upstream.ErrMalformed, "a command"},
		{"a command by git", "git::ext::sh -c secret", upstream.ErrMalformed, "two kinds"},
		{"without TLS", "http://example.com/secret.zip", upstream.ErrUnsafe, "without TLS"},
		{"git without TLS", "git::http://example.com/secret", upstream.ErrUnsafe, "without TLS"},
		{"git's own protocol", "git::git://example.com/secret", upstream.ErrUnsafe, "without TLS"},
		{"another registry", "acme/secret/aws", upstream.ErrMalformed, "address of another registry"},
		{"a local path", "modules/secret", upstream.ErrMalformed, "path on a disk"},
		{"nothing", "", upstream.ErrMalformed, "path on a disk"},
		{"a password", "git::https://me:secret@example.com/x", upstream.ErrUnsafe, "user name or password"},
		{"a token as user name", "https://secret@example.com/x.zip", upstream.ErrUnsafe, "user name or password"},
		{"SSH as git", "git::ssh://git@example.com:2222/secret.git//a", upstream.ErrMalformed, "must be an HTTPS address"},
		{"SSH alone", "ssh://example.com/secret", upstream.ErrMalformed, "must be an HTTPS address"},
		{"SSH with a key that the registry hands out", "git::ssh://git@example.com/vpc?sshkey=secret", upstream.ErrMalformed, "must be an HTTPS address"},
		{"SSH with a password", "git::ssh://git:secret@example.com/x", upstream.ErrMalformed, "must be an HTTPS address"},
		{"SSH in the form of scp", "git@example.com:secret/vpc.git//a?ref=v1", upstream.ErrMalformed, "must be an HTTPS address"},
		{"SSH in the form of scp, as git", "git::git@example.com:/secret/vpc.git", upstream.ErrMalformed, "must be an HTTPS address"},
		{"SSH in the form of scp, of another user", "me@example.com:secret/vpc.git", upstream.ErrMalformed, "must be an HTTPS address"},
		{"a key for SSH over HTTPS", "git::https://example.com/x?sshkey=secret", upstream.ErrMalformed, "parameters"},
		{"an option as ref", "git::https://example.com/x?ref=--upload-pack=secret", upstream.ErrUnsafe, "not the name of a tag"},
		{"a range as ref", "git::https://example.com/x?ref=a..secret", upstream.ErrUnsafe, "not the name of a tag"},
		{"a refspec as ref", "git::https://example.com/x?ref=a:secret", upstream.ErrUnsafe, "not the name of a tag"},
		{"a line break in a ref", "git::https://example.com/x?ref=a%0Asecret", upstream.ErrUnsafe, "not the name of a tag"},
		{"other parameters of git", "git::https://example.com/x?secret=a", upstream.ErrMalformed, "parameters"},
		{"a line break", "https://example.com/x.zip\nsecret", upstream.ErrMalformed, "characters"},
		{"a folder that leads out", "https://example.com/x.zip//a/../../secret", upstream.ErrUnsafe, "leads out"},
		{"an escaped folder that leads out", "https://example.com/x.zip//%2e%2e/secret", upstream.ErrMalformed, "a name that not every client finds"},
		{"a backslash in a folder", `https://example.com/x.zip//a\secret`, upstream.ErrMalformed, "a name that not every client finds"},
		{"a folder by a pattern", "https://example.com/x.zip//secret*", upstream.ErrMalformed, "a name that not every client finds"},
		{"any folder of a repository", "git::https://example.com/x//*", upstream.ErrMalformed, "folder *"},
		{"a path with dots", "git::https://example.com/a/../secret", upstream.ErrUnsafe, "dots"},
		{"a path with escaped dots", "git::https://example.com/%2e%2e/secret", upstream.ErrUnsafe, "dots"},
		{"a backslash in a path", "git::https://example.com/a%5Csecret", upstream.ErrUnsafe, "characters"},
		{"a host without a name", "https:///secret.zip", upstream.ErrMalformed, "not a URL"},
		{"a repository without a path", "git::https://example.com", upstream.ErrMalformed, "no path"},
		{"a shorthand with a folder in it", "github.com/acme/vpc/modules/secret", upstream.ErrMalformed, "HOST/OWNER/NAME"},
		{"half a shorthand", "github.com/secret", upstream.ErrMalformed, "HOST/OWNER/NAME"},
		{"an archive that is none", "https://example.com/x.zip?archive=false", upstream.ErrMalformed, "tar.gz, tar.bz2 or zip"},
		{"xz", "https://example.com/x.tar.xz", upstream.ErrMalformed, "tar.gz, tar.bz2 or zip"},
		{"another checksum", "https://example.com/x.zip?checksum=md5:d41d8cd98f00b204e9800998ecf8427e", upstream.ErrMalformed, "sha256"},
		{"a checksum elsewhere", "https://example.com/x.zip?checksum=file:https://example.com/secret", upstream.ErrMalformed, "sha256"},
		{"a megabyte", "https://example.com/" + strings.Repeat("secret", 1<<18) + ".zip", upstream.ErrMalformed, "too long"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, err := parseSource(t, test.location)
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%v repeats the link", err)
			}
		})
	}
}

// A location may name what a module has to be. It can be compared with what was fetched.
func TestNamedContent(t *testing.T) {
	for _, test := range []struct{ rule, ref, commit string }{
		{"a commit", commit, commit},
		{"a commit in capitals", strings.ToUpper(commit), commit},
		{"no tag", "v1.0.0", ""},
		{"not the beginning of a commit", commit[:39], ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s, err := parseSource(t, "git::https://example.com/acme/vpc.git?ref="+test.ref)
			if got := s.NamedContent(); err != nil || got.Commit != test.commit {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// An accepted location is safe to request.
func FuzzParseModuleSource(f *testing.F) {
	for _, seed := range []string{
		"git::https://github.com/a/b//c?ref=v1&depth=1", "github.com/a/b", "git@a:b//c", "git::ssh://git@a:22/b?sshkey=a", "../x.tar.gz//d?checksum=sha256:00",
		"https://a/b//*/c?archive=tar.gz", "//a/b.zip", "https://a//b.zip", "git::https://a/b?ref=-x", "https://u:p@a/x.zip", `git@a/:"/c`, "https://[::1]/%2e%2e/x.zip", "https://a/x.zip///b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, location string) {
		s, err := parseSource(t, location)
		if err != nil {
			return
		}
		if s.URL.Scheme != "https" || s.URL.User != nil || s.URL.Host == "" || strings.HasPrefix(s.URL.Host, "-") {
			t.Errorf("the URL is %s", s.URL)
		}
		if s.Folder != "" && (!fs.ValidPath(s.Folder) || strings.ContainsAny(s.Folder, `\%?#*`)) {
			t.Errorf("the folder is %q", s.Folder)
		}
		if strings.HasPrefix(s.Ref, "-") || strings.ContainsAny(s.Ref, "\n\r\x00 :") {
			t.Errorf("the ref is %q", s.Ref)
		}
		if again, err := parseSource(t, s.String()); err != nil || again.String() != s.String() || again.Folder != s.Folder || again.Git != s.Git || again.Ref != s.Ref || again.Format != s.Format || again.SHA256 != s.SHA256 {
			t.Errorf("%s is read as %+v, %v", s, again, err)
		}
	})
}
