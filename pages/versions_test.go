package pages

import (
	"slices"
	"testing"
)

type rowOf string

func (r rowOf) number() string { return string(r) }

// A page has its versions in one order, offered or withdrawn.
func TestGroupVersions(t *testing.T) {
	for _, test := range []struct {
		rule               string
		offered, withdrawn []rowOf
		want               []rowOf
	}{
		{"the newest first", []rowOf{"2.0.0", "1.0.0"}, []rowOf{"1.1.0"}, []rowOf{"2.0.0", "1.1.0", "1.0.0"}},
		{"a withdrawn build after its version", []rowOf{"1.0.0"}, []rowOf{"1.0.0+a"}, []rowOf{"1.0.0", "1.0.0+a"}},
		{"withdrawn builds among the others", []rowOf{"1.0.0", "1.0.0+b"}, []rowOf{"1.0.0+c", "1.0.0+a"}, []rowOf{"1.0.0", "1.0.0+c", "1.0.0+b", "1.0.0+a"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var got []rowOf
			for _, g := range groupVersions(test.offered, test.withdrawn) {
				got = append(got, g.Rows...)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}
