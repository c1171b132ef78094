package option

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

func TestExpand(t *testing.T) {
	t.Setenv("OPTION_ONE", "one")
	for _, test := range []struct{ rule, value, want, err string }{
		{"a text", "plain", "plain", ""},
		{"a variable", "a {env.OPTION_ONE}", "a one", ""},
		{"an unset variable", "{env.OPTION_UNSET}", "", "OPTION_UNSET"},
		{"a placeholder of requests", "{http.request.host}", "", "http.request.host"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			value, list := test.value, []string{"first", test.value}
			for name, values := range map[string]Values{"scalar": Scalar("scalar", &value), "list": List("list", list)} {
				err := Expand(caddy.NewReplacer(), values)
				if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(err.Error(), test.err)) {
					t.Errorf("got error %v of the %s, want one with %q", err, name, test.err)
				}
			}
			if test.err == "" && (value != test.want || !slices.Equal(list, []string{"first", test.want})) {
				t.Errorf("got %q and %q, want %q", value, list, test.want)
			}
		})
	}
}
