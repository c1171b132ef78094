package e2e_test

import (
	"os"
	"strings"
	"testing"
)

// From a resource to its line; a line is marked by styles alone, several by a script; what
// is copied is the file.
func pagesCode(t *testing.T, registry *Registry) {
	const code = pagesSite + "/modules/acme/vpc/aws/1.4.0/code"
	marked := `[...document.querySelectorAll('.lines code > span')].flatMap((s, i, all) =>
		getComputedStyle(s).backgroundColor == getComputedStyle(all.at(-1)).backgroundColor ? [] : [s.id]).join(' ')`
	is := func(tab *Tab, what, want string) {
		t.Helper()
		if got := evaluate[string](tab, marked); got != want {
			t.Errorf("%s: %q are marked, not %q", what, got, want)
		}
	}
	plain := openTab(t, registry)
	plain.WithoutScripts()
	plain.Open(pagesSite + "/modules/acme/vpc/aws/1.4.0?tab=resources")
	plain.Follow(`.table a[href*="#L"]`)
	_, line, _ := strings.Cut(evaluate[string](plain, "location.href"), "#")
	is(plain, "without scripts", line)

	tab := openTab(t, registry)
	tab.Open(code + "/main.tf#L3-L5")
	is(tab, "a range", "L3 L4 L5")
	tab.Open(code + "/main.tf?tab=source#L4")
	is(tab, "a line", "L4")
	tab.ShiftClick("#L7 > a")
	if got := evaluate[string](tab, "new Promise(done => setTimeout(() => done(location.hash)))"); got != "#L4-L7" {
		t.Errorf("a click with the shift key leads to %s", got)
	}
	is(tab, "after a click with the shift key", "L4 L5 L6 L7")

	tab.Open(code + "/main.tf")
	file, err := os.ReadFile("../testdata/registry/modules/acme/vpc/aws/1.4.0/main.tf")
	require(t, err)
	if copied := tab.Copied(".lines > .copy"); strings.TrimSpace(copied) != strings.TrimSpace(string(file)) {
		t.Errorf("copied is\n%s\nnot\n%s", copied, file)
	}
	tab.Follow(`.tabs a[href*="tab=examples"]`)
	tab.Follow(`.results a[href*="examples/complete"]`)
	tab.Follow(`.tabs a[href$="/code/examples/complete"]`)
	if copied := tab.Copied(".lines > .copy"); !strings.Contains(copied, `acme/vpc/aws"`) || !strings.Contains(copied, `version = "~> 1.4"`) || strings.Contains(copied, `"../..`) {
		t.Errorf("the example that is copied:\n%s", copied)
	}
}
