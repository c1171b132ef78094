package changes_test

import (
	"fmt"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
)

// Each change is announced once: when a scan has seen it and its archives have been read, or at
// the end.
func TestEachChangeIsAnnouncedOnce(t *testing.T) {
	l := changes.NewLog()
	l.Take()
	all := func([]string) bool { return false }
	check := func(when string, got [][]string, want string) {
		t.Helper()
		if text := fmt.Sprint(got); text != want {
			t.Errorf("%s: %s, want %s", when, text, want)
		}
	}
	l.AddOwn([]string{"a"})
	check("before a scan", l.TakeRead(all), "[]")
	_, _, n := l.Take()
	l.AddOwn([]string{"b", "c"}) // which that scan may not see
	l.HasScanned(n)
	check("while archives are unread", l.TakeRead(func(folders []string) bool { return folders[0] == "a" }), "[]")
	check("after they have been read", l.TakeRead(all), "[[a]]")

	_, _, n = l.Take()
	check("at the end", l.End(), "[[b c]]")
	l.HasScanned(n) // by a scan that the end has overtaken
	check("after the end", append(l.TakeRead(all), l.End()...), "[]")
}

// A scan gets the paths that have changed since the scan before.
func TestChangedPathsAreTakenOnce(t *testing.T) {
	l := changes.NewLog()
	if p, last, _ := l.Take(); !p.Has("keys") || last != 0 {
		t.Errorf("the first scan looks at %v, after change %d", p, last)
	}
	l.Add(changes.PathsOf([]string{"providers/acme/demo"}))
	first := l.AddOwn([]string{"modules/acme/vpc/aws"})
	if p, last, n := l.Take(); !p.Has("providers") || !p.Has("modules/acme") || p.Has("keys") || last != first || n != 1 {
		t.Errorf("the next scan looks at %v, after change %d", p, last)
	}
	if p, _, n := l.Take(); len(p) > 0 || n != 1 {
		t.Errorf("a third scan looks at %v", p)
	}
}
