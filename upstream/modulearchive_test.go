package upstream_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An entry of an archive, with its content or with the target of a link.
type entry struct {
	name, content string
	kind          byte // of tar; zero is a file
	mode          int64
}

const commit = "26c38a66f12e7c6c93b6a2ba127ad68981a48671"

func tarGz(t testing.TB, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Mode: e.mode}
		switch e.kind {
		case 0, tar.TypeReg:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.content))
		case tar.TypeXGlobalHeader:
			h.PAXRecords = map[string]string{"comment": e.content}
		default:
			h.Linkname = e.content
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			w.Write([]byte(e.content))
		}
	}
	w.Close()
	z.Close()
	return b.String()
}

func zipOf(t testing.TB, comment string, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.SetComment(comment)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(fs.FileMode(e.mode))
		if e.kind == tar.TypeSymlink {
			h.SetMode(fs.ModeSymlink | 0o777)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(e.content))
	}
	w.Close()
	return b.String()
}

// fetchModule fetches the module of a site and lists its files. An asterisk marks an
// executable, an arrow a link.
func fetchModule(t testing.TB, s *site, o upstream.Origin) (string, upstream.ModuleContent, error) {
	t.Helper()
	c := s.Client(t, o)
	upstream.LimitUnpacked(c, 1<<20)
	source, err := c.ModuleSource(background(), vpc, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	content, err := c.FetchModule(background(), source, into)
	return listed(t, into), content, err
}

func listed(t testing.TB, dir string) string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		relative, _ := filepath.Rel(dir, name)
		relative = filepath.ToSlash(relative)
		switch info, _ := e.Info(); {
		case e.IsDir():
			return nil
		case e.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(name)
			relative += "->" + target
		case info.Mode()&0o111 != 0:
			relative += "*"
		}
		list = append(list, relative)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

func TestFetchModuleArchive(t *testing.T) {
	files := []entry{{name: "main.tf", content: `module "a" { source = "./modules/a" }`}, {name: "bin/run", content: "x", mode: 0o755}, {name: "./modules/a/main.tf"}, {name: "modules/", kind: tar.TypeDir}}
	hosted := func(entries ...entry) []entry {
		return append([]entry{{name: "pax_global_header", kind: tar.TypeXGlobalHeader, content: commit}, {name: "vpc-1/", kind: tar.TypeDir}}, entries...)
	}
	const all = "bin/run* main.tf modules/a/main.tf"
	for _, test := range []struct {
		rule, archive, more, want, commit string
	}{
		{"tar.gz", tarGz(t, files...), "", all, ""},
		{"zip", zipOf(t, "", files[:3]...), "?archive=zip", all, ""},
		{"bzip2", bzip2Sample(t), "?archive=tar.bz2", "main.tf", ""},
		{"the commit that git archive writes", tarGz(t, hosted(entry{name: "vpc-1/main.tf"})...), "", "vpc-1/main.tf", commit},
		{"the commit in a zip", zipOf(t, commit, entry{name: "main.tf"}), "?archive=zip", "main.tf", commit},
		{"another comment", zipOf(t, "made by me", entry{name: "main.tf"}), "?archive=zip", "main.tf", ""},
		{"the folder that a code host adds", tarGz(t, hosted(entry{name: "vpc-1/main.tf"}, entry{name: "vpc-1/a/b.tf"})...), "//*?archive=tar.gz", "a/b.tf main.tf", commit},
		{"links of that folder", tarGz(t, hosted(entry{name: "vpc-1/main.tf"}, entry{name: "vpc-1/l.tf", kind: tar.TypeSymlink, content: "main.tf"}, entry{name: "vpc-1/h.tf", kind: tar.TypeLink, content: "vpc-1/main.tf"})...), "//*", "h.tf l.tf->main.tf main.tf", commit},
		{"that folder by its name", tarGz(t, hosted(entry{name: "vpc-1/main.tf"}, entry{name: "README"})...), "//vpc-1", "vpc-1/main.tf", commit},
		{"a folder in the folder that a code host adds", tarGz(t, hosted(entry{name: "vpc-1/main.tf"}, entry{name: "vpc-1/a/b.tf"})...), "//*/a?archive=tar.gz", "a/b.tf", commit},
		{"a link inside", zipOf(t, "", entry{name: "l", kind: tar.TypeSymlink, content: "a/../main.tf"}, entry{name: "main.tf"}), "?archive=zip", "l->a/../main.tf main.tf", ""},
		{"a link to nothing", tarGz(t, entry{name: "a/l", kind: tar.TypeSymlink, content: "../b"}, entry{name: "main.tf"}), "", "a/l->../b main.tf", ""},
		{"a hard link is a copy", tarGz(t, entry{name: "run", content: "x", mode: 0o755}, entry{name: "a/run", kind: tar.TypeLink, content: "run"}), "", "a/run* run*", ""},
		{"a contiguous file", tarGz(t, entry{name: "main.tf", kind: tar.TypeCont}), "", "main.tf", ""},
		{"the last of a name", tarGz(t, entry{name: "main.tf", content: "long"}, entry{name: "main.tf"}), "", "main.tf", ""},
		{"an empty archive", tarGz(t), "", "", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.ModuleArchive(test.archive, test.more)
			got, content, err := fetchModule(t, s, upstream.Origin{})
			if err != nil || got != test.want {
				t.Errorf("got %q, %v", got, err)
			}
			if content.Commit != test.commit || content.SHA256 != sha256.Sum256([]byte(test.archive)) {
				t.Errorf("it is %+v", content)
			}
		})
	}
}

// endlessZip returns the end of a zip64 that claims to have very many entries.
func endlessZip() string {
	var b bytes.Buffer
	entries := uint64(1 << 40)
	for _, part := range []any{
		[]byte("PK\x06\x06"), uint64(44), uint16(45), uint16(45), uint32(0), uint32(0), entries, entries, uint64(0), uint64(0),
		[]byte("PK\x06\x07"), uint32(0), uint64(0), uint32(1),
		[]byte("PK\x05\x06"), uint16(0), uint16(0), uint16(0xffff), uint16(0xffff), uint32(0), uint32(0xffffffff), uint16(0),
	} {
		binary.Write(&b, binary.LittleEndian, part)
	}
	return b.String()
}

// bzip2Sample returns a tar.bz2 of an empty main.tf, which Go does not write.
func bzip2Sample(t *testing.T) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString("QlpoOTFBWSZTWaZNn9kAAHH7gMiAAEBAAX2AACBhI54AAgggAFQlJqemoA0aGh6gkiIxAGg0Ft5/CQQihCNdJF82uMGSQOmez9wiiTAVmFKkmukLNWro71UtQ7jzc9GvtDEfQ6Igfi7kinChIUybP7I=")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Archives that are refused whole.
func TestModuleArchiveIsRefused(t *testing.T) {
	large := strings.Repeat("0", 1<<20)
	for _, test := range []struct {
		rule    string
		entries []entry
		kind    error
		says    string
	}{
		{"an absolute name", []entry{{name: "/etc/main.tf"}}, upstream.ErrMalformed, "leads out"},
		{"a name that leads out", []entry{{name: "a/../../main.tf"}}, upstream.ErrMalformed, "leads out"},
		{"a backslash", []entry{{name: `a\main.tf`}}, upstream.ErrMalformed, "not every client can unpack"},
		{"a control character", []entry{{name: "a\nmain.tf"}}, upstream.ErrMalformed, "not every client can unpack"},
		{"a long name", []entry{{name: strings.Repeat("a", 256)}}, upstream.ErrMalformed, "255 bytes"},
		{"a long path", []entry{{name: strings.Repeat("a/", 512) + "main.tf"}}, upstream.ErrMalformed, "1024 bytes"},
		{"a link that leads out", []entry{{name: "a/l", kind: tar.TypeSymlink, content: "../../secret"}}, upstream.ErrUnsafe, `link "a/l" that leads out`},
		{"an absolute link", []entry{{name: "l", kind: tar.TypeSymlink, content: "/etc"}}, upstream.ErrUnsafe, "leads out"},
		{"links that lead out together", []entry{{name: "a/b/up", kind: tar.TypeSymlink, content: "../.."}, {name: "a/b/l", kind: tar.TypeSymlink, content: "up/../x"}}, upstream.ErrUnsafe, "leads out"},
		{"links in a circle", []entry{{name: "a", kind: tar.TypeSymlink, content: "b"}, {name: "b", kind: tar.TypeSymlink, content: "a"}}, upstream.ErrUnsafe, "leads out"},
		{"a file through a link", []entry{{name: "l", kind: tar.TypeSymlink, content: "a"}, {name: "l/main.tf"}}, upstream.ErrMalformed, "twice"},
		{"a link over a file", []entry{{name: "l"}, {name: "l", kind: tar.TypeSymlink, content: "a"}}, upstream.ErrMalformed, "twice"},
		{"a hard link that leads out", []entry{{name: "l", kind: tar.TypeLink, content: "../x"}}, upstream.ErrMalformed, "leads out"},
		{"a hard link to what comes later", []entry{{name: "l", kind: tar.TypeLink, content: "main.tf"}, {name: "main.tf"}}, upstream.ErrMalformed, "not before it"},
		{"a hard link to a link", []entry{{name: "s", kind: tar.TypeSymlink, content: "/etc/passwd"}, {name: "l", kind: tar.TypeLink, content: "s"}}, upstream.ErrMalformed, "not before it"},
		{"a device", []entry{{name: "null", kind: tar.TypeChar}}, upstream.ErrMalformed, "neither a file nor a folder"},
		{"a pipe", []entry{{name: "p", kind: tar.TypeFifo}}, upstream.ErrMalformed, "neither a file nor a folder"},
		{"names of one file on many disks", []entry{{name: "a/main.tf"}, {name: "A/other.tf"}}, upstream.ErrMalformed, "one file on many disks"},
		{"a file that is a folder", []entry{{name: "a"}, {name: "a/main.tf"}}, upstream.ErrMalformed, "twice"},
		{"a file larger than all may be", []entry{{name: "a", content: large + "0"}}, upstream.ErrTooLarge, "unpacks to more than"},
		{"files larger than they may be together", []entry{{name: "a", content: large[1:]}, {name: "b", content: "00"}}, upstream.ErrTooLarge, "unpacks to more than"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.ModuleArchive(tarGz(t, test.entries...), "")
			_, _, err := fetchModule(t, s, upstream.Origin{})
			mustFail(t, err, test.kind, test.says)
			for _, e := range test.entries {
				if e.kind == tar.TypeLink || e.kind == tar.TypeChar || e.kind == tar.TypeFifo {
					return // a zip has no such entries
				}
			}
			s.ModuleArchive(zipOf(t, "", test.entries...), "?archive=zip")
			_, _, err = fetchModule(t, s, upstream.Origin{})
			mustFail(t, err, test.kind, test.says)
		})
	}
}

func TestModuleArchiveFails(t *testing.T) {
	good := tarGz(t, entry{name: "main.tf", content: "x"})
	sum := wire.SHA256(sha256.Sum256([]byte(good)))
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		more   string
		kind   error
		says   string
	}{
		{"the checksum of the location", nil, "?checksum=sha256:" + sum.String(), nil, ""},
		{"another checksum", nil, "?checksum=sha256:" + strings.Repeat("1", 64), upstream.ErrBadChecksum, "not the one that the origin names"},
		{"a web page", body("<html>"), "", upstream.ErrMalformed, "is damaged"},
		{"the first half", body(good[:len(good)/2]), "", upstream.ErrMalformed, "is damaged"},
		{"no zip", nil, "?archive=zip", upstream.ErrMalformed, "is damaged"},
		{"a zip that claims more files than a module may have", body(endlessZip()), "?archive=zip", upstream.ErrTooLarge, "more than 50000 files"},
		{"no bzip2", nil, "?archive=tbz2", upstream.ErrMalformed, "is damaged"},
		{"a folder that is not there", nil, "//a", upstream.ErrMalformed, `no folder "a"`},
		{"a folder that is a file", nil, "//main.tf", upstream.ErrMalformed, `no folder "main.tf"`},
		{"several folders where the location says one", body(tarGz(t, entry{name: "a/b"}, entry{name: "c/d"})), "//*", upstream.ErrMalformed, "and there is more"},
		{"a file beside the one folder", body(tarGz(t, entry{name: "a/b"}, entry{name: "c"})), "//*", upstream.ErrMalformed, "and there is more"},
		{"a broken link", status(404), "", upstream.ErrMalformed, "links to a module that is not there"},
		{"no content", status(204), "", upstream.ErrMalformed, "answered 204"},
		{"refused", status(403), "", upstream.ErrRefused, "it needs a token"},
		{"larger than modules may be", body(strings.Repeat("x", 2000)), "", upstream.ErrTooLarge, "the limit of a package"},
		{"a redirect to a private network", redirect("https://10.0.0.1/x.tar.gz"), "", upstream.ErrUnsafe, "private network"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.ModuleArchive(good, test.more)
			if test.answer != nil {
				s.Fault(upstreamtest.ModuleArchivePath, test.answer)
			}
			c := s.Client(t, upstream.Origin{})
			upstream.LimitModules(c, 1000)
			source, err := c.ModuleSource(background(), vpc, "1.0.0")
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.FetchModule(background(), source, t.TempDir())
			if test.kind == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			mustFail(t, err, test.kind, test.says)
		})
	}
}

// Only a configured host of modules gets its credentials, and only on its own port.
func TestModuleCredentials(t *testing.T) {
	hosts := []upstream.Host{{Name: "files.example.com", User: "me", Token: "secret"}, {Name: host, Token: "other"}}
	basic := func(user, token string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+token))
	}
	for _, test := range []struct {
		rule, location, want string
		hosts                []upstream.Host
	}{
		{"the host", "https://files.example.com/x.tar.gz", basic("me", "secret"), hosts},
		{"a user that code hosts do not look at", "/x.tar.gz", basic("git", "other"), hosts},
		{"another port of the host", "https://files.example.com:8443/x.tar.gz", "", hosts},
		{"the origin itself", "/x.tar.gz", "Bearer token", nil},
		{"a redirect of the host", "https://files.example.com/away", "", hosts},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.ModuleService(test.location)
			if strings.HasSuffix(test.location, "/away") {
				s.ModuleService(test.location + "?archive=tgz")
			}
			s.Fault("/away", redirect("https://other.example.com/x.tar.gz"))
			s.Fault("/x.tar.gz", body(tarGz(t)))
			if _, _, err := fetchModule(t, s, upstream.Origin{Token: "token", Hosts: test.hosts, Private: []string{"other.example.com"}}); err != nil {
				t.Fatal(err)
			}
			requests := s.Requests("/x.tar.gz")
			if len(requests) != 1 || requests[0].Header.Get("Authorization") != test.want {
				t.Errorf("got %v", requests[0].Header)
			}
			if asked := s.Requests(modulePath)[0].Header.Get("Authorization"); asked != "Bearer token" {
				t.Errorf("the origin got %q", asked)
			}
		})
	}
}

func TestFetchModuleEndsWithItsCaller(t *testing.T) {
	s := newAcme(t)
	s.ModuleArchive(tarGz(t), "")
	c := s.Client(t, upstream.Origin{})
	source, err := c.ModuleSource(background(), vpc, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(background())
	s.Fault(upstreamtest.ModuleArchivePath, func(w http.ResponseWriter, r *http.Request) { cancel(); upstreamtest.Silence(w, r) })
	_, err = c.FetchModule(ctx, source, t.TempDir())
	mustFail(t, err, context.Canceled, "")
}

// Whatever an archive contains, nothing is written outside of its folder, and no link
// leads there.
func FuzzUnpackModule(f *testing.F) {
	f.Add(true, []byte(tarGz(f, entry{name: "a/main.tf", content: "x"}, entry{name: "a/l", kind: tar.TypeSymlink, content: "../../x"}, entry{name: "h", kind: tar.TypeLink, content: "a/main.tf"})))
	f.Add(false, []byte(zipOf(f, commit, entry{name: "a/main.tf", content: "x"}, entry{name: "l", kind: tar.TypeSymlink, content: "a"})))
	f.Fuzz(func(t *testing.T, isTar bool, packed []byte) {
		format := "zip"
		if isTar {
			format = "tar.gz"
		}
		outer := t.TempDir()
		into := filepath.Join(outer, "into")
		if err := os.Mkdir(into, 0o755); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(outer, "archive")
		if err := os.WriteFile(name, packed, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := upstream.UnpackModule(background(), name, format, into)
		if entries, _ := os.ReadDir(outer); len(entries) != 2 {
			t.Fatalf("%v are beside the folder", entries)
		}
		if err != nil {
			return
		}
		err = filepath.WalkDir(into, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.Type() != fs.ModeSymlink {
				return err
			}
			at, err := filepath.EvalSymlinks(name)
			if err == nil && at != into && !strings.HasPrefix(at, into+string(filepath.Separator)) {
				t.Errorf("%s leads to %s", name, at)
			}
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
