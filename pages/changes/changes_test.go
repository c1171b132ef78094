package changes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// String returns a change on one line: "breaking: input x changed (type string →
// bool)".
func (c Change) String() string {
	s := fmt.Sprintf("%s %s %s", c.What, c.Name, c.Kind)
	if c.Submodule != "" {
		s = c.Submodule + ": " + s
	}
	if c.Breaking {
		s = "breaking: " + s
	}
	var details []string
	for _, d := range c.Details {
		text := d.Of
		if d.From != "" || d.To != "" {
			text += " " + d.From + " → " + d.To
		}
		details = append(details, text)
	}
	if details != nil {
		s += " (" + strings.Join(details, "; ") + ")"
	}
	return s
}

func changesOf(from, to moduledoc.Package) []string {
	list := []string{}
	for _, c := range Interfaces(&from, &to) {
		list = append(list, c.String())
	}
	return list
}

func root(m moduledoc.Module) moduledoc.Package { return moduledoc.Package{Root: m} }

// nullable declares variables as authors do who do not think of null.
func nullable(variables ...moduledoc.Variable) moduledoc.Package {
	for i := range variables {
		variables[i].Nullable = true
	}
	return root(moduledoc.Module{Variables: variables})
}

func TestChangesOfInputs(t *testing.T) {
	type variable = moduledoc.Variable
	for _, test := range []struct {
		name     string
		from, to variable
		want     string
	}{
		{"one that is the same", variable{Name: "x", Type: "string"}, variable{Name: "x", Type: "string"}, ""},
		{"its description is not its interface", variable{Name: "x", Description: "a"}, variable{Name: "x", Description: "b"}, ""},
		{"an optional one is added", variable{}, variable{Name: "x", Default: "1"}, "input x added"},
		{"a required one is added", variable{}, variable{Name: "x"}, "breaking: input x added (required)"},
		{"one is removed", variable{Name: "x", Default: "1"}, variable{}, "breaking: input x removed"},
		{"it becomes required", variable{Name: "x", Default: "1"}, variable{Name: "x"}, "breaking: input x changed (default 1 → required)"},
		{"it becomes optional", variable{Name: "x"}, variable{Name: "x", Default: "1"}, "input x changed (default required → 1)"},
		{"its default changes", variable{Name: "x", Default: "1"}, variable{Name: "x", Default: "2"}, "input x changed (default 1 → 2)"},
		{"its type changes", variable{Name: "x", Type: "string"}, variable{Name: "x", Type: "bool"}, "breaking: input x changed (type string → bool)"},
		{"its type is given up", variable{Name: "x", Type: "string"}, variable{Name: "x"}, "input x changed (type string → any)"},
		{"it gets a type", variable{Name: "x"}, variable{Name: "x", Type: "string"}, "breaking: input x changed (type any → string)"},
		{"a list and a list of anything are the same", variable{Name: "x", Type: "list"}, variable{Name: "x", Type: "list(any)"}, ""},
		{"a map and a map of anything are the same", variable{Name: "x", Type: "map(any)"}, variable{Name: "x", Type: "map"}, ""},
		{"a list of text becomes a list", variable{Name: "x", Type: "list(string)"}, variable{Name: "x", Type: "list"}, "input x changed (type list(string) → list)"},
		{"a list becomes a list of text", variable{Name: "x", Type: "list"}, variable{Name: "x", Type: "list(string)"}, "breaking: input x changed (type list → list(string))"},
		{"no type and any are the same", variable{Name: "x"}, variable{Name: "x", Type: "any"}, ""},
		{"it becomes sensitive", variable{Name: "x"}, variable{Name: "x", Sensitive: true}, "input x changed (now sensitive)"},
		{"it becomes ephemeral", variable{Name: "x"}, variable{Name: "x", Ephemeral: true}, "input x changed (now ephemeral)"},
		{"ephemeral values are not accepted any more", variable{Name: "x", Ephemeral: true}, variable{Name: "x"}, "breaking: input x changed (no longer ephemeral)"},
		{"it is deprecated", variable{Name: "x"}, variable{Name: "x", Deprecated: "Use y."}, "input x changed (deprecated: Use y.)"},
		{"its rules change", variable{Name: "x"}, variable{Name: "x", Validations: []string{"No."}}, "input x changed (validation rules changed)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			list := func(v variable) []variable {
				if v.Name == "" {
					return nil
				}
				return []variable{v}
			}
			got := strings.Join(changesOf(nullable(list(test.from)...), nullable(list(test.to)...)), "\n")
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestChangesOfNull(t *testing.T) {
	for _, test := range []struct {
		name, value string
		from, to    bool
		want        string
	}{
		{"a required one does not accept it any more", "", true, false, "breaking: input x changed (null is no longer accepted)"},
		{"an optional one takes its default for it", "1", true, false, "input x changed (null is no longer accepted)"},
		{"it is accepted", "", false, true, "input x changed (null is now accepted)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			packageWith := func(nullable bool) moduledoc.Package {
				return root(moduledoc.Module{Variables: []moduledoc.Variable{{Name: "x", Default: test.value, Nullable: nullable}}})
			}
			if got := strings.Join(changesOf(packageWith(test.from), packageWith(test.to)), "\n"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestTypesThatAcceptWhatWasAccepted(t *testing.T) {
	const depth = 4 << 10 // HCL's parser calls itself for each level
	for _, test := range []struct {
		name, from, to string
		accepts        bool
	}{
		{"an optional attribute more", "object({ a = string })", "object({ a = string, b = optional(bool) })", true},
		{"an attribute that becomes optional", "object({ a = string })", "object({ a = optional(string) })", true},
		{"a required attribute more", "object({ a = string })", "object({ a = string, b = bool })", false},
		{"an attribute that becomes required", "object({ a = optional(string) })", "object({ a = string })", false},
		{"an attribute less is not seen any more", "object({ a = string, b = bool })", "object({ a = string })", false},
		{"the same within a list", "list(object({ a = string }))", "list(object({ a = string, b = optional(bool) }))", true},
		{"text for a number", "number", "string", true},
		{"a number for text", "string", "number", false},
		{"lists of text for lists of numbers", "map(list(number))", "map(list(string))", true},
		{"a set for a list loses their order", "list(string)", "set(string)", false},
		{"a tuple of the same", "object({ a = tuple([string]) })", "object({ a = tuple([string]), b = optional(bool) })", true},
		{"a tuple of others", "tuple([number])", "tuple([string])", false},
		{"anything", "map(string)", "any", true},
		{"what cannot be read is not known to be good", "map(string)", "map(", false},
		{"what is too deep to be read is not known to be good", strings.Repeat("list(", depth) + "number" + strings.Repeat(")", depth), strings.Repeat("list(", depth) + "string" + strings.Repeat(")", depth), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to := &moduledoc.Variable{Type: test.from}, &moduledoc.Variable{Type: test.to}
			if sameType(from, to) {
				t.Error("they are equal")
			}
			if got := acceptsType(to, from); got != test.accepts {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheLayoutOfATypeIsNotPartOfIt(t *testing.T) {
	typed := func(text string) *moduledoc.Variable { return &moduledoc.Variable{Type: text} }
	from := typed("object({\n  a = string # why\n  b = optional(number, 3)\n})")
	if !sameType(from, typed("object({ a = string, b = optional(number, 3) })")) {
		t.Error("they differ")
	}
	if sameType(from, typed("object({ a = string, b = optional(number, 4) })")) {
		t.Error("another default of an attribute is not seen")
	}
}

func TestChangesOfOutputs(t *testing.T) {
	type outputs = []moduledoc.Output
	for _, test := range []struct {
		name     string
		from, to outputs
		want     []string
	}{
		{"added", nil, outputs{{Name: "x"}}, []string{"output x added"}},
		{"removed", outputs{{Name: "x"}}, nil, []string{"breaking: output x removed"}},
		{"sensitive: callers must mark theirs", outputs{{Name: "x"}}, outputs{{Name: "x", Sensitive: true}}, []string{"breaking: output x changed (now sensitive)"}},
		{"not sensitive any more", outputs{{Name: "x", Sensitive: true}}, outputs{{Name: "x"}}, []string{"output x changed (no longer sensitive)"}},
		{"ephemeral: it cannot be kept", outputs{{Name: "x"}}, outputs{{Name: "x", Ephemeral: true}}, []string{"breaking: output x changed (now ephemeral)"}},
		{"deprecated", outputs{{Name: "x"}}, outputs{{Name: "x", Deprecated: "Use y."}}, []string{"output x changed (deprecated: Use y.)"}},
		{"another order", outputs{{Name: "x"}, {Name: "y"}}, outputs{{Name: "y"}, {Name: "x"}}, []string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := changesOf(root(moduledoc.Module{Outputs: test.from}), root(moduledoc.Module{Outputs: test.to}))
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestChangesOfRequirements(t *testing.T) {
	aws := func(source, version string) moduledoc.Module {
		return moduledoc.Module{Providers: []moduledoc.Provider{{Name: "aws", Source: source, Version: version}}}
	}
	passing := func(aliases string) moduledoc.Module {
		return moduledoc.Module{Providers: []moduledoc.Provider{{Name: "aws", Source: "hashicorp/aws", Aliases: aliases}}}
	}
	for _, test := range []struct {
		name     string
		from, to moduledoc.Module
		want     []string
	}{
		{
			"a newer client", moduledoc.Module{RequiredVersion: ">= 1.3"}, moduledoc.Module{RequiredVersion: ">= 1.5"},
			[]string{"breaking: client terraform changed (version >= 1.3 → >= 1.5)"},
		},
		{
			"older clients too", moduledoc.Module{RequiredVersion: ">= 1.3"}, moduledoc.Module{RequiredVersion: ">= 1.1"},
			[]string{"client terraform changed (version >= 1.3 → >= 1.1)"},
		},
		{
			"any client", moduledoc.Module{RequiredVersion: "~> 1.3"}, moduledoc.Module{},
			[]string{"client terraform changed (version ~> 1.3 → any)"},
		},
		{"the same, spelt differently", moduledoc.Module{RequiredVersion: ">= 1.3,< 2.0"}, moduledoc.Module{RequiredVersion: "< 2.0, >= 1.3"}, []string{}},
		{"an upper bound", aws("hashicorp/aws", ">= 5.0"), aws("hashicorp/aws", ">= 5.0, < 6.0"), []string{"breaking: provider aws changed (version >= 5.0 → >= 5.0, < 6.0)"}},
		{"a wider range", aws("hashicorp/aws", "~> 5.1"), aws("hashicorp/aws", ">= 5.0, < 7.0"), []string{"provider aws changed (version ~> 5.1 → >= 5.0, < 7.0)"}},
		{"one version left out", aws("hashicorp/aws", ">= 5.0"), aws("hashicorp/aws", ">= 5.0, != 5.3.1"), []string{"breaking: provider aws changed (version >= 5.0 → >= 5.0, != 5.3.1)"}},
		{"another provider of that name", aws("hashicorp/aws", ""), aws("acme/aws", ""), []string{"breaking: provider aws changed (source hashicorp/aws → acme/aws)"}},
		{"the same provider with the hostname that Terraform takes", aws("hashicorp/aws", ""), aws("registry.terraform.io/hashicorp/aws", ""), []string{}},
		{"without the hostname that OpenTofu takes", aws("registry.opentofu.org/hashicorp/aws", ""), aws("hashicorp/aws", ""), []string{}},
		{"the same provider in capital letters", aws("hashicorp/aws", ""), aws("Hashicorp/aws", ""), []string{}},
		{"a type alone is of hashicorp", aws("aws", ""), aws("hashicorp/aws", ""), []string{}},
		{"the provider of another registry", aws("hashicorp/aws", ""), aws("registry.example.com/hashicorp/aws", ""), []string{"breaking: provider aws changed (source hashicorp/aws → registry.example.com/hashicorp/aws)"}},
		{"from one public registry to the other", aws("registry.terraform.io/hashicorp/aws", ""), aws("registry.opentofu.org/hashicorp/aws", ""), []string{"breaking: provider aws changed (source registry.terraform.io/hashicorp/aws → registry.opentofu.org/hashicorp/aws)"}},
		{"sources that cannot be read", aws("a b", ""), aws("a c", ""), []string{"breaking: provider aws changed (source a b → a c)"}},
		{"a configuration that has to be passed", aws("hashicorp/aws", ""), passing("aws.peer"), []string{"breaking: provider aws changed (configurations none → aws.peer)"}},
		{"a provider whose configurations were passed is gone", passing("aws.peer"), moduledoc.Module{}, []string{"breaking: provider aws removed"}},
		{"a provider that was passed by itself is gone", aws("hashicorp/aws", ""), moduledoc.Module{}, []string{"provider aws removed"}},
		{"one that cannot be passed any more", passing("aws.east, aws.peer"), passing("aws.peer"), []string{"breaking: provider aws changed (configurations aws.east, aws.peer → aws.peer)"}},
		{"a provider more, with a configuration that has to be passed", moduledoc.Module{}, passing("aws.peer"), []string{"breaking: provider aws added (hashicorp/aws)"}},
		{"a provider more", moduledoc.Module{}, aws("hashicorp/aws", ">= 5.0"), []string{"provider aws added (hashicorp/aws >= 5.0)"}},
		{"a provider less", aws("hashicorp/aws", ">= 5.0"), moduledoc.Module{}, []string{"provider aws removed"}},
		{"constraints that cannot be read", aws("hashicorp/aws", "new"), aws("hashicorp/aws", "newer"), []string{"provider aws changed (version new → newer)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := changesOf(root(test.from), root(test.to)); !slices.Equal(got, test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Comparing constraints takes time that grows with the square of their parts, and a module may
// require many providers: not all constraints of hundreds of parts are judged.
func TestEffortOfComparingConstraintsIsBounded(t *testing.T) {
	for parts, want := range map[int]int{2: 200, 200: 1} {
		var from, to moduledoc.Module
		for i := range 200 {
			var old, now strings.Builder
			for j := range parts {
				fmt.Fprintf(&old, "!= %d, ", 2*j)
				fmt.Fprintf(&now, "!= %d, ", 2*j+1)
			}
			name := fmt.Sprintf("p%d", i)
			from.Providers = append(from.Providers, moduledoc.Provider{Name: name, Version: old.String() + "> 0"})
			to.Providers = append(to.Providers, moduledoc.Provider{Name: name, Version: now.String() + "> 1"})
		}
		found := changesOf(root(from), root(to))
		breaking := slices.DeleteFunc(slices.Clone(found), func(s string) bool { return !strings.HasPrefix(s, "breaking") })
		if len(found) != 200 || len(breaking) != want {
			t.Errorf("of %d parts: %d changes, of which %d are breaking", parts, len(found), len(breaking))
		}
	}
}

func TestChangesOfSubmodules(t *testing.T) {
	from := moduledoc.Package{
		Submodules: []moduledoc.Module{{Path: "modules/a"}, {Path: "modules/b", Outputs: []moduledoc.Output{{Name: "x"}}}},
		Examples:   []moduledoc.Module{{Path: "examples/x"}},
	}
	to := moduledoc.Package{
		Root:       moduledoc.Module{Outputs: []moduledoc.Output{{Name: "o"}}},
		Submodules: []moduledoc.Module{{Path: "modules/b"}, {Path: "modules/c"}},
	}
	want := []string{
		"breaking: submodule modules/a removed", "breaking: modules/b: output x removed",
		"output o added", "submodule modules/c added",
	}
	if got := changesOf(from, to); !slices.Equal(got, want) {
		t.Errorf("got %q, want the breaking ones first and no example", got)
	}
}

func TestVerdictOnTheVersionNumber(t *testing.T) {
	breaking, addition := Change{Kind: Removed, What: "output", Breaking: true}, Change{Kind: Added, What: "input"}
	for _, test := range []struct {
		name, from, to string
		changes        []Change
		tone, want     string
	}{
		{"nothing changed", "1.0.0", "1.0.1", nil, "good", "The interface is the same. Inputs, outputs, submodules and requirements have not changed."},
		{"an addition in a minor release", "1.0.0", "1.1.0", []Change{addition}, "good", "No breaking changes."},
		{"an addition in a patch release", "1.0.0", "1.0.1", []Change{addition}, "info", "No breaking changes. Something was added, which calls for a new minor version."},
		{"a breaking change in a major release", "1.4.0", "2.0.0", []Change{breaking, addition}, "info", "1 breaking change. The new major version announces it."},
		{"breaking changes in a minor release", "1.4.0", "1.5.0", []Change{breaking, breaking}, "bad", "2 breaking changes in a minor release. That calls for a new major version."},
		{"a breaking change in a patch release", "1.4.0", "1.4.1", []Change{breaking}, "bad", "1 breaking change in a patch release. That calls for a new major version."},
		{"a breaking change in a minor release before 1.0.0", "0.4.0", "0.5.0", []Change{breaking}, "info", "1 breaking change. Before 1.0.0, a new minor version may break callers."},
		{"a breaking change in a patch release before 1.0.0", "0.4.0", "0.4.1", []Change{breaking}, "bad", "1 breaking change in a patch release. Before 1.0.0, that calls for a new minor version."},
		{"the first stable version", "0.9.0", "1.0.0", []Change{breaking}, "info", "1 breaking change. The new major version announces it."},
		{"between prereleases of one version", "2.0.0-rc.1", "2.0.0-rc.2", []Change{breaking}, "info", "1 breaking change. The interface may still change until the release."},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Judge(version.Must(version.NewVersion(test.from)), version.Must(version.NewVersion(test.to)), test.changes)
			if text := strings.TrimSpace(got.Title + " " + got.Text); got.Tone != test.tone || text != test.want {
				t.Errorf("%s: %s", got.Tone, text)
			}
		})
	}
}

func FuzzInterfaces(f *testing.F) {
	f.Add("object({ a = optional(string, {}) })", ">= 1.0", "tuple([any, object({})])", "~> 1")
	f.Add("list(", "9223372036854775807", "\x00", "!= 1.2, 0.0.9223372036854775807")
	f.Fuzz(func(t *testing.T, oldType, oldVersion, newType, newVersion string) {
		packageWith := func(typ, version string) *moduledoc.Package {
			return &moduledoc.Package{Root: moduledoc.Module{RequiredVersion: version, Variables: []moduledoc.Variable{{Name: "x", Type: typ}}}}
		}
		from, to := packageWith(oldType, oldVersion), packageWith(newType, newVersion)
		Interfaces(from, to)
		if same := Interfaces(to, to); len(same) > 0 {
			t.Errorf("a version differs from itself: %v", same)
		}
	})
}

func TestGroups(t *testing.T) {
	input := func(submodule string, breaking bool) Change {
		return Change{Kind: Removed, What: "input", Name: "x", Submodule: submodule, Breaking: breaking}
	}
	resource := func(submodule string) Change {
		return Change{Kind: Added, What: "resource", Name: "r", Submodule: submodule}
	}
	for _, test := range []struct {
		rule               string
		changes, resources []Change
		want               string
	}{
		{"the root is first", []Change{input("modules/b", false), input("modules/a", false), input("", false)}, nil, ", modules/a, modules/b"},
		{"resources alone make a group", []Change{input("modules/b", false)}, []Change{resource("")}, ", modules/b"},
		{"what is breaking is before everything else", []Change{input("modules/b", true), input("", false)}, []Change{resource("modules/a")}, "modules/b, , modules/a"},
		{"of what is breaking the root is first", []Change{input("modules/b", true), input("", true), input("modules/a", false)}, nil, ", modules/b, modules/a"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var got []string
			for _, g := range Groups(test.changes, test.resources) {
				got = append(got, g.Submodule)
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("%q, want %q", strings.Join(got, ", "), test.want)
			}
		})
	}
}
