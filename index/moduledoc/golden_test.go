package moduledoc

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/*.golden.json anew")

// The module in testdata/network has a realistic size and realistic content.
func TestARealModule(t *testing.T) {
	for _, test := range []struct {
		golden string
		result func(c *Collector) any
	}{
		{"network", func(c *Collector) any { return c.Package("") }},
		{"network-summary", func(c *Collector) any { return c.Summary("") }},
	} {
		c := collect(t, os.DirFS("testdata/network"), Collector{})
		got := encode(t, test.result(&c))
		name := "testdata/" + test.golden + ".golden.json"
		if *update {
			if err := os.WriteFile(name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is\n%s\nwhich is not what %s has", test.golden, got, name)
		}
	}
}

// The short collector keeps less and returns the same summary.
func TestTheShortFormIsTheSameHoweverItIsCollected(t *testing.T) {
	all := collect(t, os.DirFS("testdata/network"), Collector{})
	short := collect(t, os.DirFS("testdata/network"), Collector{Short: true})
	if a, b := encode(t, all.Summary("")), encode(t, short.Summary("")); !bytes.Equal(a, b) {
		t.Errorf("it is\n%s\nand\n%s", a, b)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
