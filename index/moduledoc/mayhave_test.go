package moduledoc

import "testing"

func TestWhatASummaryMayHave(t *testing.T) {
	some := Summary{Submodules: []SubmoduleSummary{{Path: "modules/a"}}}
	many := Summary{Submodules: make([]SubmoduleSummary, maxSubmodules), Examples: 1}
	for _, test := range []struct {
		rule string
		of   Summary
		part string
		want bool
	}{
		{"a submodule that it names", some, "modules/a", true},
		{"another submodule", some, "modules/b", false},
		{"a submodule, if it does not name all", many, "modules/b", true},
		{"an example, where there are some", many, "examples/a", true},
		{"an example, where there are none", some, "examples/a", false},
	} {
		if got := test.of.MayHave(test.part); got != test.want {
			t.Errorf("%s: %v", test.rule, got)
		}
	}
}
