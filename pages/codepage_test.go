package pages

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// codeTree has a module whose package has every kind of file, ordinary and hostile.
func codeTree(t testing.TB) *indextest.Tree {
	t.Helper()
	files := indextest.New(t)
	old := "modules/acme/net/aws/1.0.0/"
	files.Write(old+"main.tf", "resource \"a_b\" \"gone\" {}\n# same\nvariable \"x\" {}\n").Write(old+"old.txt", "old\n").Write(old+"README.md", "# Net\n")
	dir := "modules/acme/net/aws/1.1.0/"
	files.Write(dir+"main.tf", "resource \"a_b\" \"new\" {}\n# same\nvariable \"x\" {}\nvariable \"y\" {}\n/* <b>\n</b> */\n")
	files.Write(dir+"README.md", "# Net\n\n[log](CHANGELOG.md#110), [docs](docs), [code](main.tf#L3-L4), [sub](modules/sub), [out](../../x), [gone](nothing.md)\n")
	files.Write(dir+"CHANGELOG.md", "# Changes\n\n## 1.1.0\n\nIt has <script>alert(1)</script> y. See [the guide](docs/guide.md).\n\n### Fixed\n\nIt.\n\n## 1.0.0\n\nFirst.\n")
	files.Write(dir+"docs/guide.md", "# Guide\n\n[up](../README.md) <img src=x onerror=alert(1)> [bad](javascript:alert(1))\n")
	files.Write(dir+"docs/deep/er/file.txt", "deep\n")
	files.Write(dir+"modules/sub/main.tf", "output \"o\" {}\n")
	files.Write(dir+"examples/full/main.tf", "module \"net\" {\n  source = \"../..\"\n  x      = 1\n}\nmodule \"sub\" {\n  source = \"../../modules/sub\"\n}\n")
	files.Write(dir+"images/a.png", "\x89PNG\x00").Write(dir+"blob", "\x00\x01").Write(dir+"empty.txt", "")
	files.Write(dir+"large.txt", strings.Repeat("x\n", maxCode/2+1)).Write(dir+"lines.txt", strings.Repeat("\n", maxCodeLines))
	files.Write(dir+"huge.txt", strings.Repeat("x", 4<<20+1)).Write(dir+"images/huge.png", "\x89PNG"+strings.Repeat("x", 4<<20))
	files.Write(dir+"a\u202eb<i>.txt", "odd\n")
	files.Write(dir+"win.tf", "a = 1\r\nb = 2\r\n")
	return files
}

const net = "/modules/acme/net/aws"

func TestCodePages(t *testing.T) {
	s := siteOf(t, snapshotOf(t, codeTree(t)))
	for _, test := range []struct {
		rule, path string
		status     int
		want, lack []string
	}{
		{"a folder lists its folders, then its files", net + "/1.1.0/code", 200, []string{`<a href="/modules/acme/net/aws/1.1.0/code/docs">docs/</a></th><td>2 files</td>`, `/code/main.tf">main.tf</a>`, "Code · acme/net/aws 1.1.0"}, nil},
		{"the latest version has a path of its own", net + "/latest/code", 200, []string{`/latest/code/main.tf`}, nil},
		{"a folder in a folder", net + "/1.1.0/code/docs", 200, []string{`/code/docs/guide.md"`, `/code/docs/deep"`}, []string{"er/file.txt"}},
		{"a file is highlighted, and its lines can be linked to", net + "/1.1.0/code/main.tf", 200, []string{`<span id="L3"><a href="#L3" aria-hidden="true" tabindex="-1"></a><span class="k">variable</span> `, `<span class="c1">/* &lt;b&gt;</span>`, `<span class="c1">&lt;/b&gt; */</span>`, "6 lines", "/1.1.0/files/main.tf"}, []string{"<b>"}},
		{"line breaks of Windows", net + "/1.1.0/code/win.tf", 200, []string{"2 lines"}, []string{"\r"}},
		{"a document is a page with the heading of the module", net + "/1.1.0/code/CHANGELOG.md", 200, []string{`aria-label="CHANGELOG.md"`, `id="readme-110"`, "First.", "?tab=source", `aria-label="About net"`}, []string{"alert(1)</script>", "<script>alert"}},
		{"its links lead to pages", net + "/1.1.0/code/docs/guide.md", 200, []string{`href="/modules/acme/net/aws/1.1.0"`}, []string{"onerror", "javascript:"}},
		{"its source", net + "/1.1.0/code/CHANGELOG.md?tab=source", 200, []string{`id="L5"`, "&lt;script&gt;"}, []string{`id="readme-110"`}},
		{"a submodule has its own heading", net + "/1.1.0/code/modules/sub", 200, []string{`<span class="part">modules/<wbr></span>sub`, `href="/modules/acme/net/aws/1.1.0/submodules/sub"`}, nil},
		{"a file of a submodule", net + "/1.1.0/code/modules/sub/main.tf", 200, []string{`aria-current="page"><span data-text="Code"`, `/submodules/sub?tab=outputs`}, nil},
		{"an example shows its code, with addresses that work elsewhere", net + "/1.1.0/code/examples/full", 200, []string{"This example can be pasted.", "registry.example.com/acme/net/aws&quot;", "registry.example.com/acme/net/aws//modules/sub&quot;", "~&gt; 1.1", `<code>source = "../.."</code>`, `<span id="L2" class="adapted">`, `<span class="adapted">`, `id="L7"`}, []string{`id="L8"`}},
		{"an example of an old version has exactly that", net + "/1.1.0/code/examples/full/main.tf", 200, []string{"registry.example.com/acme/net/aws&quot;"}, nil},
		{"an image", net + "/1.1.0/code/images/a.png", 200, []string{`<img src="/modules/acme/net/aws/1.1.0/files/images/a.png" alt="a.png">`}, nil},
		{"an image that is not even sent", net + "/1.1.0/code/images/huge.png", 200, []string{"too large to be shown or sent.", "archive.tar.gz"}, []string{"<img src=\"/modules", ">Raw<"}},
		{"the root is no example", net + "/1.1.0/code", 200, nil, []string{`class="snippet lines"`}},
		{"what is not text", net + "/1.1.0/code/blob", 200, []string{"This file is not text.", "archive.tar.gz"}, []string{">Raw<"}},
		{"an empty file", net + "/1.1.0/code/empty.txt", 200, []string{"This file is empty."}, nil},
		{"a file with too many bytes for a page", net + "/1.1.0/code/large.txt", 200, []string{"too large to be shown.", "archive.tar.gz", ">Raw<"}, nil},
		{"a file with too many lines", net + "/1.1.0/code/lines.txt", 200, []string{"too large to be shown."}, nil},
		{"a file that is not even sent", net + "/1.1.0/code/huge.txt", 200, []string{"too large to be shown or sent.", "archive.tar.gz"}, []string{">Raw<"}},
		{"a name with characters that nobody sees", net + "/1.1.0/code", 200, []string{"a\uFFFDb&lt;i&gt;.txt"}, []string{"\u202e", "<i>."}},
		{"a file that the version lacks leads to its files", net + "/1.0.0/code/CHANGELOG.md", 404, []string{"Version 1.0.0 has no file or folder “CHANGELOG.md”.", "/1.0.0/code/main.tf"}, nil},
		{"a way out of the package", net + "/1.1.0/code/../registry.hcl", 404, nil, nil},
		{"an encoded way out", net + "/1.1.0/code/%2e%2e/registry.hcl", 404, nil, nil},
		{"an unknown way to show it", net + "/1.1.0/code/main.tf?tab=inputs", 404, nil, nil},
		{"a version that is not there", net + "/9.0.0/code", 404, []string{"Latest version 1.1.0"}, nil},
		{"a module that is not there", "/modules/acme/none/aws/1.0.0/code", 404, nil, nil},
		{"a comparison", net + "/1.1.0/code/main.tf?from=1.0.0", 200, []string{"<h2>Changes since 1.0.0</h2>", `class="gd"`, `+variable &#34;y&#34; {}`, `-resource &#34;a_b&#34; &#34;gone&#34; {}`}, nil},
		{"a comparison with a newer version goes the same way", net + "/1.0.0/code/main.tf?from=1.1.0", 200, []string{`+variable &#34;y&#34; {}`, "<h2>Changes up to 1.1.0</h2>"}, nil},
		{"a file that is new", net + "/1.1.0/code/CHANGELOG.md?from=1.0.0", 200, []string{"+# Changes"}, nil},
		{"a file that was removed", net + "/1.1.0/code/old.txt?from=1.0.0", 200, []string{"-old", "/1.0.0/files/old.txt"}, nil},
		{"a comparison of what is not text", net + "/1.1.0/code/blob?from=1.0.0", 200, []string{"This file is not text."}, nil},
		{"it leads to the package of the newer version", net + "/1.0.0/code/blob?from=1.1.0", 200, []string{"This file is not text.", "/v1/modules/acme/net/aws/1.1.0/archive.tar.gz"}, nil},
		{"changes since the version itself", net + "/1.1.0?tab=changes&from=1.1.0", 200, []string{"<option selected>1.1.0</option>", "The interface is the same."}, []string{"What its author says"}},
		{"a comparison with itself", net + "/1.1.0/code/main.tf?from=1.1.0", 404, nil, nil},
		{"a comparison with no version", net + "/1.1.0/code/main.tf?from=9.0.0", 404, nil, nil},
		{"a comparison of nothing", net + "/1.1.0/code/none?from=1.0.0", 404, nil, nil},
		{"a README leads to documents, folders, lines and submodules", net + "/1.1.0", 200, []string{
			`/1.1.0/code/CHANGELOG.md#readme-110"`, `/1.1.0/code/docs"`, `/1.1.0/code/main.tf#L3-L4"`, `/1.1.0/submodules/sub"`}, []string{">out</a>"}},
		{"inputs lead to their lines", net + "/1.1.0?tab=inputs", 200, []string{`<a class="at" href="/modules/acme/net/aws/1.1.0/code/main.tf#L4">main.tf:4</a>`}, nil},
		{"outputs too", net + "/1.1.0/submodules/sub?tab=outputs", 200, []string{`/1.1.0/code/modules/sub/main.tf#L1">main.tf:1</a>`}, nil},
		{"and resources", net + "/1.1.0?tab=resources", 200, []string{`<a href="/modules/acme/net/aws/1.1.0/code/main.tf#L1">new</a>`}, nil},
		{"changes have the resources, the files and what the author says", net + "/1.1.0?tab=changes", 200, []string{
			`href="/modules/acme/net/aws/1.1.0?tab=inputs#input_y"`, `<code>a_<wbr>b.new</code>`, `/1.0.0/code/main.tf#L1"><code>a_<wbr>b.gone</code>`,
			"<h2>What its author says</h2>", `<h3 id="notes-fixed">Fixed`, "/1.1.0/code/docs/guide.md", `/code/main.tf?from=1.0.0">main.tf</a>`, `/code/old.txt?from=1.0.0"`, "1 breaking change"}, []string{"<script>alert", "First."}},
	} {
		w := s.get(test.path, "")
		body := w.Body.String()
		if w.Code != test.status {
			t.Errorf("%s: %d, not %d", test.rule, w.Code, test.status)
			continue
		}
		checkText(t, test.rule, body, test.want, test.lack)
		if test.status == http.StatusOK && !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: its policy is %s", test.rule, w.Header().Get("Content-Security-Policy"))
		}
		doc := parse(t, w)
		ids := make(map[string]bool)
		for n := range doc.Descendants() {
			if id := attr(n, "id"); n.Type == html.ElementNode && id != "" {
				if ids[id] {
					t.Errorf("%s: the id %s is there twice", test.rule, id)
				}
				ids[id] = true
			}
		}
		if n := len(elements(doc, atom.Script)); n != 1 {
			t.Errorf("%s: %d scripts", test.rule, n)
		}
	}
}

// Every link of every page about a module with odd files leads somewhere.
func TestLinksOfCodePagesLeadSomewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads hundreds of pages, one after the other")
	}
	s := siteOf(t, snapshotOf(t, codeTree(t)))
	odd := map[string]bool{"nothing.md": true, "x": true, "old.txt": true} // links of a README that lead nowhere, and what another version has
	seen := s.crawl("", []string{net + "/1.1.0", net + "/1.0.0"}, func(path string, w *httptest.ResponseRecorder) {
		if strings.HasPrefix(path, net) && w.Code != http.StatusOK && !odd[path[strings.LastIndexByte(path, '/')+1:]] && !strings.HasPrefix(path, net+"/1.0.0/code/") {
			t.Errorf("%s: %d", path, w.Code)
		}
	})
	if len(seen) < 60 {
		t.Errorf("only %d pages were seen: %v", len(seen), seen)
	}
}

// A page of a folder is bounded, however many files it has.
func TestListsOfFilesAreBounded(t *testing.T) {
	files := indextest.New(t)
	for i := range maxEntries + 7 {
		files.Write(fmt.Sprintf("modules/acme/net/aws/1.0.0/f%04d.txt", i), "")
	}
	files.Write("modules/acme/net/aws/1.0.0/main.tf", "")
	s := siteOf(t, snapshotOf(t, files))
	body := s.get(net+"/1.0.0/code", "").Body.String()
	if n := strings.Count(body, "<tr>"); n != maxEntries+1 || !strings.Contains(body, "8 more entries are not listed.") {
		t.Errorf("%d rows", n)
	}
}

// The versions to compare with are bounded, and have the one that is compared.
func TestSelectsOfVersionsAreBounded(t *testing.T) {
	files := indextest.New(t)
	for i := range maxOthers + 20 {
		files.Write(fmt.Sprintf("modules/acme/net/aws/1.%d.0/main.tf", i), "# a module")
	}
	s := siteOf(t, snapshotOf(t, files))
	for _, test := range []struct{ path, chosen string }{
		{net + "/1.119.0/code/main.tf", "1.118.0"},
		{net + "/1.119.0/code/main.tf?from=1.3.0", "1.3.0"},
		{net + "/1.119.0?tab=changes", "1.118.0"},
		{net + "/1.119.0?tab=changes&from=1.3.0", "1.3.0"},
		{net + "/1.3.0/code/main.tf", "1.2.0"},
		{net + "/1.3.0?tab=changes&from=1.5.0", "1.5.0"},
		{net + "/1.0.0/code/main.tf", "1.1.0"},
	} {
		var chosen []string
		all := elements(elements(parse(t, s.get(test.path, "")), atom.Select)[0], atom.Option)
		for _, o := range all {
			if slices.ContainsFunc(o.Attr, func(a html.Attribute) bool { return a.Key == "selected" }) {
				chosen = append(chosen, textIn(o))
			}
		}
		if len(all) > maxOthers+1 || !slices.Equal(chosen, []string{test.chosen}) {
			t.Errorf("%s: %d versions, with %q", test.path, len(all), chosen)
		}
	}
	menu := versionMenuOf(t, s, net+"/1.3.0")
	if !slices.Contains(menu, net+"/1.3.0") {
		t.Errorf("the menu lacks the version that is shown: %q", menu)
	}
}

// A list of changes counts the entries that it leaves out.
func TestChangesAreBounded(t *testing.T) {
	numbered := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i)
		}
		return b.String()
	}
	for _, test := range []struct{ rule, added, listed, said string }{
		{"resources", numbered(`resource "a_b" "r%d" {}`, maxResourceChanges+7), "r0<", "7 more resources were added or removed."},
		{
			"inputs and outputs, of which the breaking ones come first",
			numbered(`output "o%d" {}`, maxChanges-1900+7) + numbered(`variable "v%d" {}`, 1900), "v1899<", "7 more changes are not listed.",
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t).Write("modules/acme/net/aws/1.0.0/main.tf", "# a module").Write("modules/acme/net/aws/1.1.0/main.tf", test.added)
			body := siteOf(t, snapshotOf(t, files)).get(net+"?tab=changes", "").Body.String()
			checkText(t, test.rule, body, []string{test.said, test.listed}, nil)
		})
	}
}

// A page of ordinary code is sent in less than 30 kB.
func TestCodePagesAreSmall(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "variable \"setting_%03d\" {\n  type = object({\n    enabled = bool\n    names   = optional(list(string), [])\n  })\n  description = \"Whether part %d of the network is created, and the names of its members.\"\n  default     = { enabled = true }\n}\n\n", i, i)
	}
	s := siteOf(t, snapshotOf(t, indextest.New(t).Write("modules/acme/net/aws/1.0.0/variables.tf", b.String())))
	if w := s.get(net+"/1.0.0/code/variables.tf", "", "Accept-Encoding", "gzip"); w.Body.Len() > 30_000 || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("%d bytes for a file of %d, %v", w.Body.Len(), b.Len(), w.Header())
	}
}
