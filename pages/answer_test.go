package pages

import (
	"context"
	"errors"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"
)

func TestAPageIsMadeOnceForAllWhoAskAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages, key := newSnapshotPages(nil), pageKey{base: "a page"}
		a, done, err := pages.begin(t.Context(), key)
		if a != nil || err != nil {
			t.Fatal(a, err)
		}
		var got [10]*answer
		for i := range got {
			go func() { got[i], _, _ = pages.begin(t.Context(), key) }()
		}
		left, cancel := context.WithCancel(t.Context())
		var gone error
		go func() { _, _, gone = pages.begin(left, key) }()
		synctest.Wait()
		if cancel(); got != [10]*answer{} {
			t.Error("somebody did not wait")
		}
		synctest.Wait()
		if !errors.Is(gone, context.Canceled) {
			t.Errorf("who has left waits on: %v", gone)
		}
		made := &answer{body: []byte("it")}
		pages.put(key, made)
		done()
		synctest.Wait()
		for i, a := range got {
			if a != made {
				t.Errorf("%d: %v", i, a)
			}
		}
	})
}

func TestAPageThatIsNotKeptIsMadeByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages, key := newSnapshotPages(nil), pageKey{base: "a page"}
		_, done, _ := pages.begin(t.Context(), key)
		finished := 0
		for range 3 {
			go func() {
				if _, done, _ := pages.begin(t.Context(), key); done != nil {
					finished++
					done()
				}
			}()
		}
		synctest.Wait()
		done()
		synctest.Wait()
		if finished != 3 || len(pages.making) != 0 {
			t.Errorf("%d have made it, %d still do", finished, len(pages.making))
		}
	})
}

// A new string in a route or a query must be cloned too.
func TestClonedKeysShareNoString(t *testing.T) {
	request := strings.Repeat("x", 64)
	var strung func(v reflect.Value, do func(path string, s *string), path string)
	strung = func(v reflect.Value, do func(path string, s *string), path string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				strung(v.Field(i), do, path+"."+v.Type().Field(i).Name)
			}
		case reflect.String:
			do(path, (*string)(v.Addr().UnsafePointer()))
		}
	}
	var key pageKey
	strung(reflect.ValueOf(&key).Elem(), func(_ string, s *string) { *s = request[:8] }, "key")
	clone := key.clone()
	if clone != key {
		t.Fatalf("%+v is cloned as %+v", key, clone)
	}
	strung(reflect.ValueOf(&clone).Elem(), func(path string, s *string) {
		if unsafe.StringData(*s) == unsafe.StringData(request) {
			t.Errorf("%s is a part of the request", path)
		}
	}, "key")
}

func TestTextsAreRenderedInTurn(t *testing.T) {
	s := &Site{writing: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visit{site: s, request: r}
	if d, err := v.document(markdown.Text{Source: "x"}); err != nil || d.HTML != "<p>x</p>\n" {
		t.Errorf("%q, %v", d.HTML, err)
	}
	s.writing <- struct{}{}
	cancel()
	if _, err := v.document(markdown.Text{Source: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("it did not wait: %v", err)
	}
}
