package tokenfile

import (
	"bytes"
	"reflect"
	"testing"
)

// The tokens of any file are as if Add had written them: written again, they are the
// same.
func FuzzParse(f *testing.F) {
	for _, test := range sampleFiles {
		if len(test.file) < 1000 {
			f.Add([]byte(test.file))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		tokens, errs := Parse(file)
		var again []byte
		for i := range tokens.tokens {
			one := &tokens.tokens[i]
			if err := one.validate(); err != nil {
				t.Errorf("token %d has an invalid entry: %v", i, err)
			}
			again = one.appendLine(again)
		}
		same, none := Parse(again)
		if len(none) > 0 || !reflect.DeepEqual(same.Entries(), tokens.Entries()) {
			t.Errorf("got %+v and errors %v of\n%s\nwant %+v", same.Entries(), none, again, tokens.Entries())
		}
		for i := range tokens.tokens {
			if tokens.tokens[i].digest != same.tokens[i].digest {
				t.Errorf("token %d is another one when it is read again", i)
			}
		}
		lines := bytes.Count(file, []byte("\n")) + 1
		if len(errs)+len(tokens.tokens) > lines {
			t.Errorf("%d lines have %d errors and %d tokens", lines, len(errs), len(tokens.tokens))
		}
	})
}

// Add adds the token and changes no other. After Revoke the file is as it was,
// except for the end of its last line.
func FuzzAdd(f *testing.F) {
	for _, test := range sampleFiles {
		if len(test.file) < 1000 {
			f.Add([]byte(test.file), "new")
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, name string) {
		entry := Entry{Name: name}
		before, errs := Parse(file)
		if entry.validate() != nil || len(errs) > 0 || len(file) > maxFile/2 {
			return
		}
		for _, line := range numberedLines(file) {
			if hasName(line, name) {
				return
			}
		}
		const secret = "tfr_new"
		if s, _ := before.Find(secret, testTime); !s.Anonymous() {
			return
		}
		one := token{Entry: entry, digest: digestOf(secret)}
		longer := one.appendLine(file)
		after, errs := Parse(longer)
		if len(errs) > 0 || !reflect.DeepEqual(after.Entries(), append(before.Entries(), entry)) {
			t.Fatalf("got %+v and errors %v of\n%q", after.Entries(), errs, longer)
		}
		var left []byte
		for _, line := range numberedLines(longer) {
			if !hasName(line, name) {
				left = append(left, line...)
			}
		}
		if rest, ok := bytes.CutPrefix(left, file); !ok || len(bytes.TrimSpace(rest)) > 0 {
			t.Errorf("%q is left of %q", left, file)
		}
	})
}
