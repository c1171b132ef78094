package pages

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"
)

// The page goes on when the request that has begun it ends.
func TestAPageIsMadeOnceForAllWhoAskAtOnce(t *testing.T) {
	shared := siteOf(t, snapshotOf(t, siteTree(t)))
	synctest.Test(t, func(t *testing.T) {
		s := &Site{Registry: shared.Registry}
		s.once.Do(func() { s.writing = make(chan struct{}, 1) })
		s.writing <- struct{}{} // a README waits for its turn
		ctx, leave := context.WithCancel(t.Context())
		ask := func(ctx context.Context) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			go s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/modules/acme/vpc/aws", nil))
			synctest.Wait()
			return w
		}
		first, second := ask(ctx), ask(t.Context())
		leave()
		synctest.Wait()
		if first.Code != http.StatusServiceUnavailable {
			t.Errorf("the first, which has left, gets %d", first.Code)
		}
		if second.Body.Len() > 0 {
			t.Error("the second did not wait")
		}
		<-s.writing
		synctest.Wait()
		s.writing <- struct{}{} // whatever has to be made now, waits
		third := ask(t.Context())
		if second.Code != http.StatusOK || third.Code != http.StatusOK || third.Body.String() != second.Body.String() {
			t.Errorf("the second gets %d, the third %d", second.Code, third.Code)
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
