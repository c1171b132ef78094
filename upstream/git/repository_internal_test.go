package git

import (
	"context"
	"errors"
	"os"
	"testing"
)

func TestCredentialsAreCutOutOfURLs(t *testing.T) {
	for _, test := range []struct{ url, bare, credentials string }{
		{"https://example.com/a.git", "https://example.com/a.git", ""},
		{"https://token@example.com/a.git", "https://example.com/a.git", "token"},
		{"https://user:pass@example.com:8443/a@b.git", "https://example.com:8443/a@b.git", "user:pass"},
		{"https://user:p@ss@example.com", "https://example.com", "user:p@ss"},
		{"git@example.com:acme/a.git", "git@example.com:acme/a.git", ""},
	} {
		if bare, credentials := cutCredentials(test.url); bare != test.bare || credentials != test.credentials {
			t.Errorf("%s: got %s and %s", test.url, bare, credentials)
		}
	}
}

// A git that hangs ends with its caller.
func TestGitEndsWithItsContext(t *testing.T) {
	if !Available() {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no git")
		}
		t.Skip("there is no git")
	}
	ctx, cancel := context.WithCancel(t.Context())
	repository, err := Connect(ctx, "https://example.com/a.git", t.TempDir()+"/repository")
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe() // never written to, so git waits
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	done := make(chan error, 1)
	go func() { done <- repository.run(ctx, r, "cat-file", "--batch-check") }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzSaid(f *testing.F) {
	f.Add("hint: x\nfatal: y\x1b[2J\n\xff")
	f.Fuzz(func(t *testing.T, messages string) {
		if got := messageLine(messages); printable(got) != got {
			t.Errorf("%q has characters that are not printed", got)
		}
	})
}
