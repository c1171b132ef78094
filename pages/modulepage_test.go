package pages

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Descriptions are rendered in turn, as READMEs are, and only as long as the visitor waits.
func TestDescriptionsAreRenderedInTurn(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	site := &Site{writing: make(chan struct{}, maxRendered)}
	request := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
	m := &moduleView{visit: &visit{site: site, request: request}}
	err := m.describe(func(render func(string) prose) {
		if len(site.writing) != 1 {
			t.Error("descriptions take no turn")
		}
		if render("a") == "" {
			t.Error("a description is not rendered")
		}
		leave()
		if got := render("a"); got != "" {
			t.Errorf("a visitor who has left gets %s", got)
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the page is answered although descriptions are missing: %v", err)
	}
	if len(site.writing) != 0 {
		t.Error("the turn is not given back")
	}
}
