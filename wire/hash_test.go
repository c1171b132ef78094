package wire

import (
	"slices"
	"strings"
	"testing"
)

// A digest that is written is read again, and no other text is.
func TestHashesOfPackages(t *testing.T) {
	sum := SHA256Of([]byte("a package"))
	if got, ok := ParseH1(sum.H1()); !ok || got != sum || !IsH1(sum.H1()) || IsZH(sum.H1()) {
		t.Errorf("%s is read as %s", sum.H1(), got)
	}
	if got, ok := ParseZH(sum.ZH()); !ok || got != sum || !IsZH(sum.ZH()) || IsH1(sum.ZH()) {
		t.Errorf("%s is read as %s", sum.ZH(), got)
	}
	digits := sum.String()
	for _, test := range []struct {
		rule, hash           string
		h1, zh, known, fails bool
	}{
		{"of files", sum.H1(), true, false, true, false},
		{"of bytes", sum.ZH(), false, true, true, false},
		{"of bytes, in upper case", "zh:" + strings.ToUpper(digits), false, true, true, false},
		{"a digest without a scheme", digits, false, false, false, true},
		{"the digits of the other scheme", "h1:" + digits, false, false, false, true},
		{"too short", "zh:" + digits[2:], false, false, false, true},
		{"nothing but the scheme", "h1:", false, false, false, true},
		{"a line feed in it", sum.H1()[:20] + "\n" + sum.H1()[20:], false, false, false, true},
		{"another scheme", "h2:" + digits, false, false, false, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, h1 := ParseH1(test.hash)
			_, zh := ParseZH(test.hash)
			known, err := checkHash(test.hash)
			if h1 != test.h1 || zh != test.zh || known != test.known || (err != nil) != test.fails {
				t.Errorf("it is h1 %t, zh %t, known %t, %v", h1, zh, known, err)
			}
		})
	}
}

// The hashes of files are listed one by one, the "h1:" first.
func TestFileHashes(t *testing.T) {
	for _, test := range []struct {
		rule string
		all  []FileHashes
		want []string
	}{
		{"none", []FileHashes{""}, nil},
		{"one", []FileHashes{"h1:a"}, []string{"h1:a"}},
		{"several", []FileHashes{"h1:a h2:b"}, []string{"h1:a", "h2:b"}},
		{"of files and of entries", []FileHashes{"h1:a", "h1:c"}, []string{"h1:a", "h1:c"}},
		{"of files alone", []FileHashes{"h1:a", ""}, []string{"h1:a"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got := ListHashes(test.all...)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v", got)
			}
			if first := test.all[0].H1(); len(got) > 0 && first != got[0] {
				t.Errorf("the h1 is %q", first)
			}
		})
	}
}

// A log of a million entries is read at a start: its hashes cost no garbage but their texts.
func TestHashesAllocateTheirTextAlone(t *testing.T) {
	sum := SHA256Of([]byte("a package"))
	h1, zh := sum.H1(), sum.ZH()
	files := FileHashes(h1)
	for _, test := range []struct {
		rule string
		most float64
		do   func()
	}{
		{"reading", 0, func() { ParseH1(h1); ParseZH(zh) }},
		{"listing", 1, func() { _ = append(ListHashes(files, ""), zh) }},
		{"writing", 2, func() { h1, zh = sum.H1(), sum.ZH() }},
	} {
		if got := testing.AllocsPerRun(100, test.do); got > test.most {
			t.Errorf("%s allocates %v times", test.rule, got)
		}
	}
}
