package handlers_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/record"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// logged gives a registry a log of its snapshot, after other entries.
func logged(t *testing.T, g *handlers.Registry, before int) *tlogtest.Storage {
	t.Helper()
	storage := tlogtest.New(t)
	l := storage.MustOpen(t)
	var leaves []tlog.Leaf
	for n := range before {
		leaf, err := tlog.ParseLeaf(fmt.Sprintf("offered 2026-01-01T00:00:00Z module acme/m%d/aws 1.0.0 h1:%s= zh:%064x %032x", n, strings.Repeat("A", 43), n, n))
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leaf)
	}
	if err := l.Append(t.Context(), leaves...); err != nil {
		t.Fatal(err)
	}
	s := g.Snapshot()
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{Open: storage.Open, Hostnames: slices.Concat(g.Hostnames, g.LogNames)})
		r.Offered(s, nil)
		time.Sleep(2 * time.Minute) // folders rest
		r.Close()
		synctest.Wait()
	})
	if err := l.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.Log = func() *tlog.Log { return l }
	return storage
}

func (s *site) text(path string) string {
	s.t.Helper()
	a := s.get(path)
	if a.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: got %d %s", path, a.StatusCode, a.body)
	}
	return a.body
}

// A logReader reads a log, and knows only the formats of C2SP and RFC 6962.
type logReader struct {
	*site
	size    int
	root    []byte
	entries []string
}

func readLog(s *site, public string) *logReader {
	s.t.Helper()
	r := &logReader{site: s}
	lines := strings.Split(s.text("/v1/tlog/checkpoint"), "\n")
	origin, _, _ := strings.Cut(public, "+")
	if len(lines) != 6 || lines[0] != origin || lines[3] != "" {
		s.t.Fatalf("the checkpoint is %q", lines)
	}
	r.size, _ = strconv.Atoi(lines[1])
	r.root, _ = base64.StdEncoding.DecodeString(lines[2])
	key, _ := base64.StdEncoding.DecodeString(strings.SplitN(public, "+", 3)[2])
	signature, _ := base64.StdEncoding.DecodeString(lines[4][strings.LastIndex(lines[4], " ")+1:])
	if !ed25519.Verify(key[1:], []byte(strings.Join(lines[:3], "\n")+"\n"), signature[4:]) {
		s.t.Fatal("the checkpoint is not signed by the key")
	}
	for n := 0; n*256 < r.size; n++ {
		path := fmt.Sprintf("/v1/tlog/tile/entries/%03d", n)
		if width := r.size - n*256; width < 256 {
			path += fmt.Sprintf(".p/%d", width)
		}
		for b := []byte(s.text(path)); len(b) > 0; {
			n := 2 + int(binary.BigEndian.Uint16(b))
			r.entries, b = append(r.entries, string(b[2:n])), b[n:]
		}
	}
	if !bytes.Equal(r.merkle(r.entries), r.root) {
		s.t.Fatal("the entries have another root")
	}
	return r
}

// merkle is RFC 6962, 2.1.
func (r *logReader) merkle(entries []string) []byte {
	if len(entries) <= 1 {
		sum := sha256.Sum256([]byte("\x00" + strings.Join(entries, "")))
		return sum[:]
	}
	k := 1
	for k*2 < len(entries) {
		k *= 2
	}
	sum := sha256.Sum256(append(append([]byte{1}, r.merkle(entries[:k])...), r.merkle(entries[k:])...))
	return sum[:]
}

// lookup reads the look-up of a version, checks its proofs with the functions of
// golang.org/x/mod, and returns its entries and the SHA256 of its SHA256SUMS.
func (r *logReader) lookup(path string) (entries []string, shasums string) {
	r.t.Helper()
	parts := strings.Split(r.text("/v1/tlog/lookup/"+path), "\n\n")
	for ; strings.Count(parts[0], "\n") == 0 && !strings.HasPrefix(parts[0], "shasums "); parts = parts[2:] {
		lines := strings.Split(parts[1], "\n")
		index, err := strconv.ParseInt(strings.TrimPrefix(lines[1], "index "), 10, 64)
		if err != nil || lines[0] != "c2sp.org/tlog-proof@v1" {
			r.t.Fatalf("a proof is %q", lines)
		}
		var proof sumdb.RecordProof
		for _, line := range lines[2:] {
			h, err := sumdb.ParseHash(line)
			if err != nil {
				r.t.Fatal(err)
			}
			proof = append(proof, h)
		}
		if err := sumdb.CheckRecord(proof, int64(r.size), sumdb.Hash(r.root), index, sumdb.RecordHash([]byte(parts[0]))); err != nil {
			r.t.Error(err)
		}
		if r.entries[index] != parts[0] {
			r.t.Errorf("entry %d is %s", index, r.entries[index])
		}
		entries = append(entries, parts[0])
	}
	if sum, ok := strings.CutPrefix(parts[0], "shasums "); ok {
		shasums, parts = sum, parts[1:]
	}
	if strings.Join(parts, "\n\n") != r.text("/v1/tlog/checkpoint") {
		r.t.Errorf("it ends with %q", parts)
	}
	return entries, shasums
}

// TileHeight, ReadTiles and SaveTiles are for x/mod.
func (r *logReader) Height() int { return 8 }

func (r *logReader) ReadTiles(tiles []sumdb.Tile) (data [][]byte, err error) {
	for _, t := range tiles {
		path := strings.Replace(t.Path(), "tile/8/", "tile/", 1)
		data = append(data, []byte(r.text("/v1/tlog/"+path)))
	}
	return data, nil
}

func (r *logReader) SaveTiles([]sumdb.Tile, [][]byte) {}

func TestALogIsReadByOthers(t *testing.T) {
	for _, before := range []int{0, 1, 255, 700} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			g := registry(scan(t, privateTree(t)))
			storage := logged(t, g, before)
			s := serve(t, g)
			var services map[string]any
			s.json("/.well-known/terraform.json", &services)
			if services["tlog.v1"] != "/v1/tlog/" {
				t.Errorf("discovery has %v", services)
			}
			public := strings.TrimSpace(s.text("/v1/tlog/key"))
			if public != storage.Public {
				t.Errorf("the key is %q", public)
			}
			v, err := note.NewVerifier(public)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := note.Open([]byte(s.text("/v1/tlog/checkpoint")), note.VerifierList(v)); err != nil {
				t.Error(err)
			}
			r := readLog(s, public)
			if r.size != before+8 { // two modules, and six packages of providers
				t.Fatalf("it has %d entries", r.size)
			}
			entries, _ := r.lookup("modules/acme/vpc/aws/1.0.0")
			m := g.Snapshot().Module(hosted(t, "acme/vpc/aws")).Version("1.0.0")
			if len(entries) != 1 || !strings.Contains(entries[0], " module acme/vpc/aws 1.0.0 "+m.FileHashes.H1()+" zh:"+m.Archive.SHA256.String()+" pack:1 ") {
				t.Errorf("the module has %q", entries)
			}
			entries, shasums := r.lookup("providers/acme/demo/1.0.0")
			document := sha256.Sum256([]byte(s.text("/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS")))
			if len(entries) != 2 || shasums != hex.EncodeToString(document[:]) {
				t.Errorf("the provider has %q and %s", entries, shasums)
			}
			if entries, _ := r.lookup("providers/registry.terraform.io/open/null/3.2.0"); len(entries) != 1 {
				t.Errorf("the mirrored provider has %q", entries)
			}
			if entries, _ := r.lookup("modules/" + ownHost + "/acme/vpc/aws/1.0.0"); len(entries) != 1 {
				t.Errorf("under its hostname the module has %q", entries)
			}

			hashes := sumdb.TileHashReader(sumdb.Tree{N: int64(r.size), Hash: sumdb.Hash(r.root)}, r)
			for _, n := range []int{0, r.size / 2, r.size - 1} {
				proof, err := sumdb.ProveRecord(int64(r.size), int64(n), hashes)
				if err == nil {
					err = sumdb.CheckRecord(proof, int64(r.size), sumdb.Hash(r.root), int64(n), sumdb.RecordHash([]byte(r.entries[n])))
				}
				if err != nil {
					t.Errorf("entry %d by tiles: %v", n, err)
				}
			}
			for _, from := range []int{1, 3, before, r.size - 1} {
				if from == 0 {
					continue
				}
				text, rest, _ := strings.Cut(s.text(fmt.Sprint("/v1/tlog/consistency?from=", from)), "\n\n")
				var proof sumdb.TreeProof
				for line := range strings.Lines(text) {
					h, err := sumdb.ParseHash(strings.TrimSpace(line))
					if err != nil {
						t.Fatal(err)
					}
					proof = append(proof, h)
				}
				err := sumdb.CheckTree(proof, int64(r.size), sumdb.Hash(r.root), int64(from), sumdb.Hash(r.merkle(r.entries[:from])))
				if err != nil || rest != s.text("/v1/tlog/checkpoint") {
					t.Errorf("it continues its first %d entries: %v", from, err)
				}
			}
		})
	}
}

func hosted(t *testing.T, a string) index.Place {
	t.Helper()
	leaf, err := tlog.ParseLeaf("withdrawn 2026-01-01T00:00:00Z module " + a + " 1.0.0 " + strings.Repeat("0", 32))
	if err != nil {
		t.Fatal(err)
	}
	return index.Place{Address: leaf.Address, Hosted: true}
}

func TestPathsOfALog(t *testing.T) {
	g := registry(scan(t, privateTree(t)))
	logged(t, g, 300)
	s := serve(t, g)
	for _, test := range []struct {
		rule, path string
		status     int
		caching    string
	}{
		{"the checkpoint", "checkpoint", 200, "public, max-age=2"},
		{"the key", "key", 200, "no-cache"},
		{"a full tile", "tile/0/000", 200, "public, max-age=3600"},
		{"a part of a tile", "tile/0/001.p/7", 200, "public, max-age=3600"},
		{"a bundle", "tile/entries/000", 200, "public, max-age=3600"},
		{"a tile of more than there is", "tile/0/001", 404, ""},
		{"a tile in another spelling", "tile/0/0", 404, ""},
		{"a tile with the height of Go's database", "tile/8/0/000", 404, ""},
		{"a version", "lookup/providers/acme/demo/1.0.0", 200, "no-cache"},
		{"no such version", "lookup/providers/acme/demo/9.0.0", 404, ""},
		{"another spelling of a version", "lookup/modules/acme/vpc/aws/v1.0.0", 404, ""},
		{"no address", "lookup/modules/a/b/1.0.0", 404, ""},
		{"too many parts", "lookup/modules/a/b/c/d/e/1.0.0", 404, ""},
		{"an address that none can have", "lookup/providers/-/demo/1.0.0", 404, ""},
		{"consistency with all", "consistency?from=308", 200, "public, max-age=2"},
		{"consistency with nothing", "consistency?from=0", 200, "public, max-age=2"},
		{"consistency with more than there is", "consistency?from=309", 404, ""},
		{"consistency without a size", "consistency", 400, ""},
		{"consistency with a size that is none", "consistency?from=-1", 400, ""},
		{"no such path", "entries", 404, ""},
	} {
		a := s.get("/v1/tlog/" + test.path)
		if a.StatusCode != test.status {
			t.Errorf("%s: got %d %s", test.rule, a.StatusCode, a.body)
			continue
		}
		if test.status != http.StatusOK {
			mustRefuse(t, a, test.status)
			continue
		}
		if a.Header.Get("Cache-Control") != test.caching {
			t.Errorf("%s: its Cache-Control is %q", test.rule, a.Header.Get("Cache-Control"))
		}
		if again := s.get("/v1/tlog/"+test.path, "If-None-Match: "+a.Header.Get("Etag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: again it is %d", test.rule, again.StatusCode)
		}
		if head := s.do(http.MethodHead, home+"/v1/tlog/"+test.path); head.StatusCode != http.StatusOK || head.ContentLength != int64(len(a.body)) {
			t.Errorf("%s: HEAD is %d with %d bytes", test.rule, head.StatusCode, head.ContentLength)
		}
	}
	if a := s.do(http.MethodPost, home+"/v1/tlog/checkpoint"); a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST is %d", a.StatusCode)
	}
}

// scanWithout returns a snapshot of a tree with one file or folder that could not be read yet.
func scanWithout(t testing.TB, files *indextest.Tree, unread string) *index.Snapshot {
	t.Helper()
	var faults treetest.Faults
	faults.When(func(_ int, o treetest.Operation) error {
		if o.Path == unread {
			return syscall.EIO
		}
		return nil
	})
	return scan(t, indextest.On(t, treetest.FaultyFs{Fs: files.Fs, Faults: &faults}))
}

// A look-up without a SHA256SUMS says that the registry serves none, and one without an entry
// that there is none. Neither is said before the tree has been read: `verify` would find fault
// with what is in order.
func TestALookupOfWhatIsNotReadYet(t *testing.T) {
	const folder = "providers/acme/demo"
	const provider, module = "/v1/tlog/lookup/providers/acme/demo/1.0.0", "/v1/tlog/lookup/modules/acme/vpc/aws/1.0.0"
	files := privateTree(t)
	whole := scan(t, files)
	l := registry(whole)
	logged(t, l, 0)
	for _, test := range []struct {
		rule, unread, path string
		status             int
		has                string
	}{
		{"everything is read", "none", provider, 200, "shasums "},
		{"the folder of the release cannot be read", folder, provider, 503, ""},
		{"the registry.hcl of the release cannot be read", folder + "/registry.hcl", provider, 503, ""},
		{"a folder of the same name under the registry's name, which may have other files, cannot be read", "providers/" + ownHost + "/acme/demo", provider, 503, ""},
		{"a version that has no entry, in a folder that cannot be read", folder, "/v1/tlog/lookup/providers/acme/demo/9.0.0", 503, ""},
		{"a version that has no entry, in a folder that is read", "none", "/v1/tlog/lookup/providers/acme/demo/9.0.0", 404, ""},
		{"the entries of a module do not depend on its folder", "modules/acme/vpc/aws", module, 200, " module acme/vpc/aws 1.0.0 "},
		{"a module without an entry, in a folder that cannot be read", "modules/acme/vpc/aws", "/v1/tlog/lookup/modules/acme/vpc/aws/9.0.0", 503, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := privateTree(t)
			files.Write(folder+"/registry.hcl", "source = \"https://example.com\"\n")
			files.Write("providers/"+ownHost+"/acme/demo/registry.hcl", "source = \"https://example.com\"\n")
			g := registry(scanWithout(t, files, test.unread))
			g.Log, g.LogNames = l.Log, []svchost.Hostname{ownHost}
			if a := serve(t, g).get(test.path); a.StatusCode != test.status || !strings.Contains(a.body, test.has) {
				t.Errorf("got %d %s", a.StatusCode, a.body)
			}
		})
	}
	t.Run("a release that has gone has its entries, and no SHA256SUMS", func(t *testing.T) {
		g := registry(scan(t, indextest.New(t)))
		g.Log = l.Log
		if a := serve(t, g).get(provider); a.StatusCode != http.StatusOK || strings.Contains(a.body, "shasums ") {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("while the release is being read, a look-up waits", func(t *testing.T) {
		x, open := startReading(t, options(t, files), files, "demo")
		opened := false
		g := &handlers.Registry{Snapshot: x.Snapshot, Log: l.Log, Next: func(ctx context.Context, after *index.Snapshot, wanted ...index.Selection) *index.Snapshot {
			opened = true
			open()
			return x.Next(ctx, after, wanted...)
		}}
		a := serve(t, g).get(provider)
		if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "shasums ") || !opened {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
	})
}

func TestARegistryWithoutALog(t *testing.T) {
	g := registry(scan(t, privateTree(t)))
	s := serve(t, g)
	if a := s.get("/v1/tlog/checkpoint"); a.StatusCode != fallenThrough {
		t.Errorf("got %d", a.StatusCode)
	}
	g = registry(g.Snapshot())
	g.Log = func() *tlog.Log { return nil }
	s = serve(t, g)
	for _, path := range []string{"checkpoint", "key", "tile/0/000", "consistency?from=1", "lookup/providers/acme/demo/1.0.0"} {
		if a := s.get("/v1/tlog/" + path); a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
			t.Errorf("while it cannot be read, %s is %d", path, a.StatusCode)
		}
	}
}

// Another instance may have signed what a reader asks for.
func TestWhatAnotherInstanceHasAdded(t *testing.T) {
	for _, test := range []struct {
		rule, path string
	}{
		{"consistency", "consistency?from=%d"},
		{"entries", "tile/entries/000.p/%d"},
		{"hashes", "tile/0/000.p/%d"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := registry(scan(t, moduleTree(t)))
			storage := logged(t, g, 0)
			s := serve(t, g)
			other := storage.MustOpen(t)
			leaf, err := tlog.ParseLeaf(fmt.Sprintf("offered 2026-01-01T00:00:00Z module acme/later/aws 1.0.0 h1:%s= zh:%064x %032x", strings.Repeat("A", 43), 1, 1))
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Append(t.Context(), leaf); err != nil {
				t.Fatal(err)
			}
			size := other.Head().Size
			if a := s.get("/v1/tlog/" + fmt.Sprintf(test.path, size)); a.StatusCode != http.StatusOK {
				t.Errorf("got %d %s", a.StatusCode, a.body)
			}
			if a := s.get("/v1/tlog/" + fmt.Sprintf(test.path, size+1)); a.StatusCode != http.StatusNotFound {
				t.Errorf("of what nobody has, got %d %s", a.StatusCode, a.body)
			}
		})
	}
}

func TestWhoMayReadALog(t *testing.T) {
	const all = "Authorization: Bearer stranger" // of the other rules below
	rules := []string{"allow reader read acme", "allow stranger read *"}
	g := private(t, rules...)
	logged(t, g, 0)
	s := serve(t, g)
	for _, test := range []struct {
		path                                   string
		anonymous, reader, everything, garbage int
	}{
		{path: "checkpoint", anonymous: 401, reader: 200, everything: 200, garbage: 401},
		{path: "key", anonymous: 401, reader: 200, everything: 200, garbage: 401},
		{path: "consistency?from=1", anonymous: 401, reader: 200, everything: 200, garbage: 401},
		{path: "tile/0/000.p/8", anonymous: 401, reader: 404, everything: 200, garbage: 401},
		{path: "tile/entries/000.p/8", anonymous: 401, reader: 404, everything: 200, garbage: 401},
		{path: "tile/nonsense", anonymous: 401, reader: 404, everything: 404, garbage: 401},
		{path: "lookup/providers/acme/demo/1.0.0", anonymous: 401, reader: 200, everything: 200, garbage: 401},
		{path: "lookup/providers/acme/none/1.0.0", anonymous: 401, reader: 404, everything: 404, garbage: 401},
		{path: "lookup/providers/open/demo/1.0.0", anonymous: 401, reader: 404, everything: 200, garbage: 401},
		{path: "lookup/providers/open/none/1.0.0", anonymous: 401, reader: 404, everything: 404, garbage: 401},
		{path: "lookup/providers/registry.terraform.io/acme/null/3.2.0", anonymous: 401, reader: 404, everything: 200, garbage: 401},
	} {
		for who, want := range map[string]int{anonymous: test.anonymous, reader: test.reader, all: test.everything, garbage: test.garbage} {
			a := s.get("/v1/tlog/"+test.path, who)
			if a.StatusCode != want {
				t.Errorf("%s with %q: got %d %s", test.path, who, a.StatusCode, a.body)
			}
			if want == 200 && !strings.HasPrefix(a.Header.Get("Cache-Control"), "private, ") {
				t.Errorf("%s with %q: its Cache-Control is %q", test.path, who, a.Header.Get("Cache-Control"))
			}
		}
	}
}

// Versions that a user may not read are in no answer: all answers are as without them.
func TestALogHidesWhatMayNotBeRead(t *testing.T) {
	g := private(t, "allow reader read acme")
	storage := logged(t, g, 0)
	s := serve(t, g)
	for _, who := range []string{anonymous, reader, garbage} {
		for _, pair := range [][2]string{
			{"lookup/providers/open/demo/1.0.0", "lookup/providers/open/none/1.0.0"},
			{"lookup/modules/open/vpc/aws/1.0.0", "lookup/modules/open/vpc/none/1.0.0"},
			{"lookup/modules/open/vpc/aws/1.0.0", "lookup/modules/open/vpc/aws/9.0.0"},
			{"lookup/providers/registry.terraform.io/open/null/3.2.0", "lookup/providers/registry.terraform.io/open/none/3.2.0"},
			{"tile/entries/000.p/8", "tile/entries/999"},
			{"tile/0/000.p/8", "tile/0/nonsense"},
		} {
			there, absent := s.get("/v1/tlog/"+pair[0], who), s.get("/v1/tlog/"+pair[1], who)
			if there.StatusCode != absent.StatusCode || there.StatusCode < 400 {
				t.Errorf("%s is %d, and %s is %d", pair[0], there.StatusCode, pair[1], absent.StatusCode)
			}
			names := strings.NewReplacer("none", "demo", "9.0.0", "1.0.0")
			same := func(a answer) string {
				body := names.Replace(a.body)
				return names.Replace(strings.NewReplacer("vpc/aws", "vpc/demo", "open/null", "open/demo").Replace(body))
			}
			if same(there) != same(absent) {
				t.Errorf("%s says %s, and %s says %s", pair[0], there.body, pair[1], absent.body)
			}
			for name := range there.Header {
				if name != "Date" && name != "Content-Length" && there.Header.Get(name) != absent.Header.Get(name) {
					t.Errorf("%s has %s: %s, and %s has %q", pair[0], name, there.Header.Get(name), pair[1], absent.Header.Get(name))
				}
			}
		}
		var secrets []string
		for _, e := range storage.Entries(t) {
			if l, err := tlog.ParseLeaf(e); err == nil && (l.Address.Namespace != "acme" || l.Address.Hostname != "") {
				secrets = append(secrets, l.Address.String(), hex.EncodeToString(l.Nonce[:]))
			}
		}
		for _, path := range []string{"checkpoint", "key", "consistency?from=3", "consistency?from=7", "lookup/providers/acme/demo/1.0.0", "lookup/modules/acme/vpc/aws/1.0.0"} {
			a := s.get("/v1/tlog/"+path, who)
			for _, secret := range secrets {
				if strings.Contains(a.body, secret) {
					t.Errorf("%s has %s", path, secret)
				}
			}
		}
	}
}

// With rules, entries are hidden or seen by their own address, whichever name a client asks by.
func TestALogIsSeenByTheAddressesOfItsEntries(t *testing.T) {
	const mirrored = "registry.terraform.io/acme/null"
	for _, test := range []struct {
		rule, host string
		configured []svchost.Hostname
		rules      string
		want       []string
	}{
		{"rules for what is hosted", ownHost, nil, "allow reader read acme", []string{"acme/demo", "acme/vpc/aws"}},
		{"they are not for the HOSTNAME of the request", "registry.terraform.io", nil, "allow reader read acme", []string{"acme/demo", "acme/vpc/aws"}},
		{"rules for a HOSTNAME are, whatever the request", "registry.terraform.io", nil, "allow reader read registry.terraform.io/acme", []string{mirrored}},
		{"entries from before their HOSTNAME was configured are hosted", ownHost, []svchost.Hostname{"registry.terraform.io"}, "allow reader read acme", []string{"acme/demo", "acme/vpc/aws", mirrored}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := private(t, test.rules)
			logged(t, g, 0)
			g.Hostnames = test.configured
			visit(t, g, reader, test.host, func(v *handlers.View) {
				log, err := v.Log()
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, e := range log.Latest {
					got = append(got, e.Address.String())
				}
				slices.Sort(got)
				if got = slices.Compact(got); !slices.Equal(got, test.want) {
					t.Errorf("it has %q, want %q", got, test.want)
				}
			})
		})
	}
}

// A version is on record where look-ups by the same name have it.
func TestAppearance(t *testing.T) {
	const origin = "registry.terraform.io"
	for _, test := range []struct {
		rule, host string
		configured []svchost.Hostname
		rules      []string
		provider   string
		proof      string // empty: it is not on record
	}{
		{"what is hosted", ownHost, nil, nil, "acme/demo 1.0.0", "acme/demo/1.0.0"},
		{"under a configured name, entries have no HOSTNAME", ownHost, []svchost.Hostname{ownHost}, nil, ownHost + "/acme/demo 1.0.0", "acme/demo/1.0.0"},
		{"what is mirrored", ownHost, nil, nil, origin + "/acme/null 3.2.0", origin + "/acme/null/3.2.0"},
		{"without rules, files under a name of the log in the request are hosted", "log.example.com", nil, nil, "acme/named 1.0.0", "acme/named/1.0.0"},
		{"also by their whole address", "log.example.com", nil, nil, "log.example.com/acme/named 1.0.0", "acme/named/1.0.0"},
		{"files under another name in the request are not", origin, nil, nil, "acme/null 3.2.0", ""},
		{"with rules, they are not", origin, nil, []string{"allow anonymous read */*"}, origin + "/acme/null 3.2.0", ""},
		{"but others are, by the same name", origin, nil, []string{"allow anonymous read */*"}, origin + "/acme/demo 1.0.0", "acme/demo/1.0.0"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := privateTree(t)
			files.Provider("log.example.com/acme/named", "1.0.0", "linux_amd64")
			g := registry(scan(t, files))
			if test.rules != nil {
				privately(t, g, test.rules...)
			}
			g.Hostnames, g.LogNames = test.configured, []svchost.Hostname{"log.example.com"}
			logged(t, g, 0)
			name, version, _ := strings.Cut(test.provider, " ")
			leaf, err := tlog.ParseLeaf("withdrawn 2026-01-01T00:00:00Z provider " + name + " " + version + " " + strings.Repeat("0", 32))
			if err != nil {
				t.Fatal(err)
			}
			visit(t, g, anonymous, test.host, func(v *handlers.View) {
				_, proof, ok := v.Appearance(leaf.Address, version)
				if ok != (test.proof != "") || ok && proof != "/v1/tlog/lookup/providers/"+test.proof {
					t.Fatalf("got %q, %v", proof, ok)
				}
				if !ok {
					return
				}
				if a := serve(t, g).get("https://" + test.host + proof); a.StatusCode != http.StatusOK {
					t.Errorf("the proof is %d %s", a.StatusCode, a.body)
				}
			})
		})
	}
}

// An Exchange says which look-up it was.
func TestLookupsInTheAccessLog(t *testing.T) {
	g := registry(scan(t, privateTree(t)))
	logged(t, g, 0)
	var got *handlers.Exchange
	g.Answered = func(_ *http.Request, e *handlers.Exchange) { got = e }
	serve(t, g).text("/v1/tlog/lookup/modules/acme/vpc/aws/1.0.0")
	if b, _ := json.Marshal([]string{got.Kind.String(), got.Address(), got.Version}); string(b) != `["tlog_lookup","acme/vpc/aws","1.0.0"]` {
		t.Errorf("it is %s", b)
	}
}

// A log that was begun in place of another one tells so, to all who may read anything.
func TestALogThatContinuesAnother(t *testing.T) {
	g := registry(scan(t, privateTree(t)))
	logged(t, g, 0)
	s := serve(t, g)
	if a := s.get("/v1/tlog/continues"); a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "was not begun in place of another one") {
		t.Errorf("a log that does not is answered with %d %s", a.StatusCode, a.body)
	}
	storage := tlogtest.New(t)
	before, err := tlog.NewSuccession(storage.MustOpen(t).Head().Signed)
	if err != nil {
		t.Fatal(err)
	}
	storage = tlogtest.New(t)
	if err := tlog.StoreSuccession(t.Context(), storage.Options().Store, before); err != nil {
		t.Fatal(err)
	}
	l := storage.MustOpen(t)
	g.Log = func() *tlog.Log { return l }
	found, err := tlog.ParseLookup(s.text("/v1/tlog/continues"))
	if err != nil || len(found.Entries) != 1 || found.Entries[0].Text != before.String() {
		t.Fatalf("it has %+v, %v", found, err)
	}
	if _, err := found.Check(tlogtest.Origin, storage.Verifier); err != nil {
		t.Error(err)
	}
}
