package pages

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
)

// pairs are the colours of text and the colours behind it, with the contrast that WCAG
// 2 AA asks for: 4.5 for text, 3 for the borders of controls.
var pairs = func() (list []struct {
	ink, ground string
	least       float64
}) {
	add := func(least float64, ground string, inks ...string) {
		for _, ink := range inks {
			list = append(list, struct {
				ink, ground string
				least       float64
			}{ink, ground, least})
		}
	}
	add(4.5, "bg", "ink", "soft", "accent", "bad", "good")
	add(4.5, "panel", "ink", "soft", "accent", "good")
	add(4.5, "code", "ink", "soft", "accent", "hl-keyword", "hl-string", "hl-number", "hl-comment", "hl-name", "hl-error")
	for _, tone := range []string{"good", "warn", "bad", "accent"} {
		add(4.5, tone+"-bg", tone, "ink")
	}
	for _, ground := range []string{"accent-bg", "good-bg"} { // lines that are marked
		add(4.5, ground, "hl-keyword", "hl-string", "hl-number", "hl-comment", "hl-name", "soft")
	}
	add(4.5, "bad-bg", "soft")
	add(4.5, "accent", "panel") // a button under the pointer
	add(3, "bg", "edge", "accent")
	add(3, "panel", "edge", "accent")
	return list
}()

func TestTextHasContrastInBothSchemes(t *testing.T) {
	light, dark := schemes(t)
	for name, scheme := range map[string]map[string]string{"light": light, "dark": dark} {
		for _, p := range pairs {
			if got := contrast(t, scheme[p.ink], scheme[p.ground]); got < p.least {
				t.Errorf("%s: --%s on --%s has a contrast of %.2f, want %.1f", name, p.ink, p.ground, got, p.least)
			}
		}
	}
}

// A colour that is written anywhere else is the same in the light and in the dark.
func TestBothSchemesHaveAllColours(t *testing.T) {
	rest := regexp.MustCompile(`light-dark\([^;]*;`).ReplaceAllString(stylesheet(t), "")
	if found := regexp.MustCompile(`#[0-9a-f]{3,8}\b|rgb\([^)]*\)`).FindAllString(rest, -1); len(found) > 1 {
		t.Errorf("colours outside of light-dark(): %q", found)
	}
}

// A misspelt token is a colour that is not there.
func TestStylesUseKnownTokensOnly(t *testing.T) {
	css := stylesheet(t)
	used := make(map[string]bool)
	for _, m := range regexp.MustCompile(`var\(--([a-z-]+)\)`).FindAllStringSubmatch(css, -1) {
		used[m[1]] = true
		if !strings.Contains(css, "--"+m[1]+":") {
			t.Errorf("var(--%s) is not defined", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`--([a-z-]+):`).FindAllStringSubmatch(css, -1) {
		if !used[m[1]] {
			t.Errorf("--%s is not used", m[1])
		}
	}
}

func stylesheet(t *testing.T) string {
	t.Helper()
	f, _ := assets.Named(path.Base(assets.Path("style.css")))
	css := f.Content
	if len(css) == 0 {
		t.Fatal("there is no stylesheet")
	}
	return string(css)
}

// schemes returns the colours of the stylesheet by the names of their tokens.
func schemes(t *testing.T) (light, dark map[string]string) {
	t.Helper()
	light, dark = make(map[string]string), make(map[string]string)
	for _, m := range regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);`).FindAllStringSubmatch(stylesheet(t), -1) {
		light[m[1]], dark[m[1]] = m[2], m[3]
	}
	if len(light) == 0 {
		t.Fatal("no colours found")
	}
	return light, dark
}

// contrast returns WCAG 2's ratio of two colours written as #rrggbb.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	la, errA := luminance(a)
	lb, errB := luminance(b)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	return (max(la, lb) + .05) / (min(la, lb) + .05)
}

func luminance(colour string) (float64, error) {
	if len(colour) != 7 {
		return 0, fmt.Errorf("%q is not a colour", colour)
	}
	rgb, err := strconv.ParseUint(colour[1:], 16, 32)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for i, weight := range []float64{.2126, .7152, .0722} {
		c := float64(rgb>>(16-8*i)&0xff) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum, nil
}
