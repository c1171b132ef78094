package tlog

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The first entry of a log that continues another one has the newest checkpoint of that one.
func TestSuccession(t *testing.T) {
	signed, err := Checkpoint{Origin: origin, Size: 52}.Sign(testSigner)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSuccession(signed)
	if err != nil {
		t.Fatal(err)
	}
	text := s.String()
	if again, err := ParseSuccession(text); err != nil || again.String() != text || again.Size != 52 || again.Origin != origin || string(again.Signed) != string(signed) {
		t.Errorf("it is %+v, %v", again, err)
	}
	if _, err := ParseLeaf(text); err == nil {
		t.Error("it is a leaf of a version")
	}
	for rule, wrong := range map[string]string{
		"another size":          strings.Replace(text, " 52 ", " 53 ", 1),
		"another name":          strings.Replace(text, " log "+origin+" ", " log "+origin+"-2 ", 1),
		"no checkpoint":         text[:strings.Index(text, "checkpoint:")] + "checkpoint: " + text[len(text)-32:],
		"no nonce":              text[:len(text)-33],
		"a short nonce":         text[:len(text)-2],
		"a field more":          text[:len(text)-32] + "x:y " + text[len(text)-32:],
		"an offered version":    moduleText(1),
		"a time of another day": strings.Replace(text, "T", "U", 1),
	} {
		if got, err := ParseSuccession(wrong); err == nil {
			t.Errorf("%s: it is %+v", rule, got)
		}
	}
	for _, not := range []string{"", "hello\n", "a\n1\nAA\n\n— a b\n"} {
		if _, err := NewSuccession([]byte(not)); err == nil {
			t.Errorf("%q is a checkpoint", not)
		}
	}
}

// Of two that begin a log in place of the same one, both succeed if the first entry is of the same
// checkpoint.
func TestTwoSuccessionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		succession := func(size int64) Succession {
			signed, err := Checkpoint{Origin: "old.example.com/log", Size: size}.Sign(testSigner)
			if err != nil {
				t.Fatal(err)
			}
			s, err := NewSuccession(signed)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		for _, size := range []int64{52, 53} {
			m := newMemory()
			a := &access{memory: m, before: func(o operation) error {
				if o.does == "create" {
					m.files[o.name] = EncodeBundle([]string{succession(52).String()})
				}
				return nil
			}}
			if err := StoreSuccession(t.Context(), a, succession(size)); errors.Is(err, fs.ErrExist) != (size == 53) || size == 52 && err != nil {
				t.Errorf("after another one of 52 entries, one of %d says %v", size, err)
			}
		}
	})
}

func TestALogThatContinuesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		a := &access{memory: m}
		signed, err := Checkpoint{Origin: "old.example.com/log", Size: 52}.Sign(testSigner)
		if err != nil {
			t.Fatal(err)
		}
		other, err := Checkpoint{Origin: "old.example.com/log", Size: 53}.Sign(testSigner)
		if err != nil {
			t.Fatal(err)
		}
		// The name of the signer is not the log's, so that the checkpoint is not verified.
		for _, c := range [][]byte{signed, signed} {
			s, err := NewSuccession(c)
			if err == nil {
				err = StoreSuccession(t.Context(), a, s)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if s, err := NewSuccession(other); err != nil || !errors.Is(StoreSuccession(t.Context(), a, s), fs.ErrExist) {
			t.Errorf("another log is continued, too: %v", err)
		}
		l := open(t, m)
		defer l.Close()
		mustAppend(t, l, leavesFrom(0, 300)...)
		time.Sleep(time.Second)
		found, err := l.Succession(t.Context(), l.Head())
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseLookup(found.String())
		if err != nil {
			t.Fatal(err)
		}
		if c, err := again.Check(origin, optionsFor(a).Verifiers...); err != nil || c.Size != 301 || again.Entries[0].Proof.Index != 0 {
			t.Errorf("it is %+v, %v", again, err)
		}
		if h, err := Fsck(t.Context(), optionsFor(a)); err != nil || len(h.Faults)+len(h.Notes) > 0 || h.Signed != 301 {
			t.Errorf("fsck says %+v, %v", h, err)
		}
		plain := newMemory()
		began := open(t, plain)
		defer began.Close()
		for range 2 {
			if _, err := began.Succession(t.Context(), began.Head()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("of a log without one: %v", err)
			}
			mustAppend(t, began, moduleLeaf(1))
		}
	})
}
