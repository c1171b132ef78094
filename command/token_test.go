package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

func TestTokenNew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	out, notes, err := commandtest.Run(t.Context(), tokenCommand(), "new", "ci", "--file", file, "--group", "dev", "--group", "ops,release", "--expires", "90d")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^tfr_[A-Z0-9]+\n$`).MatchString(out) {
		t.Errorf("got %q, want the token alone", out)
	}
	secret := strings.TrimSpace(out)
	for _, part := range []string{"export TF_TOKEN_registry_example_com=", `credentials "registry.example.com"`, "not shown again", "Created " + file} {
		if !strings.Contains(notes, part) {
			t.Errorf("got notes\n%s\nwant %q in them", notes, part)
		}
	}
	if strings.Contains(notes, secret) {
		t.Errorf("the notes have the token in them:\n%s", notes)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), secret) {
		t.Errorf("the file has the token in it:\n%s", content)
	}
	tokens, errs := tokenfile.Parse(content)
	if errs != nil {
		t.Fatal(errs)
	}
	if s, err := tokens.Find(secret, time.Now().AddDate(0, 0, 89)); err != nil || s.ID != "ci" || strings.Join(s.Groups, " ") != "dev ops release" {
		t.Errorf("after 89 days: got %+v and error %v", s, err)
	}
	if _, err := tokens.Find(secret, time.Now().AddDate(0, 0, 91)); err == nil {
		t.Error("it is good after 91 days")
	}

	_, notes, err = commandtest.Run(t.Context(), tokenCommand(), "new", "jane", "--file", file)
	if err != nil || strings.Contains(notes, "Created ") {
		t.Errorf("got error %v and notes\n%s", err, notes)
	}
}

func TestTokenExpiry(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 5, time.UTC)
	tests := []struct {
		rule, given, want string // empty: an error
	}{
		{"days", "90d", "2027-02-18T12:00:00Z"},
		{"hours", "1h30m", "2026-11-20T13:30:00Z"},
		{"a time", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"a time elsewhere", "2027-01-01T00:00:00+02:00", "2026-12-31T22:00:00Z"},
		{"a time in the past", "2026-01-01T00:00:00Z", ""},
		{"now", "0s", ""},
		{"less than a second", "1ns", ""},
		{"a negative duration", "-1d", ""},
		{"a day, to its end", "2027-01-01", "2027-01-01T23:59:59Z"},
		{"today", "2026-11-20", "2026-11-20T23:59:59Z"},
		{"a day in the past", "2026-11-19", ""},
		{"a day that does not exist", "2027-02-30", ""},
		{"a word", "tomorrow", ""},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			got, err := tokenExpiry(test.given, now)
			if test.want == "" {
				if err == nil {
					t.Errorf("got %v, want an error", got)
				}
				return
			}
			if err != nil || got.Format(time.RFC3339Nano) != test.want {
				t.Errorf("got %v and error %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestTokenList(t *testing.T) {
	file, _, _ := tokensFile(t)
	const want = `NAME  GROUPS   EXPIRES               STATE
ci    dev,ops  never                 good
old   -        2001-01-01T00:00:00Z  expired
`
	out, notes, err := commandtest.Run(t.Context(), tokenCommand(), "list", "--file", file)
	if err != nil || out != want || notes != "" {
		t.Errorf("got error %v, notes %q and\n%s\nwant\n%s", err, notes, out, want)
	}

	out, _, err = commandtest.Run(t.Context(), tokenCommand(), "list", "--file", file, "--json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, "sha256") {
		t.Errorf("the list has hashes in it:\n%s", out)
	}
	var list []listedToken
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if len(list) != 2 || list[0].Name != "ci" || list[0].Expires != nil || list[0].State != "good" ||
		list[1].Groups == nil || list[1].Expires.Year() != 2001 || list[1].State != "expired" {
		t.Errorf("got\n%s", out)
	}
}

func TestTokenListOfNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("# none yet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, err := commandtest.Run(t.Context(), tokenCommand(), "list", "--file", file); err != nil || out != "There are no tokens.\n" {
		t.Errorf("got error %v and %q", err, out)
	}
	if out, _, err := commandtest.Run(t.Context(), tokenCommand(), "list", "--file", file, "--json"); err != nil || out != "[]\n" {
		t.Errorf("got error %v and %q", err, out)
	}
}

// A malformed line is reported, and does not hide the others.
func TestTokenListWithABadLine(t *testing.T) {
	file, _, _ := tokensFile(t)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(content, "bad\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := commandtest.Run(t.Context(), tokenCommand(), "list", "--file", file)
	if commandtest.Status(err) != cli.ExitProblem || !strings.Contains(err.Error(), "line 3: ") || !strings.Contains(out, "\nold ") {
		t.Errorf("got error %v and\n%s", err, out)
	}
}

func TestTokenRevoke(t *testing.T) {
	file, good, _ := tokensFile(t)
	out, notes, err := commandtest.Run(t.Context(), tokenCommand(), "revoke", "ci", "--file", file)
	if err != nil || out != "" || !strings.Contains(notes, "Revoked ci") {
		t.Errorf("got error %v, %q and notes %q", err, out, notes)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tokens, _ := tokenfile.Parse(content)
	if s, err := tokens.Find(good, time.Now()); err == nil {
		t.Errorf("it is still good, for %+v", s)
	}
	if len(tokens.Entries()) != 1 {
		t.Errorf("got %+v, want the other one", tokens.Entries())
	}
}

func TestTokenCommandRefuses(t *testing.T) {
	file, good, _ := tokensFile(t)
	tests := []struct {
		rule string
		args []string
		want string
	}{
		{"an unknown command", []string{"delete", "ci"}, "there are new, list, revoke and inspect"},
		{"new without a name", []string{"new", "--file", file}, "the name of one token"},
		{"new with two names", []string{"new", "a", "b", "--file", file}, "the name of one token"},
		{"new with a name in use", []string{"new", "ci", "--file", file}, "revoke it first"},
		{"new with a malformed name", []string{"new", "anonymous", "--file", file}, "must not be anonymous"},
		{"new with a malformed group", []string{"new", "a", "--file", file, "--group", "x*"}, "a *"},
		{"new with a malformed time", []string{"new", "a", "--file", file, "--expires", "soon"}, "--expires: "},
		{"new with a variable for the time that is empty", []string{"new", "a", "--file", file, "--expires", ""}, "--expires: "},
		{"new in a missing folder", []string{"new", "a", "--file", filepath.Join(file, "x")}, "not a directory"},
		{"list without a file", []string{"list"}, "--file is required"},
		{"revoke without a name", []string{"revoke", "--file", file}, "the name of one token"},
		{"revoke without a file", []string{"revoke", "ci"}, "--file is required"},
		{"revoke of a token", []string{"revoke", good, "--file", file}, "a token or a hash in its place"},
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			out, _, err := commandtest.Run(t.Context(), tokenCommand(), test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if strings.Contains(err.Error(), good) {
				t.Errorf("the error has the token in it: %v", err)
			}
			if out != "" {
				t.Errorf("it printed\n%s", out)
			}
		})
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed, error %v:\n%s", err, after)
	}
}
