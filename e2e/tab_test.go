package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdpfetch "github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Tab is a tab of the browser, with its own cookies, cache and network. Its test fails
// if a page does something that it should not: an error or warning on the console, a
// violation of the page's Content-Security-Policy or another issue that the browser
// reports, a request to another host, or a dialog.
type Tab struct {
	t   *testing.T
	ctx context.Context

	scriptless bool

	mu       sync.Mutex
	problems []problem
	host     string // with a port if the URL has one
	leads    string // another host, which pages may lead to
	refused  string // the URL of a page whose failure the test expects

	credentials *cdpfetch.AuthChallengeResponse
}

// The sizes of the tabs' windows.
const (
	desktopWidth, desktopHeight = 1280, 900
	phoneWidth, phoneHeight     = 360, 740
)

// openTab opens a tab for a desktop with a light colour scheme, on the network of
// the registry.
func openTab(t *testing.T, r *Registry) *Tab {
	t.Helper()
	started, err := theBrowser()
	require(t, err)
	return openTabIn(t, started, r)
}

func openTabIn(t *testing.T, browser context.Context, r *Registry) *Tab {
	t.Helper()
	tab := &Tab{t: t}
	deadline, _ := beforeDeadline(t).Deadline()
	ctx, cancel := context.WithDeadline(browser, deadline)
	t.Cleanup(cancel)
	tab.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(tab.hear),
		chromedp.WithNewBrowserContext(func(p *target.CreateBrowserContextParams) {
			p.ProxyServer = r.Proxy.URL
			p.ProxyBypassList = "<-loopback>" // use it for every address
		}))
	t.Cleanup(cancel)
	// The first action gets the context of the tab itself, whose end closes it.
	if err := chromedp.Do(tab.ctx); err != nil {
		t.Fatal(err)
	}
	tab.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, audits.Enable, cdp.Empty{})
		return err
	})
	tab.call(func(ctx context.Context) error {
		// As if its window were in front: otherwise it cannot use the clipboard.
		_, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	})
	tab.Resize(desktopWidth, desktopHeight)
	tab.Prefer("light")
	t.Cleanup(func() {
		for _, p := range tab.Problems() {
			t.Error(p)
		}
	})
	return tab
}

// call does one thing in the tab. It fails the test after a minute.
func (tab *Tab) call(do func(context.Context) error) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, time.Minute)
	defer cancel()
	if err := do(ctx); err != nil {
		tab.t.Fatalf("%s: %v", tab.address(), err)
	}
}

func (tab *Tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	tab.call(func(ctx context.Context) error { return chromedp.Do(ctx, steps...) })
}

// address returns the URL of the tab, for messages.
func (tab *Tab) address() string {
	ctx, cancel := context.WithTimeout(tab.ctx, time.Second)
	defer cancel()
	location, err := chromedp.Run(ctx, chromedp.Location())
	if err != nil {
		return "a tab"
	}
	return location
}

// hear notes events that should not happen. It is called in the order of events, and
// must not wait.
func (tab *Tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		switch e.Type {
		case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			tab.problem("", "console %s: %s", e.Type, strings.Join(words, " "))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		tab.problem("", "uncaught exception: %s", text)
	case *log.EventEntryAdded:
		if l := e.Entry.Level; l == log.EntryLevelError || l == log.EntryLevelWarning {
			tab.problem(e.Entry.URL, "log: %s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if c := e.Issue.Code; c == audits.InspectorIssueCodePerformanceIssue || c == audits.InspectorIssueCodeLazyLoadImageIssue {
			break // advice about speed: the sizes of a README's images are not known
		}
		details, _ := json.Marshal(e.Issue.Details)
		tab.problem("", "issue: %s %s", e.Issue.Code, details)
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Host != "" && !tab.visits(u.Host) {
			tab.problem("", "request to another host: %s", e.Request.URL)
		}
	case *cdpfetch.EventRequestPaused: // only with credentials: see Credentials
		go chromedp.Call(tab.ctx, cdpfetch.ContinueRequest, cdpfetch.ContinueRequestParams{RequestID: e.RequestID})
	case *cdpfetch.EventAuthRequired:
		tab.mu.Lock()
		credentials := tab.credentials
		tab.mu.Unlock()
		go chromedp.Call(tab.ctx, cdpfetch.ContinueWithAuth, cdpfetch.ContinueWithAuthParams{RequestID: e.RequestID, AuthChallengeResponse: credentials})
	case *cdppage.EventJavascriptDialogOpening:
		tab.problem("", "dialog: %s %q", e.Type, e.Message)
		go chromedp.Call(tab.ctx, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{Accept: false})
	case *inspector.EventTargetCrashed:
		tab.problem("", "the tab crashed")
	}
}

// problem notes an event that should not have happened, for a request if it has a URL.
func (tab *Tab) problem(url, format string, args ...any) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.problems = append(tab.problems, problem{url, fmt.Sprintf(format, args...)})
}

type problem struct{ url, text string }

func (tab *Tab) visits(host string) bool {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return host == tab.host || host == tab.leads
}

// MayGoTo lets the tab visit another host, too.
func (tab *Tab) MayGoTo(host string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.leads = host
}

// Problems returns the problems in the tab since the last call.
func (tab *Tab) Problems() []string {
	tab.t.Helper()
	// Two frames later, the browser has reported what the page has done. A page
	// that may not run scripts does nothing, and cannot be called back.
	if !tab.scriptless && evaluate[bool](tab, `self.origin !== 'null'`) {
		evaluate[bool](tab, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0, true))))`)
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	var texts []string
	for _, p := range tab.problems {
		if p.url == "" || p.url != tab.refused {
			texts = append(texts, p.text)
		}
	}
	tab.problems = nil
	return texts
}

// Open opens a page as if its URL were entered, and waits until it is loaded.
func (tab *Tab) Open(address string) {
	tab.t.Helper()
	tab.OpenAs(address, 200)
}

// OpenAs opens a page with a status other than 200.
func (tab *Tab) OpenAs(address string, status int64) {
	tab.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tab.t.Fatal(err)
	}
	tab.mu.Lock()
	tab.host = u.Host
	tab.mu.Unlock()
	tab.load(status, chromedp.Navigate(address))
}

// Follow clicks on a link to another page, and waits until that page is loaded.
func (tab *Tab) Follow(selector string) {
	tab.t.Helper()
	tab.load(200, chromedp.Click(chromedp.CSS(selector)))
}

// Type enters a text into a field.
func (tab *Tab) Type(selector, text string) {
	tab.t.Helper()
	tab.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Submit enters a text into a field, sends its form by the Enter key, and waits
// until the next page is loaded.
func (tab *Tab) Submit(selector, text string) {
	tab.t.Helper()
	tab.load(200, chromedp.SendKeys(chromedp.CSS(selector), text+"\r"))
}

func (tab *Tab) load(status int64, by chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	tab.call(func(ctx context.Context) error {
		answer, err := chromedp.RunResponse(ctx, by)
		switch {
		case err != nil:
			return err
		case answer == nil:
			return errors.New("no page was loaded")
		case answer.Status != status:
			return fmt.Errorf("%s has status %d, want %d", answer.URL, answer.Status, status)
		case status >= 400:
			tab.mu.Lock()
			tab.refused = answer.URL
			tab.mu.Unlock()
		}
		return nil
	})
}

// Click clicks on something that stays on the page.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	tab.do(chromedp.Click(chromedp.CSS(selector)))
}

// ShiftClick clicks on something while the shift key is pressed.
func (tab *Tab) ShiftClick(selector string) {
	tab.t.Helper()
	tab.call(func(ctx context.Context) error {
		nodes, err := chromedp.Run(ctx, chromedp.Nodes(chromedp.CSS(selector), chromedp.NodeVisible))
		if err != nil {
			return err
		}
		return chromedp.Do(ctx, chromedp.MouseClickNode(nodes[0], chromedp.ButtonModifiers(chromedp.ModifierShift)))
	})
}

// Press presses keys, one after the other: characters, or the keys that kb names.
func (tab *Tab) Press(keys string) {
	tab.t.Helper()
	for _, key := range keys {
		events := kb.Encode(key)
		var typed string
		for _, e := range events {
			if e.Type == kb.KeyChar {
				typed = e.Text
			}
		}
		for _, e := range events {
			switch {
			case e.Type == kb.KeyChar:
				continue
			case e.Type != kb.KeyUp && typed != "":
				// The character comes with its key, so that a page which handles
				// the key can keep it from being typed.
				e.Type, e.Text, e.UnmodifiedText = kb.KeyDown, typed, typed
			}
			tab.call(func(ctx context.Context) error {
				_, err := chromedp.Call(ctx, input.DispatchKeyEvent, *e)
				return err
			})
		}
	}
}

// Path returns the path of the page's URL, with query and fragment.
func (tab *Tab) Path() string {
	tab.t.Helper()
	return evaluate[string](tab, `location.pathname + location.search + location.hash`)
}

// Text returns the text that an element shows, "" if there is none.
func (tab *Tab) Text(selector string) string {
	tab.t.Helper()
	return evaluate[string](tab, `document.querySelector(`+quote(selector)+`)?.innerText ?? ""`)
}

// Texts returns the texts of all elements that match, in order.
func (tab *Tab) Texts(selector string) []string {
	tab.t.Helper()
	return evaluate[[]string](tab, `[...document.querySelectorAll(`+quote(selector)+`)].map(e => e.innerText)`)
}

// Prefer sets the colour scheme that the user prefers: light or dark. The user always
// prefers reduced motion, because an element that scrolls smoothly cannot be clicked
// reliably.
func (tab *Tab) Prefer(scheme string) {
	tab.t.Helper()
	tab.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme},
				{Name: "prefers-reduced-motion", Value: "reduce"},
			},
		})
		return err
	})
}

// Resize sets the size of the window.
func (tab *Tab) Resize(width, height int64) {
	tab.t.Helper()
	tab.do(chromedp.EmulateViewport(width, height))
}

// Authorize sends a token with every request from now on, as a proxy in front of
// the registry may do for its users.
func (tab *Tab) Authorize(token string) {
	tab.t.Helper()
	tab.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
			Headers: network.Headers{"Authorization": "Bearer " + token},
		})
		return err
	})
}

// Credentials sets the name and password that the user enters from now on when the
// browser asks for them. Without a name, the user cancels.
func (tab *Tab) Credentials(user, password string) {
	tab.t.Helper()
	answer := &cdpfetch.AuthChallengeResponse{Response: cdpfetch.AuthChallengeResponseResponseCancelAuth}
	if user != "" {
		answer = &cdpfetch.AuthChallengeResponse{
			Response: cdpfetch.AuthChallengeResponseResponseProvideCredentials, Username: user, Password: password,
		}
	}
	tab.mu.Lock()
	tab.credentials = answer
	tab.mu.Unlock()
	tab.call(func(ctx context.Context) error {
		handle := true
		_, err := chromedp.Call(ctx, cdpfetch.Enable, cdpfetch.EnableParams{HandleAuthRequests: &handle})
		return err
	})
}

// WithoutScripts keeps pages from running any script from now on.
func (tab *Tab) WithoutScripts() {
	tab.t.Helper()
	tab.scriptless = true
	tab.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
}

// Choose selects an option of a list.
func (tab *Tab) Choose(selector, value string) {
	tab.t.Helper()
	tab.do(chromedp.SetValue(chromedp.CSS(selector), value))
}

// Overflow returns the elements that make the page wider than the window. It leaves out
// elements that scroll by themselves.
func (tab *Tab) Overflow() []string {
	tab.t.Helper()
	return evaluate[[]string](tab, `(() => {
		const root = document.documentElement;
		if (root.scrollWidth <= root.clientWidth) return [];
		const scrolls = e => e && e !== document.body && e !== root &&
			(getComputedStyle(e).overflowX !== 'visible' || scrolls(e.parentElement));
		const wide = [...document.body.querySelectorAll('*')].filter(e =>
			e.getBoundingClientRect().right > root.clientWidth + 0.5 && !scrolls(e.parentElement));
		return ['the page is ' + root.scrollWidth + ' wide in a window of ' + root.clientWidth].concat(
			wide.slice(0, 10).map(e => e.outerHTML.slice(0, 120)));
	})()`)
}

// Copied clicks on a button that copies, and returns what is in the clipboard
// then.
func (tab *Tab) Copied(selector string) string {
	tab.t.Helper()
	clipboard.Lock() // the whole browser has only one
	defer clipboard.Unlock()
	tab.call(func(ctx context.Context) error {
		for _, name := range []string{"clipboard-read", "clipboard-write"} {
			_, err := chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
				Permission:       &browser.PermissionDescriptor{Name: name},
				Setting:          browser.PermissionSettingGranted,
				BrowserContextID: chromedp.FromContext(tab.ctx).BrowserContextID,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	evaluate[bool](tab, `navigator.clipboard.writeText('nothing was copied').then(() => true)`)
	tab.Click(selector)
	return evaluate[string](tab, `(async () => {
		// The page copies after the click: wait for it, for a second at most.
		for (let frame = 0; frame < 60; frame++) {
			const text = await navigator.clipboard.readText();
			if (text !== 'nothing was copied') return text;
			await new Promise(requestAnimationFrame);
		}
		return 'nothing was copied';
	})()`)
}

var clipboard sync.Mutex

// Screenshot writes a picture of the window to a file, as WebP.
func (tab *Tab) Screenshot(file string) {
	tab.t.Helper()
	// Images that are in view are loaded.
	evaluate[bool](tab, `Promise.all([...document.images].filter(i => i.getBoundingClientRect().top < innerHeight).map(i => i.decode().catch(() => {}))).then(() => true)`)
	tab.call(func(ctx context.Context) error {
		quality := int64(80)
		picture, err := chromedp.Call(ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{
			Format: cdppage.CaptureScreenshotFormatWebp, Quality: &quality,
		})
		if err != nil {
			return err
		}
		return os.WriteFile(file, picture.Data, 0o644)
	})
}

// evaluate runs JavaScript in the page, as the DevTools console does, which no
// Content-Security-Policy forbids, and returns its result. It waits for promises.
func evaluate[T any](tab *Tab, script string) T {
	tab.t.Helper()
	var result T
	tab.call(func(ctx context.Context) (err error) {
		result, err = chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
		return err
	})
	return result
}

// quote returns a text as a JavaScript string.
func quote(text string) string { return "'" + jsQuoter.Replace(text) + "'" }

var jsQuoter = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`)
