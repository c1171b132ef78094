package vault

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

func newLog(t *testing.T) (*values, Log) {
	t.Helper()
	storage := newValues()
	l := Log{Files: folderIn(new(treetest.Bucket)), Storage: storage, Origin: origin}
	if err := appendTo(t, l, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	return storage, l
}

// lines returns the keys that sign, the newest first.
func lines(keys []tlog.PublicKey) (lines []string) {
	for _, k := range keys {
		lines = append(lines, k.Line)
	}
	return lines
}

// checkSigned checks which keys have signed the newest checkpoint, and are told.
func checkSigned(t *testing.T, when string, log *tlog.Log, want ...string) {
	t.Helper()
	if err := log.Refresh(t.Context()); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	if told := lines(log.Public()); !slices.Equal(told, want) {
		t.Errorf("%s, the keys are %q, want %q", when, told, want)
	}
	var signatures int
	for line := range strings.Lines(string(log.Head().Signed)) {
		if strings.HasPrefix(line, "— ") {
			signatures++
		}
	}
	if signatures != len(want) {
		t.Errorf("%s, it has %d signatures, want %d", when, signatures, len(want))
	}
}

func TestRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := newLog(t)
		before, err := open(t, l)
		if err != nil {
			t.Fatal(err)
		}
		first := before.Public()[0].Line
		checkSigned(t, "at first", before, first)

		rotated := time.Now()
		keys, err := l.Rotate(t.Context())
		if err != nil || len(keys.Public) != 2 || keys.Public[1].Line != first || !keys.Public[0].Until.IsZero() {
			t.Fatalf("the keys are %+v, %v", keys.Public, err)
		}
		second := keys.Public[0].Line
		if until := rotated.Add(overlap).Truncate(time.Second); !keys.Public[1].Until.Equal(until) {
			t.Errorf("the first key signs until %v, want %v", keys.Public[1].Until, until)
		}
		checkSigned(t, "in an instance that runs", before, second, first)
		if err := appendTo(t, l, "2.0.0"); err != nil {
			t.Error(err)
		}
		checkSigned(t, "after another instance has added to it", before, second, first)

		time.Sleep(overlap / 2)
		if keys, err = l.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		third := keys.Public[0].Line
		checkSigned(t, "with a third key", before, third, second, first)
		time.Sleep(overlap/2 + time.Minute)
		if err := appendTo(t, l, "3.0.0"); err != nil {
			t.Error(err)
		}
		checkSigned(t, "when the first key has ceased", before, third, second)
		time.Sleep(overlap)
		if err := appendTo(t, l, "4.0.0"); err != nil {
			t.Error(err)
		}
		checkSigned(t, "when the second key has ceased", before, third)

		after, err := open(t, l)
		if err != nil {
			t.Fatal(err)
		}
		checkSigned(t, "in an instance that starts", after, third)
	})
}

// Servers are handed the new key before it signs.
func TestRotateConfiguredKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		private, next := privateKey(t), privateKey(t)
		storage := newValues()
		l := Log{Files: folderIn(new(treetest.Bucket)), Storage: storage, Origin: origin, Private: private}
		log, err := open(t, l)
		if err != nil {
			t.Fatal(err)
		}
		first := log.Public()[0].Line
		if _, err := l.Rotate(t.Context()); err == nil || !strings.Contains(err.Error(), "has no other key") {
			t.Errorf("without another key it says %v", err)
		}
		both := l
		both.Private = private + "\n" + next
		running, err := open(t, both)
		if err != nil {
			t.Fatal(err)
		}
		checkSigned(t, "with a key that does not sign yet", running, first)
		keys, err := both.Rotate(t.Context())
		if err != nil || len(keys.Public) != 2 || keys.Public[1].Line != first {
			t.Fatalf("the keys are %v, %v", keys.Public, err)
		}
		checkSigned(t, "afterwards", running, keys.Public[0].Line, first)
		if err := log.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "add its private key as a line to the file, and reload") {
			t.Errorf("an instance without the key says %v", err)
		}
		l.Private = next
		if _, err := l.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "add its private key as a line to the file, and reload") {
			t.Errorf("with the new key alone it says %v", err)
		}
		if keys := storage.keys(); len(keys) > 0 {
			t.Errorf("Caddy's storage has the private keys %q", keys)
		}
	})
}

// A generated key is followed by one in a file.
func TestRotateToAConfiguredKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := newLog(t)
		l.Private = privateKey(t)
		if _, err := l.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "the log was begun with another key") {
			t.Errorf("before it says %v", err)
		}
		keys, err := l.Rotate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		log, err := open(t, l)
		if err != nil {
			t.Fatal(err)
		}
		checkSigned(t, "afterwards", log, lines(keys.Public)...)
	})
}

// Whatever fails, the log can be signed, by the keys before or with the new one.
func TestRotateWhileTheStorageFails(t *testing.T) {
	failures := 0
	for n := 0; ; n++ {
		done := false
		synctest.Test(t, func(t *testing.T) {
			storage, l := newLog(t)
			calls := 0
			storage.before = func(does, key string) error {
				if calls++; calls == n+1 {
					return fmt.Errorf("%s %s fails", does, key)
				}
				return nil
			}
			_, err := l.Rotate(t.Context())
			if storage.before = nil; calls <= n {
				done = true
				return
			}
			if err != nil {
				failures++
			}
			log, opened := open(t, l)
			if opened != nil {
				t.Fatalf("call %d (%v): it says %v", n, err, opened)
			}
			signing := len(log.Public())
			if err == nil && signing != 2 {
				t.Errorf("call %d: %d keys sign", n, signing)
			}
			checkSigned(t, fmt.Sprintf("call %d (%v)", n, err), log, lines(log.Public())...)
		})
		if done {
			break
		}
	}
	if failures < 4 {
		t.Errorf("it failed %d times", failures)
	}
}

func TestTwoRotateAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage, l := newLog(t)
		second := make(chan error, 1)
		storage.before = func(does, key string) error {
			if does == "store" && key == laterKeys {
				storage.before = nil
				go func() {
					_, err := l.Rotate(t.Context())
					second <- err
				}()
				synctest.Wait()
			}
			return nil
		}
		_, first := l.Rotate(t.Context())
		if other := <-second; (first == nil) == (other == nil) {
			t.Errorf("one says %v, the other one %v", first, other)
		}
		log, err := open(t, l)
		if err != nil {
			t.Fatal(err)
		}
		if keys := storage.keys(); len(log.Public()) != 2 || len(keys) != 2 {
			t.Errorf("%d keys sign, and Caddy's storage has the keys %q", len(log.Public()), keys)
		}
	})
}

func TestKeysThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage, l := newLog(t)
		if _, err := l.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		name := l.name(laterKeys)
		whole := string(storage.values[name])
		for _, damaged := range []string{"hello", whole[:len(whole)/2], strings.Replace(whole, " 2", " x", 1), strings.ReplaceAll(whole, origin, "other.example.com"), "\n"} {
			if err := storage.Store(t.Context(), name, []byte(damaged)); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "is damaged: restore it") {
				t.Errorf("%q: it says %v", damaged, err)
			}
		}
		if err := storage.Store(t.Context(), name, []byte(whole)); err != nil {
			t.Fatal(err)
		}
		values := maps.Clone(storage.values)
		for _, key := range storage.keys() {
			storage.values = maps.Clone(values)
			if err := storage.Delete(t.Context(), l.name(key)); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "is gone: restore") {
				t.Errorf("without %s it says %v", key, err)
			}
		}
		storage.values = maps.Clone(values)
		if err := storage.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Open(t.Context()); err != nil {
			t.Errorf("while nothing is signed by the later key, it says %v", err)
		}
		storage.values = maps.Clone(values)
		running, err := open(t, l)
		if err != nil {
			t.Fatal(err)
		}
		if err := running.Refresh(t.Context()); err != nil { // signs by both
			t.Fatal(err)
		}
		if err := storage.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		for when, err := range map[string]error{"reading": second(l.Read(t.Context())), "opening": second(l.Open(t.Context()))} {
			if err == nil || !strings.Contains(err.Error(), "the log is signed by a later key, and") {
				t.Errorf("when the keys are gone, %s says %v", when, err)
			}
		}
		if err := running.Refresh(t.Context()); err != nil || string(storage.values[name]) != whole {
			t.Errorf("an instance that has read the keys before says %v, and stores %q", err, storage.values[name])
		}
		storage.values = values
		storage.before = func(_, key string) error {
			if key == laterKeys {
				return errors.New("it fails")
			}
			return nil
		}
		if _, err := l.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "loading the keys of the log") {
			t.Errorf("a storage that fails is no storage without keys: it says %v", err)
		}
	})
}

func second(_ tlog.Options, err error) error { return err }

func TestNoMoreKeysThanAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := newLog(t)
		for range tlog.MaxKeys - 1 {
			if _, err := l.Rotate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Rotate(t.Context()); err == nil || !strings.Contains(err.Error(), "wait until") {
			t.Errorf("it says %v", err)
		}
	})
}
