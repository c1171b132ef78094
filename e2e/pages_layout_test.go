package e2e_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Only a browser knows where things on the pages are, which of them are in view, and what the
// script does.

// On a phone the content is on the first screen. What is beside it elsewhere is folded.
func pagesPhone(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Resize(phoneWidth, phoneHeight)
	for _, page := range []struct {
		path, content string
		below         float64
	}{
		{"/modules/acme/vpc/aws/1.4.0", ".prose", 600},
		{"/modules/acme/vpc/aws/1.4.0?tab=inputs", ".entry", 600},
		{"/providers/acme/demo/1.0.0", ".prose", 600},
		{"/providers/acme/demo/1.0.0/docs/resources/greeting", ".prose", 500},
		{"/browse/modules", ".results li", 400},
	} {
		tab.Open(pagesSite + page.path)
		if y := evaluate[float64](tab, `document.querySelector(`+quote(page.content)+`).getBoundingClientRect().top`); y >= page.below {
			t.Errorf("%s: the content begins at %v, not above %v", page.path, y, page.below)
		}
	}
	tab.Open(pagesSite + "/")
	if broken := evaluate[[]string](tab, `[...document.querySelector('h1').childNodes].filter(n => {
		const r = document.createRange();
		r.selectNodeContents(n);
		return r.getClientRects().length > 1;
	}).map(n => n.textContent)`); len(broken) > 0 {
		t.Errorf("the parts %q of the registry's name are broken", broken)
	}
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0")
	if folded := tab.Text(".use pre"); folded != "" {
		t.Errorf("the snippet is not folded: %q", folded)
	}
	tab.Click(".use summary")
	if text := tab.Text(".use pre"); !strings.Contains(text, "acme/vpc/aws") {
		t.Errorf("the snippet is %q", text)
	}
	if cut := evaluate[bool](tab, `[...document.querySelectorAll('.use pre')].some(e => e.scrollWidth > e.clientWidth)`); cut {
		t.Error("a line of the snippet is cut off")
	}
}

// A visitor chooses light, dark, or what the system prefers. The choice counts on all pages.
func pagesScheme(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	dark := func() bool {
		return evaluate[bool](tab, `getComputedStyle(document.body).backgroundColor !== 'rgb(251, 251, 253)'`)
	}
	choose := func(scheme string) {
		tab.Choose("#scheme", scheme)
		evaluate[bool](tab, `document.querySelector('#scheme').dispatchEvent(new Event('change'))`)
	}
	tab.Prefer("light")
	tab.Open(pagesSite + "/")
	if dark() {
		t.Fatal("it is dark where the system prefers light")
	}
	choose("dark")
	if !dark() {
		t.Error("it is light although dark was chosen")
	}
	tab.Open(pagesSite + "/modules/acme/vpc/aws")
	if value := evaluate[string](tab, `document.querySelector('#scheme').value`); !dark() || value != "dark" {
		t.Errorf("the next page is dark: %v, with the choice %q", dark(), value)
	}
	tab.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return err
	})
	if ink := evaluate[string](tab, `getComputedStyle(document.body).color`); ink != "rgb(27, 31, 39)" {
		t.Errorf("where dark was chosen, it is printed in %s", ink)
	}
	choose("light")
	tab.Prefer("dark")
	if dark() {
		t.Error("it is dark although light was chosen")
	}
	choose("")
	if !dark() {
		t.Error("it is light where the system prefers dark")
	}
	tab.WithoutScripts()
	tab.Open(pagesSite + "/")
	if seen := evaluate[bool](tab, `document.querySelector('#scheme').offsetParent !== null`); seen || !dark() {
		t.Errorf("without scripts it is dark: %v, with a choice: %v", dark(), seen)
	}
}

// After going back to a page, its selects have the version of its text and the scheme that was chosen since.
func pagesBack(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0?tab=changes&from=1.2.0")
	tab.Choose("#scheme", "dark")
	evaluate[bool](tab, `document.querySelector('#scheme').dispatchEvent(new Event('change'))`)
	// A browser keeps a page that its user has left, and sends an event when the page is shown again.
	evaluate[bool](tab, `(document.querySelector('#from').value = '1.3.2', localStorage.setItem('scheme', 'light'), dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })))`)
	got := evaluate[string](tab, `[document.querySelector('#from').value, document.querySelector('#scheme').value, document.documentElement.dataset.scheme].join(' ')`)
	if got != "1.2.0 light light" {
		t.Errorf("it has %q", got)
	}
	tab.Type("input[name=q]", "vpc")
	eventually(t, "there are suggestions", func() bool { return len(tab.Texts(".search [role=listbox]:not([hidden]) li")) > 0 })
	if open := evaluate[bool](tab, `(dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true })), !document.querySelector('#suggestions').hidden)`); open {
		t.Error("the suggestions are open after a choice among them")
	}
}

// A word that is longer than its column is broken, and covers nothing beside it.
func pagesLongWords(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	word := strings.Repeat("x", 300)
	for _, p := range []struct{ path, selector string }{
		{"/browse/modules", ".say, .meta li"},
		{"/search?q=" + word[:180], "h1"},
		{"/modules/acme/vpc/aws/1.4.0", ".lede, .crumbs li"},
		{"/modules/acme/vpc/aws/1.4.0?tab=versions", ".versions tbody th, .versions td .chip"},
		{"/modules/acme/vpc/aws/1.4.0?tab=dependencies", ".table tbody th, .table td"},
		{"/modules/acme/vpc/aws/1.4.0/code/main.tf", ".crumbs li, #from option"},
		{"/providers/acme/demo/1.0.0", ".use code"},
	} {
		for _, width := range []int64{desktopWidth, 800, phoneWidth} {
			tab.Resize(width, desktopHeight)
			tab.Open(pagesSite + p.path)
			evaluate[bool](tab, `(document.querySelectorAll('.menu').forEach(e => e.remove()), document.querySelectorAll(`+quote(p.selector)+`).forEach(e => e.append('`+word+`')), true)`)
			for _, wide := range tab.Overflow() {
				t.Errorf("%s, at %d: %s", p.path, width, wide)
			}
			if beside := evaluate[[]string](tab, `[...document.querySelectorAll('.columns > .content *')].filter(e =>
				e.getBoundingClientRect().right > document.querySelector('.columns > .content').getBoundingClientRect().right + 1 && !e.closest('.scroll, pre, .unseen')).map(e => e.outerHTML.slice(0, 80))`); len(beside) > 0 {
				t.Errorf("%s, at %d: beside their column are %q", p.path, width, beside)
			}
		}
	}
	// The menu of versions is in view, also after a long name.
	tab.Resize(800, desktopHeight)
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0")
	evaluate[bool](tab, `(document.querySelector('h1').style.minWidth = '640px', true)`)
	tab.Click(".menu summary")
	eventually(t, "the menu is in view", func() bool {
		return evaluate[bool](tab, `(r => r.width > 0 && r.left >= 0 && r.right <= innerWidth)(document.querySelector('.menu ul').getBoundingClientRect())`)
	})
}

// With text of twice the size, a page has the layout of a window of half the width.
func pagesLargeText(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, cdppage.SetFontSizes, cdppage.SetFontSizesParams{FontSizes: &cdppage.FontSizes{Standard: 32}})
		return err
	})
	for _, path := range []string{"/modules/acme/vpc/aws/1.4.0?tab=versions", "/providers/acme/demo/1.0.0", "/providers/acme/demo/1.0.0?tab=packages"} {
		tab.Open(pagesSite + path)
		if size := evaluate[string](tab, `getComputedStyle(document.documentElement).fontSize`); size != "32px" {
			t.Fatalf("the text has %s", size)
		}
		if left := evaluate[float64](tab, `document.querySelector('.columns > .about').getBoundingClientRect().left`); left > 100 {
			t.Errorf("%s: there is a second column at %v", path, left)
		}
		for _, wide := range tab.Overflow() {
			t.Errorf("%s: %s", path, wide)
		}
	}
}

// The focus is neither behind the filter that stays in view nor below an open menu.
func pagesFocus(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Resize(desktopWidth, 400)
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0?tab=inputs")
	for i := range 6 {
		at := strconv.Itoa(4 + i)
		evaluate[bool](tab, `(links => {
			scrollTo(0, scrollY + links[`+at+`].getBoundingClientRect().top - 20);
			links[`+at+` + 1].focus({ preventScroll: true });
			return true;
		})(document.querySelectorAll('.entry a'))`)
		for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
			tab.call(func(ctx context.Context) error {
				_, err := chromedp.Call(ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: "Tab", Code: "Tab", WindowsVirtualKeyCode: 9, Modifiers: int64(chromedp.ModifierShift)})
				return err
			})
		}
		if hidden := evaluate[string](tab, `(a => a.getBoundingClientRect().top < document.querySelector('.filter').getBoundingClientRect().bottom ? a.textContent : '')(document.activeElement)`); hidden != "" {
			t.Errorf("%s is behind the filter", hidden)
		}
	}
	tab.Click(".menu summary")
	evaluate[bool](tab, `(document.querySelector('.menu li:last-child a').focus(), true)`)
	tab.Press(kb.Tab)
	if evaluate[bool](tab, `document.querySelector('.menu').open`) {
		t.Error("the menu is open after the focus has left it")
	}
}

// A filter finds inputs by all that is said of them, stays in view, and says if there are
// none.
func pagesInputs(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0?tab=inputs")
	shown := func() []string {
		return evaluate[[]string](tab, `[...document.querySelectorAll('.entry')].filter(e => e.offsetParent).map(e => e.id.slice(6))`)
	}
	filter := func(words string) []string {
		evaluate[bool](tab, `(i => { i.value = ''; i.dispatchEvent(new Event('input')); i.focus(); return true })(document.querySelector('.filter input'))`)
		tab.Press(words)
		return shown()
	}
	all := shown()
	if got := filter("secondary_cidrs"); len(got) != 1 || got[0] != "secondary_cidrs" {
		t.Errorf("by name: %q", got)
	}
	if tallies := tab.Texts(".group .tally"); len(tallies) != 2 || !strings.HasPrefix(tallies[0], "0 of ") || !strings.HasPrefix(tallies[1], "1 of ") {
		t.Errorf("the tallies are %q", tallies)
	}
	if got := filter("list("); len(got) == 0 || len(got) == len(all) {
		t.Errorf("by type: %q", got)
	}
	if got, text := filter("nowhere"), tab.Text("[data-none]"); len(got) > 0 || !strings.Contains(text, "No input has all of these words") {
		t.Errorf("nothing found: %q, and it says %q", got, text)
	}
	tab.Click("[data-none] button")
	if got := shown(); len(got) != len(all) {
		t.Errorf("cleared: %q", got)
	}
	tab.Choose(".filter select", "name")
	evaluate[bool](tab, `document.querySelector('.filter select').dispatchEvent(new Event('change'))`)
	if sorted := evaluate[bool](tab, `[...document.querySelectorAll('.entries')].every(l => [...l.children].every((e, i, all) => i === 0 || all[i-1].id.localeCompare(e.id) <= 0))`); !sorted {
		t.Errorf("by name: %q", shown())
	}
	evaluate[bool](tab, `(document.activeElement.blur(), scrollTo(0, 2000), true)`)
	if y := evaluate[float64](tab, `document.querySelector('.filter').getBoundingClientRect().top`); y != 0 {
		t.Errorf("further down, the filter is at %v", y)
	}
	// The search, and back to the place.
	tab.Press("/")
	if name := evaluate[string](tab, `document.activeElement.name`); name != "q" {
		t.Fatalf("/ leads to %q", name)
	}
	tab.Press(kb.Escape)
	if y := evaluate[float64](tab, `scrollY`); y != 2000 {
		t.Errorf("Escape leads back to %v", y)
	}
}

// A button copies the block of a lock file, which clients accept.
func pagesLockFile(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/providers/acme/demo/1.0.0?tab=packages")
	block := tab.Copied("[data-copies] button")
	tab.Open(pagesSite + "/providers/acme/demo")
	provider := tab.Copied(".use .copy")
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, provider)
		writeFile(t, ws.Path(".terraform.lock.hcl"), block+"\n")
		c.Run(t, ws, "init", "-lockfile=readonly")
	})
}

// The navigation of documentation stays in view with the page that is shown.
func pagesSideNavigation(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Resize(desktopWidth, 300)
	tab.Open(pagesSite + "/providers/acme/demo/1.0.0/docs/resources/greeting")
	evaluate[bool](tab, `(scrollTo(0, document.documentElement.scrollHeight), true)`)
	inView := evaluate[bool](tab, `(() => {
		const r = document.querySelector('.nav [aria-current]').getBoundingClientRect();
		return r.top >= 0 && r.bottom <= innerHeight;
	})()`)
	if !inView {
		t.Error("the entry of the page is out of view")
	}
}

// With forced colours, which have no shades, only the current tab looks current.
func pagesHighContrast(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}},
		})
		return err
	})
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0?tab=inputs")
	underlined := evaluate[[]string](tab, `[...document.querySelectorAll('.tabs a')].filter(a => getComputedStyle(a).borderBottomStyle !== 'none').map(a => a.innerText)`)
	if len(underlined) != 1 || !strings.HasPrefix(underlined[0], "Inputs") {
		t.Errorf("the tabs %q look current", underlined)
	}
}

// The texts of others are laid out as they meant: columns of tables have their alignment, a
// wide table scrolls instead of squeezing its columns, and no label is broken.
func pagesTextsOfOthers(t *testing.T, registry *Registry) {
	tab := openTab(t, registry)
	tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0")
	aligned := evaluate[[]string](tab, `(() => {
		const words = 'several words that need some room '.repeat(3);
		document.querySelector('.prose').insertAdjacentHTML('beforeend', '<div class="scroll" id="probe"><table><tr><td align="right">1</td><td align="center">2</td><td>3</td>' +
			('<td>' + words + '</td>').repeat(6) + '</tr></table></div>');
		return [...document.querySelectorAll('#probe td')].slice(0, 3).map(e => getComputedStyle(e).textAlign);
	})()`)
	if strings.Join(aligned, " ") != "right center start" {
		t.Errorf("the columns are aligned %q", aligned)
	}
	if narrow := evaluate[float64](tab, `Math.min(...[...document.querySelectorAll('#probe td')].slice(3).map(e => e.offsetWidth))`); narrow < 300 {
		t.Errorf("a column of text is %v wide", narrow)
	}
	for _, path := range []string{"?tab=inputs", "?tab=outputs"} {
		tab.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0" + path)
		broken := evaluate[[]string](tab, `[...document.querySelectorAll('.props dt')].filter(e => e.offsetHeight > 1.9 * parseFloat(getComputedStyle(e).lineHeight)).map(e => e.innerText)`)
		if len(broken) > 0 {
			t.Errorf("%s: the labels %q are broken", path, broken)
		}
	}
}
