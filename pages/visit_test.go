package pages

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
)

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
