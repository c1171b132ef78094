package registryhcl_test

import (
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// Of two files about one address, each says what the other does not, and all notices count.
func TestAFileOverAnother(t *testing.T) {
	parse := func(text string, changed time.Time) *registryhcl.File {
		f, problems := registryhcl.Parse([]byte(text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		f.Changed = changed
		return &f
	}
	before, after := time.Unix(100, 0), time.Unix(200, 0)
	for _, test := range []struct {
		rule         string
		over, hosted *registryhcl.File
		says         string
		changed      time.Time
	}{
		{"only one", parse(`owner = "a"`, before), nil, "owner=a", before},
		{"only the other", nil, parse(`owner = "a"`, before), "owner=a", before},
		{"its texts come first", parse(`owner = "a"`, after), parse("owner = \"b\"\ndescription = \"c\"\nsource = \"https://d.example/\"", before), "description=c; source=https://d.example/; owner=a", after},
		{"the notices of both", parse("deprecated \"1.0.0\" {}\nwithdrawn \"1.1.0\" {}", before), parse("deprecated \"2.0.0\" {}\nwithdrawn \"2.1.0\" {}", after), "deprecated 1.0.0; deprecated 2.0.0; withdrawn 1.1.0; withdrawn 2.1.0", after},
	} {
		t.Run(test.rule, func(t *testing.T) {
			both := test.over.Over(test.hosted)
			if got := said(*both); got != test.says || !both.Changed.Equal(test.changed) {
				t.Errorf("it says %q since %v", got, both.Changed)
			}
		})
	}
	if (*registryhcl.File)(nil).Over(nil) != nil {
		t.Error("without files there is one")
	}
}
