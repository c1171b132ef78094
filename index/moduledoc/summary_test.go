package moduledoc

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestSummariesAreDecodedAsTheyWereEncoded(t *testing.T) {
	full := Summary{
		Description: "A network", Inputs: []string{"a", "b"}, Outputs: []string{"c"}, Resources: 300, Examples: 2, Words: "a network",
		Refused: []Problem{{"main.tf", 300, "Invalid expression."}, {"a.tf", 0, "Unreadable."}}, RefusedTotal: 4,
		Submodules: []SubmoduleSummary{{Path: "modules/x", Description: "X", Inputs: []string{"d"}}, {Path: "modules/y"}},
	}
	for _, s := range []Summary{{}, full} {
		got, err := DecodeSummary(s.Encode())
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v became %+v, %v", s, got, err)
		}
	}
	if got, err := DecodeSummary(nil); err != nil || !reflect.DeepEqual(got, Summary{}) {
		t.Errorf("nothing became %+v, %v", got, err)
	}
	encoded := full.Encode()
	for n := 1; n < len(encoded); n++ {
		if _, err := DecodeSummary(encoded[:n]); err == nil {
			t.Errorf("the first %d bytes are taken for a whole", n)
		}
	}
	if _, err := DecodeSummary(append(encoded, 0)); err == nil {
		t.Error("a byte too many is taken")
	}
}

// A module of any size has a small summary.
func TestSummariesAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "variable \"%s%d\" {}\noutput \"%s%d\" {}\n", strings.Repeat("v", 100), i, strings.Repeat("o", 100), i)
	}
	all := []string{"main.tf", b.String(), "README.md", strings.Repeat("many words of a README ", 10_000)}
	for i := range maxModules {
		all = append(all, fmt.Sprintf("modules/m%d/main.tf", i), b.String()[:20_000], fmt.Sprintf("modules/m%d/README.md", i), strings.Repeat("words ", 1000))
	}
	c := collect(t, files(all...), Collector{Short: true})
	s := c.Summary("")
	if n := len(s.Encode()); n > 64<<10 || len(s.Inputs) == 0 || len(s.Submodules) != maxSubmodules {
		t.Errorf("it has %d bytes, %d inputs, %d submodules", n, len(s.Inputs), len(s.Submodules))
	}
}
