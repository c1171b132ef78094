package snippet

import (
	"strings"
	"testing"
)

func TestLongValuesAreFolded(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       Value
	}{
		{"a short one is inline", `"eu"`, Value{Text: `"eu"`}},
		{"a longer one has the width", `"` + strings.Repeat("x", 60) + `"`, Value{Text: `"` + strings.Repeat("x", 60) + `"`, Wide: true}},
		{"a long list is indented", `["aaaaaaaaaaaaaaaaaaaa","<bbbbbbbbbbbbbbbbbbbb>"]`, Value{
			Text: "[\n  \"aaaaaaaaaaaaaaaaaaaa\",\n  \"<bbbbbbbbbbbbbbbbbbbb>\"\n]", Block: true, Wide: true,
		}},
		{"a list that indentation would make many times as long stays as it is", strings.Repeat("[", 500) + strings.Repeat("]", 500), Value{
			Text: strings.Repeat("[", 500) + strings.Repeat("]", 500), Wide: true, Folded: "1,000 characters",
		}},
		{"brackets in a string are not indented", `["` + strings.Repeat("[", 500) + `\"[[","b"]`, Value{
			Text: "[\n  \"" + strings.Repeat("[", 500) + "\\\"[[\",\n  \"b\"\n]", Block: true, Wide: true,
		}},
		{"an expression stays as it is written", `[for zone in local.zones : upper(zone)  if zone]`, Value{Text: `[for zone in local.zones : upper(zone)  if zone]`, Wide: true}},
		{"3,000 characters are folded", `"` + strings.Repeat("x", 2998) + `"`, Value{Text: `"` + strings.Repeat("x", 2998) + `"`, Wide: true, Folded: "3,000 characters"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := NewDefault(test.text); got != test.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}
