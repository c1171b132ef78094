package e2e_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"golang.org/x/crypto/bcrypt"
)

// The pages in a real browser, as people use them. A test fails if its page asks
// another host, violates its own policy or leaves an error on the console: see Tab.

const (
	pagesHost = "registry.example.com"
	pagesSite = "https://" + pagesHost
)

// startPages serves a tree with its pages, and waits until that many versions are
// offered: a folder of a module must have been unchanged for a while.
func startPages(t *testing.T, files *Tree, offered int, options ...string) *Registry {
	t.Helper()
	r := startBrowsable(t, site(pagesHost, files, append([]string{"ui"}, options...)...))
	r.Log.Wait(t, "it offers all versions", func(e Entry) bool { return e.scan() && e.Offered == offered })
	return r
}

// A pageType is a page with its own template and styles.
type pageType struct {
	name, path string
	status     int64
}

// pageTypes are the types of the pages of the sample tree.
var pageTypes = []pageType{
	{"home", "/", 200},
	{"modules", "/browse/modules", 200},
	{"modules of a namespace", "/browse/modules?namespace=acme", 200},
	{"modules by date", "/browse/modules?sort=newest", 200},
	{"providers", "/browse/providers", 200},
	{"search", "/search?q=vpc", 200},
	{"search for nothing", "/search", 200},
	{"search without results", "/search?q=nowhere", 200},
	{"module", "/modules/acme/vpc/aws", 200},
	{"inputs", "/modules/acme/vpc/aws/1.4.0?tab=inputs", 200},
	{"outputs", "/modules/acme/vpc/aws/1.4.0?tab=outputs", 200},
	{"resources", "/modules/acme/vpc/aws/1.4.0?tab=resources", 200},
	{"dependencies", "/modules/acme/vpc/aws/1.4.0?tab=dependencies", 200},
	{"submodules", "/modules/acme/vpc/aws/1.4.0?tab=submodules", 200},
	{"examples", "/modules/acme/vpc/aws/1.4.0?tab=examples", 200},
	{"versions", "/modules/acme/vpc/aws/1.4.0?tab=versions", 200},
	{"changes", "/modules/acme/vpc/aws/1.4.0?tab=changes&from=1.3.2", 200},
	{"submodule", "/modules/acme/vpc/aws/1.4.0/submodules/endpoints", 200},
	{"example", "/modules/acme/vpc/aws/1.4.0/examples/complete", 200},
	{"code", "/modules/acme/vpc/aws/1.4.0/code", 200},
	{"code of an example", "/modules/acme/vpc/aws/1.4.0/code/examples/complete", 200},
	{"file", "/modules/acme/vpc/aws/1.4.0/code/main.tf", 200},
	{"document", "/modules/acme/vpc/aws/1.4.0/code/CHANGELOG.md", 200},
	{"image", "/modules/acme/vpc/aws/1.4.0/code/images/network.svg", 200},
	{"comparison of a file", "/modules/acme/vpc/aws/1.4.0/code/main.tf?from=1.3.2", 200},
	{"file that a version lacks", "/modules/acme/vpc/aws/1.4.0/code/missing.tf", 404},
	{"module without a README", "/modules/acme/naming/any/1.1.0", 200},
	{"deprecated version", "/modules/acme/vpc/aws/1.2.0", 200},
	{"prerelease", "/modules/acme/vpc/aws/2.0.0-rc.1", 200},
	{"withdrawn version", "/modules/acme/vpc/aws/1.3.1", 410},
	{"mirrored module", "/registries/registry.terraform.io/modules/example/tags/null", 200},
	{"provider", "/providers/acme/demo/1.0.0", 200},
	{"packages of a provider", "/providers/acme/demo/1.0.0?tab=packages", 200},
	{"namespace", "/modules/acme", 200},
	{"namespace by date", "/modules/acme?sort=newest", 200},
	{"module without a system", "/modules/acme/vpc", 200},
	{"registry", "/registries/registry.terraform.io", 200},
	{"below a module, but no page", "/modules/acme/vpc/aws/none", 404},
	{"versions of a provider", "/providers/acme/demo/1.0.0?tab=versions", 200},
	{"documentation", "/providers/acme/demo/1.0.0/docs", 200},
	{"resource", "/providers/acme/demo/1.0.0/docs/resources/greeting", 200},
	{"data source", "/providers/acme/demo/1.0.0/docs/data-sources/build", 200},
	{"guide", "/providers/acme/demo/1.0.0/docs/guides/first-steps", 200},
	{"mirrored provider", "/registries/registry.terraform.io/providers/example/hello", 200},
	{"transparency log", logPage, 200},
	{"missing module", "/modules/acme/missing/aws", 404},
	{"missing version", "/modules/acme/vpc/aws/9.9.9", 404},
	{"missing page of documentation", "/providers/acme/demo/1.0.0/docs/resources/missing", 404},
}

// TestPages tests the pages of the sample tree.
func TestPages(t *testing.T) {
	t.Parallel()
	registry := startPages(t, sampleTree(t), sampleOffers, "tlog "+t.TempDir())
	registry.awaitLog(t)
	for name, test := range map[string]func(*testing.T, *Registry){
		"every type":       pagesOfEveryType,
		"search":           pagesSearch,
		"browse":           pagesBrowse,
		"compare":          pagesCompare,
		"copy and init":    pagesCopyAndInit,
		"documentation":    pagesDocumentation,
		"README":           pagesReadme,
		"dark mode":        pagesDarkMode,
		"keyboard":         pagesKeyboard,
		"code":             pagesCode,
		"phone":            pagesPhone,
		"choice of scheme": pagesScheme,
		"way back":         pagesBack,
		"long words":       pagesLongWords,
		"large text":       pagesLargeText,
		"focus in view":    pagesFocus,
		"inputs":           pagesInputs,
		"lock file":        pagesLockFile,
		"side navigation":  pagesSideNavigation,
		"high contrast":    pagesHighContrast,
		"texts of others":  pagesTextsOfOthers,
		"without scripts":  pagesWithoutScripts,
		"transparency log": pagesLog,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, registry)
		})
	}
}

// Every type of page is accessible in both colour schemes, and on a phone, where
// nothing has to be scrolled sideways.
func pagesOfEveryType(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	for _, p := range pageTypes {
		tab.inspect(p)
	}
}

// inspect opens a page in both sizes and schemes, and reports its faults.
func (tab *Tab) inspect(p pageType) {
	tab.t.Helper()
	for _, view := range []struct {
		name          string
		scheme        string
		width, height int64
	}{
		{"light", "light", desktopWidth, desktopHeight},
		{"dark, on a phone", "dark", phoneWidth, phoneHeight},
	} {
		tab.Prefer(view.scheme)
		tab.Resize(view.width, view.height)
		tab.OpenAs(pagesSite+p.path, p.status)
		for _, wrong := range [][]string{tab.Violations(), tab.Overflow(), tab.Problems()} {
			for _, w := range wrong {
				tab.t.Errorf("%s, %s: %s", p.name, view.name, w)
			}
		}
	}
}

func TestPagesEmptyRegistry(t *testing.T) {
	t.Parallel()
	tab := openTab(t, startPages(t, newTree(t), 0))
	tab.inspect(pageType{"home of an empty registry", "/", 200})
	if text := tab.Text("main"); !strings.Contains(text, "modules/NAMESPACE/NAME/SYSTEM") {
		t.Errorf("it does not say where the first file goes:\n%s", text)
	}
	tab.inspect(pageType{"no modules", "/browse/modules", 200})
	tab.inspect(pageType{"no providers", "/browse/providers", 200})
}

// An unknown visitor sees what anyone may read, and is asked for a name and a password
// on request. A visitor who may manage everything sees the report.
func TestPagesPrivate(t *testing.T) {
	t.Parallel()
	password, err := bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	tokens := newTokens(t)
	tokens.New("ci")
	files := sampleTree(t)
	writeFile(t, files.Path("modules/acme/broken/aws/1.0.0.tar.gz"), "not an archive")
	registry := startPages(t, files, sampleOffers, "tlog "+t.TempDir(),
		"auth terraform_tokens "+tokens.File,
		"auth http_basic {",
		"bob "+string(password),
		"}",
		"access {",
		"allow anonymous read globex",
		"allow bob read *",
		"allow bob manage *",
		"}",
	)
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/browse/modules")
	if names := tab.Texts(".results .name a"); len(names) != 1 || !strings.Contains(names[0], "globex") {
		t.Errorf("anyone sees %q", names)
	}
	tab.Credentials("", "")
	tab.inspect(pageType{"hidden module", "/modules/acme/vpc/aws", 401})
	tab.inspect(pageType{"missing module", "/modules/acme/missing/aws", 401})
	tab.inspect(pageType{"sign in", "/_registry/login?to=/", 401})
	tab.inspect(pageType{"report for anyone", "/_registry/report", 401})
	eventually(t, "anyone sees the entries of what anyone may read", func() bool {
		tab.Open(pagesSite + logPage)
		return strings.Contains(tab.Text("main"), "globex/bucket/google")
	})
	tab.inspect(pageType{"transparency log for anyone", logPage, 200})
	if text := tab.Text("main"); strings.Contains(text, "acme/") {
		t.Errorf("anyone reads in the log:\n%s", text)
	}

	tab.Resize(desktopWidth, desktopHeight)
	tab.Credentials("bob", "correct horse")
	tab.Open(pagesSite + "/browse/modules")
	tab.Follow(`.site-nav a[href*="/_registry/login"]`)
	if path, nav, names := tab.Path(), tab.Text(".site-nav"), tab.Texts(".results .name a"); path != "/browse/modules" ||
		!strings.Contains(nav, "bob") || len(names) != 4 {
		t.Errorf("signed in, at %s with %q: %q", path, nav, names)
	}
	tab.Follow(`.site-nav a[href$="/_registry/report"]`)
	if text := tab.Text("main"); !strings.Contains(text, "1.0.0.tar.gz") {
		t.Errorf("the report does not name the broken module:\n%s", text)
	}
	tab.inspect(pageType{"report", "/_registry/report", 200})
	tab.Resize(desktopWidth, desktopHeight)
	eventually(t, "the log has the provider", func() bool {
		tab.Open(pagesSite + logPage)
		return strings.Contains(tab.Text("main"), "acme/demo 1.0.0")
	})
}

const logPage = "/_registry/log"

// awaitLog waits until the log has the provider of the sample tree.
func (r *Registry) awaitLog(t *testing.T) {
	t.Helper()
	eventually(t, "the provider is on record", func() bool {
		return r.Get(t, tlogURL+"lookup/providers/acme/demo/1.0.0").Status == 200
	})
}

// From the page of a version to the log, and back.
func pagesLog(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/providers/acme/demo/1.0.0")
	if facts := tab.Text(".about .facts"); !strings.Contains(facts, "On record") {
		t.Fatalf("the page says nothing of the log:\n%s", facts)
	}
	tab.Follow(`.about .facts a[href$="` + logPage + `"]`)
	for _, text := range []string{"registry.example.com/v1/tlog", "caddy-terraform-registry verify --watch registry.example.com", "acme/demo 1.0.0", "found"} {
		if !strings.Contains(tab.Text("main"), text) {
			t.Errorf("the page of the log lacks %q:\n%s", text, tab.Text("main"))
		}
	}
	tab.Follow(`.log a[href="/providers/acme/demo/1.0.0"]`)
	if path := tab.Path(); path != "/providers/acme/demo/1.0.0" {
		t.Errorf("an entry leads to %s", path)
	}
	tab.Follow(`.site-footer a[href="` + logPage + `"]`)
	if path := tab.Path(); path != logPage {
		t.Errorf("the footer leads to %s", path)
	}
}

// From the key / to a module's page.
func pagesSearch(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/")
	tab.Press("/subnets")
	if typed := evaluate[string](tab, `document.activeElement.value`); typed != "subnets" {
		t.Errorf("after / and some letters, the focused field has %q", typed)
	}
	tab.Submit(`input[name="q"]`, " zone")
	if path := tab.Path(); path != "/search?q=subnets+zone" {
		t.Errorf("the search is at %s", path)
	}
	names := tab.Texts(".results .name a")
	if len(names) == 0 || !strings.Contains(names[0], "vpc") {
		t.Fatalf("results: %q", names)
	}
	tab.Follow(".results .name a")
	if h := tab.Text("h1"); !strings.Contains(h, "vpc") {
		t.Errorf("the first result leads to %q at %s", h, tab.Path())
	}
}

// The list narrowed to a namespace, a module of it, another version of that.
func pagesBrowse(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/")
	tab.Follow(`.site-nav a[href$="/browse/modules"]`)
	tab.Follow(`.facets a[href*="namespace=acme"]`)
	for _, name := range tab.Texts(".results .name a") {
		if !strings.Contains(name, "acme") {
			t.Errorf("in the namespace acme: %q", name)
		}
	}
	tab.Follow(`.results .name a[href*="/modules/acme/vpc/aws"]`)
	if text := tab.Text("main"); !strings.Contains(text, "1.4.0") {
		t.Errorf("not the newest release:\n%s", text)
	}
	tab.Click("details.menu summary")
	tab.Follow(`details.menu a[href*="/1.2.0"]`)
	if path, notices := tab.Path(), tab.Text(".notice"); !strings.Contains(path, "/1.2.0") ||
		!strings.Contains(notices, "It gets no more fixes: use 1.4 or newer") {
		t.Errorf("at %s: %q", path, notices)
	}
	tab.Follow(`.notice a[href*="/modules/acme/vpc/aws"]`)
	if path := tab.Path(); strings.Contains(path, "1.2.0") {
		t.Errorf("the notice leads to %s, want the latest version", path)
	}
}

// The changes between two versions, chosen on the page.
func pagesCompare(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0")
	tab.Follow(`.tabs a[href*="tab=changes"]`)
	tab.Choose("#from", "1.2.0")
	tab.Follow(".picker button")
	if path := tab.Path(); !strings.Contains(path, "from=1.2.0") {
		t.Errorf("compared at %s", path)
	}
	tab.Choose("#from", "1.3.2")
	tab.Follow(".picker button")
	changes := map[string]string{}
	for _, c := range tab.Texts(".change") {
		what := regexp.MustCompile(`(input|output)\s+(\S+)`).FindStringSubmatch(c)
		if what != nil {
			changes[what[1]+" "+what[2]] = strings.Join(strings.Fields(c), " ")
		}
	}
	for what, want := range map[string]string{
		"output nat_ips":         "breaking",
		"input enable_flow_logs": "breaking",
		"output nat_addresses":   "added",
		"input flow_logs":        "added",
		"input zones":            "changed",
	} {
		if !strings.HasPrefix(changes[what], want) {
			t.Errorf("%s: %q, want %s", what, changes[what], want)
		}
	}
	if verdict := tab.Text(".notice"); !strings.Contains(verdict, "major") {
		t.Errorf("a minor version that breaks callers: %q", verdict)
	}
}

// The Copy button gives a configuration that clients install.
func pagesCopyAndInit(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/modules/acme/naming/any")
	module := tab.Copied(".use .copy")
	tab.Open(pagesSite + "/providers/acme/demo")
	provider := tab.Copied(".use .copy")
	if !strings.Contains(module, `"registry.example.com/acme/naming/any"`) || !strings.Contains(provider, `"registry.example.com/acme/demo"`) {
		t.Fatalf("copied\n%s\nand\n%s", module, provider)
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, module)
		c.Run(t, ws, "init")
		ws = newWorkspace(t, registry, provider)
		c.Run(t, ws, "init")
		if v := ws.Lock(t, "registry.example.com/acme/demo").Version; v != "1.0.0" {
			t.Errorf("installed %s", v)
		}
	})
}

// The documentation of a provider: navigation, filter, links between pages.
func pagesDocumentation(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/providers/acme/demo/1.0.0")
	tab.Follow(`a[href$="/docs/guides/first-steps"]`)
	tab.Follow(`.prose a[href$="/docs/resources/greeting"]`)
	if text := tab.Text(".prose"); !strings.Contains(text, "Another name makes another greeting") || strings.Contains(text, "~>") {
		t.Errorf("the callout is not one:\n%s", text)
	}
	tab.Click(`[data-filter] input`)
	tab.Press("build")
	shown := evaluate[[]string](tab, `[...document.querySelectorAll('#doc-pages [data-name]')].filter(e => e.offsetParent).map(e => e.dataset.name)`)
	if len(shown) != 1 || !strings.Contains(shown[0], "build") {
		t.Errorf("filtered by build: %q", shown)
	}
	tab.Follow(`a[href$="/docs/data-sources/build"]`)
	if h := tab.Text("h1"); !strings.Contains(tab.Text("main"), "demo_build") {
		t.Errorf("at %s: %q", tab.Path(), h)
	}
}

// Files of a package lie where its README expects them.
func pagesReadme(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0")
	width := evaluate[int](tab, `(async () => {
		const image = [...document.querySelectorAll('.prose img')].find(i => i.src.endsWith('/images/network.svg'));
		if (!image) return 0;
		image.scrollIntoView(); // the browser loads it when it becomes visible
		if (!image.complete) await new Promise(done => image.onload = image.onerror = done);
		return image.naturalWidth;
	})()`)
	if width != 640 {
		t.Errorf("the image of the README is %d wide, want 640", width)
	}
	tab.Follow(`.prose a[href*="examples/minimal"]`)
	if text := tab.Text("main"); !strings.Contains(text, "The two arguments that are required") {
		t.Errorf("the link to the example leads to %s:\n%s", tab.Path(), text)
	}
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0")
	tab.Follow(`.prose a[href*="CHANGELOG.md"]`)
	if text := tab.Text("body"); !strings.Contains(text, "replaces nat_ips") && !strings.Contains(text, "replaces `nat_ips`") {
		t.Errorf("the link to the change log leads to %s:\n%s", tab.Path(), text)
	}
}

func pagesDarkMode(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	brightness := map[string]float64{}
	for _, scheme := range []string{"light", "dark"} {
		tab.Prefer(scheme)
		tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0")
		brightness[scheme] = evaluate[float64](tab, `(() => {
			const canvas = new OffscreenCanvas(1, 1).getContext('2d');
			canvas.fillStyle = getComputedStyle(document.body).backgroundColor;
			canvas.fillRect(0, 0, 1, 1);
			const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
			return (r + g + b) / 3;
		})()`)
	}
	if brightness["light"] < 230 || brightness["dark"] > 50 {
		t.Errorf("brightness of the page, 0 to 255: %v", brightness)
	}
}

// Without a mouse: past the header, and along the tabs.
func pagesKeyboard(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0")
	tab.Press(kb.Tab)
	if focused := evaluate[string](tab, `document.activeElement.innerText`); focused != "Skip to content" {
		t.Errorf("the first stop is %q", focused)
	}
	tab.Press(kb.Enter)
	if focused := evaluate[string](tab, `document.activeElement.id`); focused != "content" {
		t.Errorf("the skip link leads to %q", focused)
	}
	for i := range 60 {
		if i == 59 {
			t.Fatal("no tab is reached by the Tab key")
		}
		tab.Press(kb.Tab)
		if evaluate[bool](tab, `document.activeElement.matches('.tabs a[href*="tab=inputs"]')`) {
			break
		}
	}
	if outline := evaluate[string](tab, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
		t.Error("the focus cannot be seen")
	}
	tab.Press("/")
	if name := evaluate[string](tab, `document.activeElement.name`); name != "q" {
		t.Errorf("/ leads to %q", name)
	}
}

// Reading and searching need no script.
func pagesWithoutScripts(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.WithoutScripts()
	tab.Open(pagesSite + "/")
	tab.Submit(`input[name="q"]`, "vpc")
	tab.Follow(".results .name a")
	tab.Follow(`.tabs a[href*="tab=inputs"]`)
	if text := tab.Text("main"); !strings.Contains(text, "secondary_cidrs") {
		t.Errorf("inputs without scripts:\n%s", text)
	}
}

// Anyone may have written a README. It changes nothing else on the page.
func TestPagesHostileReadme(t *testing.T) {
	t.Parallel()
	files := newTree(t)
	readmes := map[string]string{ // the names take one line in any font on a phone
		"good":   "# A module\n",
		"script": "<script>alert(1); document.title = 'changed'</script>\n<SCRIPT SRC=//elsewhere.example.com/x.js></SCRIPT>\n",
		"events": `<img src="https://elsewhere.example.com/x.png" onerror="alert(1)"><b onmouseover="alert(1)">text</b><details open ontoggle="alert(1)"><summary>s</summary></details><body onload="alert(1)">` + "\n",
		"urls":   "[a](javascript:alert(1)) [b](data:text/html,<script>alert(1)</script>) <a href=\"java&#115;cript:alert(1)\">c</a> ![d](javascript:alert(1))\n",
		"svg":    `<svg onload="alert(1)"><script>alert(1)</script><foreignObject><iframe src="javascript:alert(1)"></iframe></foreignObject></svg><math><mtext><script>alert(1)</script></mtext></math>` + "\n",
		"frames": `<iframe src="https://elsewhere.example.com/"></iframe><object data="https://elsewhere.example.com/"></object><embed src="https://elsewhere.example.com/"><meta http-equiv="refresh" content="0;url=https://elsewhere.example.com/"><base href="https://elsewhere.example.com/"><link rel="stylesheet" href="https://elsewhere.example.com/x.css">` + "\n",
		"style":  `<style>* { display: none !important }</style><div style="position: fixed; inset: 0; background: red">over everything</div><p class="site-header" id="content">text</p>` + "\n",
		"forms":  `<form action="https://elsewhere.example.com/"><input name="q" autofocus><button>Sign in</button></form>` + "\n",
		"open":   "<div><table><tr><td><ul><li><b><a href=\"#x\"><details><pre><!-- \n\n# Heading\n\n</main></body></html><footer>\n",
		"table":  "|" + strings.Repeat(" a rather wide heading |", 60) + "\n|" + strings.Repeat("---|", 60) + "\n" + strings.Repeat("|"+strings.Repeat(" cell |", 60)+"\n", 200),
		"words":  strings.Repeat("W", 5000) + " `" + strings.Repeat("c", 5000) + "`\n\n" + strings.Repeat("> ", 500) + "deep\n",
		"lists":  strings.Repeat("- ", 500) + "deep\n\n" + strings.Repeat("1. ", 500) + "deep\n\n" + strings.Repeat("<ul><li>", 500) + "deep\n",
		"images": "![a](https://elsewhere.example.com/a.png) <img src=//elsewhere.example.com/b.png width=99999 height=99999>\n",
	}
	for name, readme := range readmes {
		dir := "modules/acme/" + name + "/null/1.0.0/"
		writeFile(t, files.Path(dir+"main.tf"), "variable \"name\" {}\n")
		writeFile(t, files.Path(dir+"README.md"), "It does nothing.\n\n"+readme+"\n\nlast words\n")
	}
	tab := openTab(t, startPages(t, files, len(readmes)))
	// Everything around the README, by position, except what differs by name.
	const frame = `(() => {
		const box = s => { const e = document.querySelector(s); if (!e) return s + ' is missing'; const r = e.getBoundingClientRect();
			return s + ' ' + [r.x, r.y, r.width, r.height].map(Math.round) + ' ' + getComputedStyle(e).display; };
		const top = document.elementFromPoint(30, 20);
		return [box('.site-header'), box('.site-nav'), box('.tabs'), 'in front: ' + (top && !!top.closest('.site-header')),
			'mains: ' + document.querySelectorAll('main').length, 'contents: ' + document.querySelectorAll('#content').length,
			'footer outside: ' + !document.querySelector('main .site-footer'), 'scripts: ' + document.scripts.length,
			'styles: ' + document.styleSheets.length, 'focused: ' + document.activeElement.tagName].join('\n');
	})()`
	for _, size := range [][2]int64{{desktopWidth, desktopHeight}, {phoneWidth, phoneHeight}} {
		tab.Resize(size[0], size[1])
		open := func(name string) string {
			tab.Open(pagesSite + "/modules/acme/" + name + "/null/1.0.0")
			for _, wrong := range [][]string{tab.Overflow(), tab.Problems()} {
				if len(wrong) > 0 {
					t.Errorf("%s, %d wide: %.300q", name, size[0], wrong)
				}
			}
			if title := evaluate[string](tab, `document.title`); !strings.Contains(title, name) {
				t.Errorf("%s: the title is %q", name, title)
			}
			return evaluate[string](tab, frame)
		}
		want := open("good")
		for name := range readmes {
			if got := open(name); got != want {
				t.Errorf("%s, %d wide: the frame is\n%s\nwant\n%s", name, size[0], got, want)
			}
		}
	}
}
