package main

import "testing"

func TestParseTransfer(t *testing.T) {
	for _, c := range []struct {
		name, output string
		want         transfer
		fails        bool
	}{
		{"HTTP/2", "0.012345 1.5 2", transfer{0.012345, 1.5, "2"}, false},
		{"HTTP/1.1", "0.000001 0.25 1.1", transfer{0.000001, 0.25, "1.1"}, false},
		{"a curl that does not know all of it", "0.012345 1.5 ", transfer{}, true},
		{"nothing", "", transfer{}, true},
	} {
		got, err := parseTransfer(c.output)
		if (err != nil) != c.fails || err == nil && got != c.want {
			t.Errorf("%s: it is %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}
