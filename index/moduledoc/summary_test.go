package moduledoc

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestSummariesAreDecodedAsTheyWereEncoded(t *testing.T) {
	full := Summary{
		Description: "A network", Inputs: []string{"a", "b"}, Outputs: []string{"c"}, Resources: 300, Examples: 2, Words: "a network",
		Refused: []Problem{{"main.tf", 300, "Invalid expression."}, {"a.tf", 0, "Unreadable."}}, RefusedTotal: 4,
		Uses:       Uses{Types: []string{"aws_vpc", "data.aws_ami"}, Providers: []Use{{"hashicorp/aws", ">= 5.0"}}, Calls: []Use{{"acme/labels/null", ""}}},
		Submodules: []SubmoduleSummary{{Path: "modules/x", Description: "X", Inputs: []string{"d"}, Uses: Uses{Types: []string{"aws_subnet"}}}, {Path: "modules/y"}},
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

// Summaries that an earlier release has remembered still count, and are incomplete.
func TestSummariesOfTheFirstFormatAreDecoded(t *testing.T) {
	first := []byte("\x09A network\x02vp\x01\x01a\x00\x03\x00\x00\x00\x01\x09modules/x\x00\x00")
	want := Summary{Description: "A network", Words: "vp", Inputs: []string{"a"}, Resources: 3, Submodules: []SubmoduleSummary{{Path: "modules/x"}}}
	if got, err := DecodeSummary(first); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if IsCurrent(first) || !IsCurrent(want.Encode()) {
		t.Error("the formats are confused")
	}
}

// What modules of other packages and providers a module uses is known, also of submodules; its
// own folders are no use.
func TestSummariesSayWhatModulesUse(t *testing.T) {
	c := collect(t, files("main.tf", `
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}
module "labels" {
  source  = "acme/labels/null"
  version = "~> 1.0"
}
module "again" {
  source  = "acme/labels/null"
  version = "~> 1.0"
}
module "own" {
  source = "./modules/x"
}
resource "aws_vpc" "a" {}
resource "aws_vpc" "b" {}
data "aws_ami" "c" {}
`, "modules/x/main.tf", `resource "random_pet" "name" {}`), Collector{Short: true})
	s := c.Summary("")
	want := Uses{Types: []string{"aws_vpc", "data.aws_ami"}, Providers: []Use{{"hashicorp/aws", ">= 5.0"}}, Calls: []Use{{"acme/labels/null", "~> 1.0"}}}
	if !reflect.DeepEqual(s.Uses, want) {
		t.Errorf("got %+v, want %+v", s.Uses, want)
	}
	if sub := s.Submodules[0].Uses; !slices.Equal(sub.Types, []string{"random_pet"}) || len(sub.Providers) != 1 || sub.Providers[0].Source != "hashicorp/random" {
		t.Errorf("the submodule has %+v", sub)
	}
}

// A module of any size has a small summary.
func TestSummariesAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&b, "variable \"%s%d\" {}\noutput \"%s%d\" {}\nresource \"%s%d\" \"a\" {}\n", strings.Repeat("v", 100), i, strings.Repeat("o", 100), i, strings.Repeat("r", 100), i)
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
