package upstream_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// An origin that is down gets no requests until the pause is over, and then one.
func TestBreaker(t *testing.T) {
	s := newAcme(t)
	s.Fault(versions, status(501))
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		fails := func(requested bool) {
			t.Helper()
			before := s.Count(versions)
			_, err := c.Versions(background(), demo)
			mustFail(t, err, upstream.ErrUnavailable, "")
			if (s.Count(versions) > before) != requested {
				t.Errorf("requested: %v", !requested)
			}
		}
		for range upstream.FailuresInARow {
			fails(true)
		}
		fails(false)
		time.Sleep(upstream.BreakerPause + time.Millisecond)
		fails(true)
		fails(false)
		s.Fault(versions, nil)
		fails(false)
		time.Sleep(upstream.BreakerPause + time.Millisecond)
		if _, err := c.Versions(background(), demo); err != nil {
			t.Error(err)
		}
	})
}

// A service on a host of its own that is down says nothing about the other hosts of the origin.
func TestEachHostHasABreaker(t *testing.T) {
	s := newAcme(t)
	s.ModuleService("/x.zip")
	s.Fault(moduleVersions, status(501))
	s.InBubble(t, upstream.Origin{ModulesURL: "https://modules.example.com/v1/modules"}, func(t *testing.T, c *upstream.Client) {
		for range upstream.FailuresInARow + 1 {
			_, err := c.Versions(background(), vpc)
			mustFail(t, err, upstream.ErrUnavailable, "")
		}
		if n := s.Count(moduleVersions); n != upstream.FailuresInARow {
			t.Errorf("the host that is down was asked %d times", n)
		}
		if _, err := c.Versions(background(), demo); err != nil {
			t.Errorf("the host of the providers: %v", err)
		}
	})
}

func TestFailuresThatDoNotOpenTheBreaker(t *testing.T) {
	for rule, answer := range map[string]http.HandlerFunc{
		"404": status(404), "401": status(401), "422": status(422), "garbage": body("?"),
	} {
		t.Run(rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(versions, answer)
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				for range 10 {
					c.Versions(background(), demo)
				}
				if n := s.Count(versions); n != 10 {
					t.Errorf("got %d requests", n)
				}
			})
		})
	}
	t.Run("callers who cancel", func(t *testing.T) {
		s := newAcme(t)
		s.Fault(versions, upstreamtest.Silence)
		s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
			for range 10 {
				ctx, cancel := context.WithTimeout(background(), time.Second)
				_, err := c.Versions(ctx, demo)
				mustFail(t, err, context.DeadlineExceeded, "")
				cancel()
			}
			if n := s.Count(versions); n != 10 {
				t.Errorf("got %d requests", n)
			}
		})
	})
}
