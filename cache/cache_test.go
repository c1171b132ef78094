package cache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/cache"
)

// overhead is added to the size of each value.
const overhead = 512

func TestWhatIsKept(t *testing.T) {
	size := func(v int) int { return v }
	type ints = cache.Cache[string, int]
	put := func(key string, value int) func(*ints) {
		return func(c *ints) { c.Put(key, value, cache.UntilEvicted) }
	}
	putFor := func(key string, value int, life time.Duration) func(*ints) {
		return func(c *ints) { c.Put(key, value, life) }
	}
	get := func(key string) func(*ints) { return func(c *ints) { c.Get(key) } }
	pass := func(d time.Duration) func(*ints) { return func(*ints) { time.Sleep(d) } }
	tests := []struct {
		rule  string
		cache *ints
		do    []func(*ints)
		want  string // keys and values
	}{
		{"nothing at first", &ints{}, nil, ""},
		{"a value that was put", &ints{}, []func(*ints){put("a", 1)}, "a1"},
		{"the last of several for one key", &ints{}, []func(*ints){put("a", 1), put("a", 2)}, "a2"},
		{"no value that was removed", &ints{}, []func(*ints){put("a", 1), put("b", 2), func(c *ints) { c.Remove("a") }}, "b2"},
		{"nothing is removed from an empty cache", &ints{}, []func(*ints){func(c *ints) { c.Remove("a") }}, ""},

		{"the first of several that are put if there is none", &ints{}, []func(*ints){
			func(c *ints) { c.PutIfAbsent("a", 1, cache.UntilEvicted) },
			func(c *ints) { c.PutIfAbsent("a", 2, cache.UntilEvicted) },
		}, "a1"},
		{"another in place of one whose life has ended", &ints{}, []func(*ints){
			putFor("a", 1, time.Minute), pass(time.Minute),
			func(c *ints) { c.PutIfAbsent("a", 2, cache.UntilEvicted) },
		}, "a2"},

		{"as many values as are allowed", &ints{MaxEntries: 2}, []func(*ints){put("a", 1), put("b", 2), put("c", 3)}, "b2 c3"},
		{"the values used last", &ints{MaxEntries: 2}, []func(*ints){put("a", 1), put("b", 2), get("a"), put("c", 3)}, "a1 c3"},
		{"as many bytes as are allowed, with what values take besides", &ints{MaxBytes: 3*overhead + 99, Size: size},
			[]func(*ints){put("a", 30), put("b", 31), put("c", 32), put("d", 33)}, "b31 c32 d33"},
		{"a value that is replaced counts once", &ints{MaxBytes: 2*overhead + 100, Size: size},
			[]func(*ints){put("a", 40), put("b", 40), put("b", 50), put("b", 60)}, "a40 b60"},
		{"one that is removed does not count", &ints{MaxBytes: 2*overhead + 100, Size: size},
			[]func(*ints){put("a", 50), put("b", 50), func(c *ints) { c.Remove("a") }, put("c", 50)}, "b50 c50"},
		{"one whose life has ended does not count once it was asked for", &ints{MaxBytes: 2*overhead + 100, Size: size},
			[]func(*ints){put("a", 50), putFor("b", 50, time.Minute), pass(time.Minute), get("b"), put("c", 50)}, "a50 c50"},
		{"no value that is too large on its own, and others stay", &ints{MaxBytes: 2*overhead + 100, Size: size},
			[]func(*ints){put("a", 1), put("b", 2*overhead)}, "a1"},
		{"nothing of a key whose new value is too large", &ints{MaxBytes: 2*overhead + 100, Size: size},
			[]func(*ints){put("a", 1), put("a", 2*overhead)}, ""},
		{"both bounds count", &ints{MaxEntries: 2, MaxBytes: 9 * overhead, Size: size},
			[]func(*ints){put("a", 1), put("b", 2), put("c", 3)}, "b2 c3"},

		{"a value during its life", &ints{}, []func(*ints){putFor("a", 1, time.Minute), pass(time.Minute - 1)}, "a1"},
		{"no value after its life", &ints{}, []func(*ints){putFor("a", 1, time.Minute), pass(time.Minute)}, ""},
		{"each value for its own life", &ints{}, []func(*ints){putFor("a", 1, time.Minute), putFor("b", 2, time.Hour), put("c", 3), pass(time.Minute)}, "b2 c3"},
		{"a value that is put again begins another life", &ints{}, []func(*ints){
			putFor("a", 1, time.Minute), pass(time.Minute - 1), putFor("a", 2, time.Minute), pass(time.Minute - 1),
		}, "a2"},
		{"no value whose life is over when it is put", &ints{}, []func(*ints){put("a", 1), putFor("a", 2, 0), put("b", 1), putFor("b", 2, -time.Second)}, ""},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, do := range test.do {
					do(test.cache)
				}
				var got []string
				for _, key := range []string{"a", "b", "c", "d"} {
					if v, ok := test.cache.Get(key); ok {
						got = append(got, fmt.Sprint(key, v))
					}
				}
				if s := strings.Join(got, " "); s != test.want {
					t.Errorf("%q is kept, want %q", s, test.want)
				}
			})
		})
	}
}

func TestTheZeroCacheIsBounded(t *testing.T) {
	var c cache.Cache[int, int]
	for i := range 5000 {
		c.Put(i, i, cache.UntilEvicted)
	}
	for i := range 5000 {
		if _, ok := c.Get(i); ok != (i >= 5000-4096) {
			t.Fatalf("value %d is kept: %t", i, ok)
		}
	}
}

func TestPutIfAbsentReturnsWhatIsKept(t *testing.T) {
	var c cache.Cache[string, int]
	first, second := c.PutIfAbsent("a", 1, cache.UntilEvicted), c.PutIfAbsent("a", 2, cache.UntilEvicted)
	if first != 1 || second != 1 {
		t.Errorf("got %d and %d", first, second)
	}
}

// loads count how often a value is loaded, and hold each load until it is let go.
type loads struct {
	begun   int
	release chan struct{}
}

func (l *loads) load(context.Context) (string, time.Duration, error) {
	l.begun++
	n := l.begun
	<-l.release
	return fmt.Sprint("value ", n), cache.UntilEvicted, nil
}

// A waiting caller of Load.
type caller struct {
	leave context.CancelFunc
	got   string
	err   error
	done  bool
}

func (l *loads) call(t *testing.T, c *cache.Cache[string, string], key string) *caller {
	ctx, leave := context.WithCancel(t.Context())
	one := &caller{leave: leave}
	go func() {
		one.got, one.err = c.Load(ctx, key, l.load)
		one.done = true
	}()
	synctest.Wait()
	return one
}

func TestCallersShareOneLoad(t *testing.T) {
	tests := []struct {
		rule string
		do   func(t *testing.T, c *cache.Cache[string, string], l *loads)
	}{
		{"all get its value, and it is kept", func(t *testing.T, c *cache.Cache[string, string], l *loads) {
			var all [5]*caller
			for i := range all {
				all[i] = l.call(t, c, "a")
			}
			close(l.release)
			synctest.Wait()
			for i, one := range all {
				if one.got != "value 1" || one.err != nil {
					t.Errorf("caller %d got %q, %v", i, one.got, one.err)
				}
			}
			if later := l.call(t, c, "a"); later.got != "value 1" || l.begun != 1 {
				t.Errorf("later it is %q, after %d loads", later.got, l.begun)
			}
		}},
		{"one for each key", func(t *testing.T, c *cache.Cache[string, string], l *loads) {
			a, b := l.call(t, c, "a"), l.call(t, c, "b")
			close(l.release)
			synctest.Wait()
			if a.got != "value 1" || b.got != "value 2" {
				t.Errorf("got %q and %q", a.got, b.got)
			}
		}},
		{"a caller that leaves waits no longer, the others do", func(t *testing.T, c *cache.Cache[string, string], l *loads) {
			first, second := l.call(t, c, "a"), l.call(t, c, "a")
			first.leave()
			synctest.Wait()
			if !errors.Is(first.err, context.Canceled) || second.done {
				t.Errorf("the first got %v, the second has ended: %t", first.err, second.done)
			}
			close(l.release)
			synctest.Wait()
			if second.got != "value 1" || l.begun != 1 {
				t.Errorf("the second got %q, after %d loads", second.got, l.begun)
			}
		}},
		{"one that has left begins none", func(t *testing.T, c *cache.Cache[string, string], l *loads) {
			ctx, leave := context.WithCancel(t.Context())
			leave()
			if _, err := c.Load(ctx, "a", l.load); !errors.Is(err, context.Canceled) || l.begun != 0 {
				t.Errorf("got %v, after %d loads", err, l.begun)
			}
		}},
		{"a load for which nobody waits is not joined, and its value is not kept", func(t *testing.T, c *cache.Cache[string, string], l *loads) {
			first := l.call(t, c, "a")
			first.leave()
			synctest.Wait()
			second := l.call(t, c, "a")
			l.release <- struct{}{} // the first load
			synctest.Wait()
			if _, ok := c.Get("a"); ok || second.done {
				t.Error("the value of the first load is used")
			}
			close(l.release)
			synctest.Wait()
			if second.got != "value 2" {
				t.Errorf("got %q", second.got)
			}
		}},
		{"a value that is put meanwhile is returned at once", func(t *testing.T, c *cache.Cache[string, string], l *loads) {
			l.call(t, c, "a")
			c.Put("a", "put", cache.UntilEvicted)
			if other := l.call(t, c, "a"); other.got != "put" {
				t.Errorf("got %q", other.got)
			}
			close(l.release)
		}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.do(t, new(cache.Cache[string, string]), &loads{release: make(chan struct{})})
			})
		})
	}
}

func TestALoadIsCancelledWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type valueKey struct{}
		var c cache.Cache[string, int]
		ended := false
		load := func(ctx context.Context) (int, time.Duration, error) {
			if ctx.Value(valueKey{}) != "first" {
				t.Error("it does not have the values of the first caller's context")
			}
			<-ctx.Done()
			ended = true
			return 0, 0, ctx.Err()
		}
		var leave []context.CancelFunc
		for _, name := range []string{"first", "second"} {
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, name))
			leave = append(leave, cancel)
			go c.Load(ctx, "a", load)
			synctest.Wait()
		}
		for i, want := range []bool{false, true} {
			leave[i]()
			synctest.Wait()
			if ended != want {
				t.Errorf("after %d have left it has ended: %t", i+1, ended)
			}
		}
	})
}

func TestWhatALoadReturns(t *testing.T) {
	failed := errors.New("it failed")
	tests := []struct {
		rule string
		load func(context.Context) (int, time.Duration, error)
		err  string
		kept time.Duration // how long the value is kept
	}{
		{"a value is kept for its life",
			func(context.Context) (int, time.Duration, error) { return 1, time.Minute, nil }, "", time.Minute},
		{"or not at all",
			func(context.Context) (int, time.Duration, error) { return 1, 0, nil }, "", 0},
		{"an error is not kept",
			func(context.Context) (int, time.Duration, error) { return 1, time.Minute, failed }, "it failed", 0},
		{"a panic is an error",
			func(context.Context) (int, time.Duration, error) { panic("out of range") }, "loading panicked: out of range", 0},
		{"a load that does not return is an error",
			func(context.Context) (int, time.Duration, error) { runtime.Goexit(); return 1, time.Minute, nil }, "loading ended without a value", 0},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c cache.Cache[string, int]
				v, err := c.Load(t.Context(), "a", test.load)
				if text := fmt.Sprint(err); test.err == "" && (v != 1 || err != nil) || test.err != "" && text != test.err {
					t.Errorf("got %d, %v", v, err)
				}
				if _, ok := c.Get("a"); ok != (test.kept > 0) {
					t.Errorf("it is kept: %t", ok)
				}
				time.Sleep(test.kept)
				if _, ok := c.Get("a"); ok {
					t.Error("it is kept for longer")
				}
			})
		})
	}
}

// A value of an unknown author may be one whose size cannot be told.
func TestALoadWhoseSizePanics(t *testing.T) {
	c := cache.Cache[string, int]{MaxBytes: 1 << 20, Size: func(int) int { panic("out of range") }}
	_, err := c.Load(t.Context(), "a", func(context.Context) (int, time.Duration, error) { return 1, time.Minute, nil })
	if fmt.Sprint(err) != "loading panicked: out of range" {
		t.Errorf("the error is %v", err)
	}
}

// An interface is kept like any other value, also a nil one.
func TestAnErrorAsAValue(t *testing.T) {
	var c cache.Cache[string, error]
	failed := errors.New("it failed")
	c.Put("a", failed, time.Minute)
	c.Put("b", nil, time.Minute)
	for key, want := range map[string]error{"a": failed, "b": nil} {
		if got, ok := c.Get(key); got != want || !ok {
			t.Errorf("%s is %v, kept: %t", key, got, ok)
		}
	}
	if got, ok := c.Get("c"); got != nil || ok {
		t.Errorf("a key without a value has %v, kept: %t", got, ok)
	}
}

func TestRenew(t *testing.T) {
	var c cache.Cache[string, int]
	fresh := func(v int) bool { return v >= 2 }
	var known []int
	renew := func() int {
		v, err := c.Renew(t.Context(), "a", fresh, func(_ context.Context, before int) (int, time.Duration, error) {
			known = append(known, before)
			return before + 1, cache.UntilEvicted, nil
		})
		if err != nil {
			t.Error(err)
		}
		return v
	}
	for i, want := range []int{1, 2, 2} { // 1 is out of date, 2 is fresh
		if got := renew(); got != want {
			t.Errorf("call %d got %d, want %d", i+1, got, want)
		}
	}
	if fmt.Sprint(known) != "[0 1]" {
		t.Errorf("the loads were given %d", known)
	}
}

// A caller shares a load that others have begun only if its value is fresh for the caller.
func TestRenewSharesNoLoadThatIsOutOfDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cache.Cache[string, int]
		begun, release := 0, make(chan struct{})
		renew := func(want int) (got *int) {
			got = new(int)
			go func() {
				fresh := func(v int) bool { return v == want }
				var err error
				*got, err = c.Renew(t.Context(), "a", fresh, func(context.Context, int) (int, time.Duration, error) {
					begun++
					<-release
					return want, cache.UntilEvicted, nil
				})
				if err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
			return got
		}
		first, same, later, laterToo := renew(1), renew(1), renew(2), renew(2)
		release <- struct{}{}
		synctest.Wait()
		if *first != 1 || *same != 1 || *later != 0 || *laterToo != 0 {
			t.Errorf("after the first load the callers have %d, %d, %d and %d", *first, *same, *later, *laterToo)
		}
		close(release)
		synctest.Wait()
		if *later != 2 || *laterToo != 2 || begun != 2 {
			t.Errorf("those who wanted 2 got %d and %d, after %d loads", *later, *laterToo, begun)
		}
	})
}

// Callers, evictions and lives at the same time, for the race detector.
func TestConcurrentUse(t *testing.T) {
	c := cache.Cache[int, int]{MaxEntries: 8, MaxBytes: 8 << 10, Size: func(int) int { return 8 }}
	var all sync.WaitGroup
	for caller := range 8 {
		all.Go(func() {
			for i := range 500 {
				key := (i + caller) % 16
				switch i % 5 {
				case 0:
					c.Put(key, key, time.Millisecond)
				case 1:
					c.Remove(key)
				case 2:
					c.PutIfAbsent(key, key, cache.UntilEvicted)
				default:
					ctx, leave := context.WithCancel(t.Context())
					if i%7 == 0 {
						go leave()
					}
					v, err := c.Load(ctx, key, func(context.Context) (int, time.Duration, error) { return key, cache.UntilEvicted, nil })
					if leave(); err == nil && v != key {
						t.Errorf("of %d it is %d", key, v)
					}
				}
			}
		})
	}
	all.Wait()
}
