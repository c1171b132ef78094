package access

import (
	"bytes"
	"reflect"
	"testing"
)

// Whatever is in a file, what is read of it is as if it had been written by
// AddToken: written again, it is the same, and everybody finds themselves.
func FuzzParseTokens(f *testing.F) {
	for _, test := range tokenFiles {
		if len(test.file) < 1000 {
			f.Add([]byte(test.file))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		tokens, errs := ParseTokens(file)
		var again []byte
		for i := range tokens.tokens {
			one := &tokens.tokens[i]
			if err := one.Validate(); err != nil {
				t.Errorf("line %d has an entry that is not valid: %v", one.line, err)
			}
			again = one.appendLine(again)
		}
		same, none := ParseTokens(again)
		if len(none) > 0 || !reflect.DeepEqual(same.Entries(), tokens.Entries()) {
			t.Errorf("got %+v and errors %v of\n%s\nwant %+v", same.Entries(), none, again, tokens.Entries())
		}
		for i := range tokens.tokens {
			if tokens.tokens[i].digest != same.tokens[i].digest {
				t.Errorf("line %d has another token when it is read again", tokens.tokens[i].line)
			}
		}
		lines := bytes.Count(file, []byte("\n")) + 1
		if len(errs)+len(tokens.tokens) > lines {
			t.Errorf("%d lines have %d errors and %d tokens", lines, len(errs), len(tokens.tokens))
		}
	})
}

// After AddToken there is the token, and all others as they were; after
// RevokeToken it is gone, and the file is as it was but for the end of its last
// line.
func FuzzAppendToken(f *testing.F) {
	for _, test := range tokenFiles {
		if len(test.file) < 1000 {
			f.Add([]byte(test.file), "new")
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, name string) {
		entry := TokenEntry{Name: name}
		before, errs := ParseTokens(file)
		if entry.Validate() != nil || len(errs) > 0 || len(file) > maxTokensFile/2 {
			return
		}
		for _, line := range tokenLines(file) {
			if isTokenOf(name, line) {
				return
			}
		}
		const secret = "tfr_new"
		if s, _ := before.Find(secret, tokenTime); !s.Anonymous() {
			return
		}
		one := token{TokenEntry: entry, digest: digestToken(secret)}
		longer := one.appendLine(file)
		after, errs := ParseTokens(longer)
		if len(errs) > 0 || !reflect.DeepEqual(after.Entries(), append(before.Entries(), entry)) {
			t.Fatalf("got %+v and errors %v of\n%q", after.Entries(), errs, longer)
		}
		var left []byte
		for _, line := range tokenLines(longer) {
			if !isTokenOf(name, line) {
				left = append(left, line...)
			}
		}
		if rest, ok := bytes.CutPrefix(left, file); !ok || len(bytes.TrimSpace(rest)) > 0 {
			t.Errorf("%q is left of %q", left, file)
		}
	})
}
