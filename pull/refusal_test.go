package pull_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// Each reason not to mirror a package has an error of its own, is remembered for the
// next request, and leaves the tree unchanged.
func TestPackagesThatAreRefused(t *testing.T) { eachTree(t, testPackagesThatAreRefused) }

func testPackagesThatAreRefused(t *testing.T, on treeKind) {
	for _, test := range []struct {
		rule string
		path string
		says func(s *site) http.HandlerFunc
		kind error
		tell string
	}{
		{"no such package", zipFile, func(*site) http.HandlerFunc { return status(404) }, upstream.ErrMalformed, "links to a package that is not there"},
		{"no such platform", metadata, func(*site) http.HandlerFunc { return status(404) }, upstream.ErrNotFound, ""},
		{"a server error", zipFile, func(*site) http.HandlerFunc { return status(500) }, upstream.ErrUnavailable, "answered 500"},
		{"too many requests", zipFile, func(*site) http.HandlerFunc { return status(429) }, upstream.ErrUnavailable, "answered 429"},
		{"access is refused", zipFile, func(*site) http.HandlerFunc { return status(403) }, upstream.ErrRefused, "answered 403"},
		{"other bytes", zipFile, func(s *site) http.HandlerFunc { return s.Edited("PK", "PX") }, upstream.ErrBadChecksum, linuxZip},
		{"a truncated body", zipFile, func(s *site) http.HandlerFunc { return s.Part(10, new([]string), upstreamtest.BreakOff) }, upstream.ErrUnavailable, "broke off"},
		{"other bytes in SHA256SUMS", sumsFile, func(s *site) http.HandlerFunc { return s.Edited(s.Sum(t, darwinZip), strings.Repeat("0", 64)) }, upstream.ErrBadChecksum, ""},
		{"a wrong signature", sigFile, func(*site) http.HandlerFunc { return body("nonsense") }, upstream.ErrBadSignature, ""},
		{"an unknown signature", sigFile, func(s *site) http.HandlerFunc {
			return body(indextest.NewPublisher(t).Sign(""))
		}, upstream.ErrBadSignature, ""},
		{"no signature", sigFile, func(*site) http.HandlerFunc { return status(404) }, upstream.ErrMalformed, "signature that is not there"},
		{"a malformed list", versions, func(*site) http.HandlerFunc { return body("<html>") }, upstream.ErrMalformed, ""},
		{"no such provider", versions, func(*site) http.HandlerFunc { return status(404) }, upstream.ErrNotFound, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(test.path, test.says(s))
			m := on.mirror(t, s.Client(t, upstream.Origin{Timeout: time.Second}), pull.Policy{})
			m.mustRefuse(t, linuxZip, test.kind, test.tell)
			asked := len(s.Asked())
			m.mustRefuse(t, linuxZip, test.kind, test.tell)
			if len(s.Asked()) != asked {
				t.Error("the origin was asked again at once")
			}
			if strings.Contains(strings.Join(m.files(t), " "), linuxZip) {
				t.Error("it is in the tree")
			}
		})
	}
}

// An origin that is down, and one that does not answer.
func TestOriginsThatDoNotAnswer(t *testing.T) {
	t.Run("down", func(t *testing.T) {
		s := newAcme(t)
		server := s.Serve(t)
		c := newClient(t, upstream.Origin{Hostname: host, Timeout: 10 * time.Second}, upstream.Network{Roots: roots(server), Connect: resolving(server)})
		server.Close()
		onDisk(t, c, pull.Policy{}).mustRefuse(t, linuxZip, upstream.ErrUnavailable, "")
	})
	s := newAcme(t)
	s.Fault(zipFile, upstreamtest.Silence)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		m := inMemory(t, c, pull.Policy{}, indextest.New(t))
		began := time.Now()
		m.mustRefuse(t, linuxZip, upstream.ErrTimeout, "")
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it took %v", took)
		}
		m.Close()
	})
}

// Failures are remembered for a while, and for less time if they may soon be over.
func TestFailuresAreForgotten(t *testing.T) {
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		after  time.Duration
	}{
		{"a server error", status(503), 15 * time.Second},
		{"wrong bytes", body("wrong"), time.Minute},
	} {
		s := newAcme(t)
		s.Fault(zipFile, test.answer)
		s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
			m := inMemory(t, c, pull.Policy{}, indextest.New(t))
			defer m.Close()
			if _, err := m.Fill(background(), demo, linuxZip); err == nil {
				t.Fatal("the package came in")
			}
			s.Fault(zipFile, nil)
			time.Sleep(test.after - time.Second)
			if _, err := m.Fill(background(), demo, linuxZip); err == nil {
				t.Errorf("%s: it is not remembered", test.rule)
			}
			time.Sleep(time.Second)
			if _, err := m.Fill(background(), demo, linuxZip); err != nil {
				t.Errorf("%s: %v", test.rule, err)
			}
		})
	}
}

// A disk is a file system that fails when some files are written.
type disk struct {
	afero.Fs
	fails error
	part  string // of the names at which it fails
}

func (d disk) OpenFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	f, err := d.Fs.OpenFile(name, flag, perm)
	if err != nil || !strings.Contains(name, d.part) {
		return f, err
	}
	return failingFile{f, d.fails}, nil
}

type failingFile struct {
	afero.File
	fails error
}

func (f failingFile) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/secret/path", Err: f.fails}
}

func TestDisksThatFail(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	memory := afero.NewMemMapFs()
	for _, test := range []struct {
		rule string
		fs   afero.Fs
		kind error
	}{
		{"no room for the package", disk{memory, syscall.ENOSPC, ".part"}, tree.ErrDiskFull},
		{"no room within the quota", disk{memory, syscall.EDQUOT, ".part"}, tree.ErrDiskFull},
		{"no room for its documents", disk{memory, syscall.ENOSPC, "SHA256SUMS"}, tree.ErrDiskFull},
		{"a broken disk", disk{memory, syscall.EIO, ".part"}, tree.ErrNotWritable},
		{"no permission to write", afero.NewReadOnlyFs(memory), tree.ErrNotWritable},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := inMemory(t, c, pull.Policy{}, indextest.On(t, test.fs))
			_, err := m.Fill(background(), demo, linuxZip)
			if !errors.Is(err, test.kind) || strings.Contains(err.Error(), "path") {
				t.Errorf("got %v", err)
			}
			for _, name := range m.files(t) {
				if strings.Contains(name, ".zip") || strings.Contains(name, ".part") || strings.Contains(name, ".tmp") {
					t.Errorf("there is %s", name)
				}
			}
		})
	}
}

// Packages that clients could not use are refused, although they are signed. Package archive decides
// which they are.
func TestPackagesThatClientsCannotUse(t *testing.T) { eachTree(t, testPackagesThatClientsCannotUse) }

func testPackagesThatClientsCannotUse(t *testing.T, on treeKind) {
	for rule, test := range map[string]struct{ zip, says string }{
		"no zip":                  {"not a zip", "cannot be read to its end"},
		"a zip without provider":  {indextest.Zip("README.md", "hello"), "no file terraform-provider-demo"},
		"a provider of other use": {indextest.Zip("terraform-provider-demonic", "hello"), "no file terraform-provider-demo"},
		"an entry that leaves":    {indextest.Zip("terraform-provider-demo", "hello", "../evil", "hello"), "leaves its folder"},
	} {
		zip := test.zip
		t.Run(rule, func(t *testing.T) {
			folders, publisher := indextest.New(t), indextest.NewPublisher(t)
			folders.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(publisher)
			folders.Keys("acme", publisher)
			s := newSite(t, folders)
			document := sumOf(zip) + "  " + linuxZip + "\n"
			s.Fault(zipFile, body(zip))
			s.Fault(sumsFile, body(document))
			s.Fault(sigFile, body(publisher.Sign(document)))
			s.Fault(metadata, s.Edited(s.Sum(t, linuxZip), sumOf(zip), `"package_size"`, `"size"`))
			root := on.root(t)
			root.tree(t).Keys(host+"/acme", publisher)
			over(t, s.Client(t, upstream.Origin{}), pull.Policy{}, root).mustRefuse(t, linuxZip, upstream.ErrMalformed, test.says)
		})
	}
}

// Only pinned keys count, with and without a signature.
func TestPinnedKeys(t *testing.T) { eachTree(t, testPinnedKeys) }

func testPinnedKeys(t *testing.T, on treeKind) {
	folders, publisher := acme(t)
	for _, test := range []struct {
		rule  string
		keys  string
		fault string
		kind  error
	}{
		{"the publisher's", publisher.PublicKey(), "", nil},
		{"the publisher's and others", indextest.NewPublisher(t).PublicKey() + publisher.PublicKey(), "", nil},
		{"another publisher's", indextest.NewPublisher(t).PublicKey(), "", upstream.ErrBadSignature},
		{"no usable key", "to be filled in\n", "", upstream.ErrBadSignature},
		{"the publisher's, and no signature", publisher.PublicKey(), sigFile, upstream.ErrMalformed},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newSite(t, folders)
			if test.fault != "" {
				s.Fault(test.fault, status(404))
			}
			root := on.root(t)
			root.tree(t).Write(keysFile, test.keys)
			m := over(t, s.Client(t, upstream.Origin{}), pull.Policy{Signatures: pull.PreferSignatures}, root)
			if test.kind != nil {
				m.mustRefuse(t, linuxZip, test.kind, "")
				return
			}
			m.fill(t, linuxZip)
			if m.Read(keysFile) != test.keys {
				t.Errorf("the file is now\n%s", m.Read(keysFile))
			}
			if m.scan(t).Provider(index.PlaceOf(demo)) == nil {
				t.Error("the index does not offer it")
			}
		})
	}
}

// A mirror cannot evade pinned keys by leaving signatures out.
func TestPinnedKeysOfAMirrorWithoutSignatures(t *testing.T) {
	folders, publisher := acme(t)
	s := newSite(t, folders)
	s.Fault(sumsFile, status(404))
	root := t.TempDir()
	indextest.OnDisk(t, root).Keys(host+"/acme", publisher)
	m := over(t, s.Client(t, upstream.Origin{Mirror: mirrorBase}), pull.Policy{Signatures: pull.PreferSignatures}, treeRoot{dir: root})
	m.mustRefuse(t, linuxZip, pull.ErrUnsigned, "pinned")
}

// If the origin sends no keys, signatures are verified with the keys that it sent
// before.
func TestSignaturesByKeptKeys(t *testing.T) { eachTree(t, testSignaturesByKeptKeys) }

func testSignaturesByKeptKeys(t *testing.T, on treeKind) {
	const kept = "Kept by the registry: these keys came from the origin.\n\n"
	folders, publisher := acme(t)
	other := indextest.NewPublisher(t)
	for _, test := range []struct {
		rule, signature string
		kind            error
	}{
		{"a valid one is accepted", folders.Read("providers/acme/demo/" + sums + ".sig"), nil},
		{"one of another document is refused", publisher.Sign("something else"), upstream.ErrBadSignature},
		{"one that is malformed is refused", "nonsense", upstream.ErrBadSignature},
		{"one by another key is refused", other.Sign(folders.Read("providers/acme/demo/" + sums)), upstream.ErrBadSignature},
	} {
		for _, mirror := range []string{"", mirrorBase} {
			t.Run(test.rule+" "+mirror, func(t *testing.T) {
				s := newSite(t, folders)
				s.Fault(metadata, s.Edited(`"gpg_public_keys"`, `"no_keys"`))
				s.Fault("/v1/providers/acme/demo/1.0.0/download/darwin/arm64", s.Edited(`"gpg_public_keys"`, `"no_keys"`))
				s.Fault(sigFile, body(test.signature))
				root := on.root(t)
				// Documents that are added beside packages in the tree must not cause
				// them to be withheld.
				root.tree(t).Write(keysFile, kept+publisher.PublicKey()).Write(directory+darwinZip, folders.Read("providers/acme/demo/"+darwinZip))
				m := over(t, s.Client(t, upstream.Origin{Mirror: mirror}), pull.Policy{Signatures: pull.PreferSignatures}, root)
				if test.kind != nil {
					m.mustRefuse(t, linuxZip, test.kind, "")
					return
				}
				m.fill(t, linuxZip)
			})
		}
	}
}

// A release without a signature by a known key is mirrored only if the policy says so.
func TestUnsignedReleases(t *testing.T) { eachTree(t, testUnsignedReleases) }

func testUnsignedReleases(t *testing.T, on treeKind) {
	folders, _ := acme(t)
	s := newSite(t, folders)
	s.Fault(sumsFile, status(404))
	c := s.Client(t, upstream.Origin{Mirror: mirrorBase})
	on.mirror(t, c, pull.Policy{}).mustRefuse(t, linuxZip, pull.ErrUnsigned, "signatures prefer")

	m := on.mirror(t, c, pull.Policy{Signatures: pull.PreferSignatures})
	m.fill(t, linuxZip)
	m.mustHave(t, directory+linuxZip, record)
}

// A package without a sha256 is verified by the h1: hash of its files.
func TestPackagesByTheirFiles(t *testing.T) {
	folders, _ := acme(t)
	s := newSite(t, folders)
	s.Fault(sumsFile, status(404))
	archives := files + "1.0.0.json"
	h1 := scanned(t, folders).Provider(index.PlaceOf(address.Address{Namespace: "acme", Name: "demo"})).Release("1.0.0").Package("linux", "amd64").FileHashes.H1()
	answer := func(hashes string) http.HandlerFunc {
		return body(`{"archives":{"linux_amd64":{"url":"` + linuxZip + `"` + hashes + `}}}`)
	}
	c := s.Client(t, upstream.Origin{Mirror: mirrorBase})
	for _, test := range []struct {
		rule, hashes string
		kind         error
	}{
		{"the right hash", `,"hashes":["` + h1 + `"]`, nil},
		{"one of them is right", `,"hashes":["h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","` + h1 + `"]`, nil},
		{"a wrong hash", `,"hashes":["h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]`, upstream.ErrBadChecksum},
		{"no hash", ``, pull.ErrUnsigned},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s.Fault(archives, answer(test.hashes))
			m := onDisk(t, c, pull.Policy{Signatures: pull.PreferSignatures})
			if test.kind != nil {
				m.mustRefuse(t, linuxZip, test.kind, "")
				return
			}
			m.fill(t, linuxZip)
			m.mustHave(t, directory+linuxZip, record)
		})
	}
}

func TestReasons(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{pull.ErrTooYoung, "too_young"},
		{upstream.ErrNotFound, "not_found"},
		{keys.ErrMissing, "keys_missing"},
		{context.Canceled, "given_up"},
		{os.ErrInvalid, "other"},
	} {
		if got := pull.Reason(test.err); got != test.want {
			t.Errorf("%v is %q", test.err, got)
		}
	}
	if !errors.Is(pull.ErrTooYoung, upstream.ErrNotFound) {
		t.Error("ErrTooYoung is not ErrNotFound")
	}
}

// However many packages and releases are refused, the log has one line for each kind of
// failure of the origin, and later the number of refusals.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	s, names := many(t, 20)
	broken := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".zip") {
			w.Write([]byte("other bytes"))
			return
		}
		s.Handler.ServeHTTP(w, r)
	}
	for _, name := range names {
		s.Fault(files+name, broken)
	}
	mirrored(t, s, pull.Policy{}, func(t *testing.T, m *mirroring) {
		for i, name := range names[1:] {
			if _, err := m.Fill(background(), demo, name); err == nil {
				t.Fatal("the package came in")
			}
			m.Fill(background(), demo, fmt.Sprintf("terraform-provider-demo_9.0.%d_linux_amd64.zip", i)) // there is no such version
		}
		if n := m.log.count("level=WARN"); n != 1 || m.log.count("a package could not be mirrored") != 1 {
			t.Errorf("there are %d warnings", n)
		}
		time.Sleep(10 * time.Minute)
		m.Fill(background(), demo, names[0])
		if n := m.log.count("level=WARN"); n != 2 || m.log.count("more_like_it=18") != 1 {
			t.Errorf("there are %d warnings: %s", n, m.log.text.String())
		}
	})
}
