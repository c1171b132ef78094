package assets

import (
	"strings"
	"testing"
)

func TestLogosAreImages(t *testing.T) {
	for _, test := range []struct {
		rule, file string
		size       int
		want       string
	}{
		{"an image", "logo.png", 100, ""},
		{"another image", "logo.webp", MaxLogo, ""},
		{"no image", "logo.html", 100, "no image that browsers show"},
		{"an empty file", "logo.png", 0, "the file is empty"},
		{"a large file", "logo.png", MaxLogo + 1, "more than 256 KiB"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, err := NewLogo(test.file, make([]byte, test.size))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
