package handlers

import (
	"fmt"
	"testing"
)

func TestDocumentCache(t *testing.T) {
	const size = 1000
	newCache := func() *documentCache[string, []byte] {
		return newDocumentCache[string](10*(size+documentOverhead), func(b []byte) int { return len(b) })
	}
	t.Run("the documents used last are kept, up to a number of bytes", func(t *testing.T) {
		c := newCache()
		for i := range 100 {
			c.put(fmt.Sprint(i), make([]byte, size))
			if _, ok := c.get("0"); !ok {
				t.Fatalf("a document that is used all the time is gone after %d others", i)
			}
		}
		for i := 1; i < 100; i++ {
			if _, ok := c.get(fmt.Sprint(i)); ok != (i > 90) {
				t.Errorf("document %d is kept: %v", i, ok)
			}
		}
	})
	t.Run("a document that is replaced counts once", func(t *testing.T) {
		c := newCache()
		for range 100 {
			c.put("same", make([]byte, size))
		}
		if want := size + documentOverhead; c.bytes != want {
			t.Errorf("it counts %d bytes, want %d", c.bytes, want)
		}
	})
	t.Run("a document that is too large is not kept", func(t *testing.T) {
		c := newCache()
		c.put("large", make([]byte, 20*size))
		if _, ok := c.get("large"); ok || c.bytes != 0 {
			t.Errorf("%d bytes are kept", c.bytes)
		}
	})
}
