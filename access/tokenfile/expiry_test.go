package tokenfile

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestFileLogsExpiry(t *testing.T) {
	const day = 24 * time.Hour
	expiring := func(name string, in time.Duration) string {
		return lineOf(name, name, "expires="+testTime.Add(in).Format(time.RFC3339))
	}
	const soon, over = "tokens expire within 14 days: hand out new ones", "tokens have expired: revoke them"
	type step struct {
		pass  time.Duration
		write string // empty: the file stays
		lines int
		log   string
	}
	for _, test := range []struct {
		rule, file string
		start      int // lines logged when the file is opened
		log        string
		steps      []step
	}{
		{"nothing of tokens that never expire", lineOf("a", "a"), 0, "", []step{{1000 * day, "", 0, ""}}},
		{"nothing of one that expires in months", expiring("a", 90*day), 0, "", []step{{day, "", 0, ""}}},
		{"once when one expires soon, and once when it has", expiring("a", 20*day), 0, "", []step{
			{5 * day, "", 0, ""}, {day, "", 1, soon}, {day, "", 0, ""}, {13*day - time.Second, "", 0, ""}, {time.Second, "", 1, over}, {day, "", 0, ""}}},
		{"at the start what has happened before", expiring("a", 5*day) + expiring("b", -5*day), 2, over, []step{{day, "", 0, ""}, {5 * day, "", 1, over}}},
		{"one line for several, with their names and times", expiring("a", 5*day) + expiring("b", 6*day), 1, fmt.Sprintf("[a %s b ", testTime.Add(5*day).Format(time.RFC3339)), nil},
		{"that it has expired, if nobody looked when it was about to", expiring("a", 20*day), 0, "", []step{{30 * day, "", 1, over}}},
		{"nothing when one is issued for a short time, until it has expired", lineOf("a", "a"), 0, "", []step{
			{day, lineOf("a", "a") + expiring("b", 3*day), 1, "tokens=2"}, {day, "", 0, ""}, {day, "", 1, over}}},
		{"nothing of one that was revoked in time", expiring("a", 20*day), 0, "", []step{{day, lineOf("b", "b"), 1, "tokens=1"}, {30 * day, "", 0, ""}}},
		{"nothing twice if the clock is set back", expiring("a", 20*day), 0, "", []step{{6 * day, "", 1, soon}, {-5 * day, "", 0, ""}}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			w := watch(t, test.file)
			w.logged(test.start, test.log)
			for _, s := range test.steps {
				if s.write != "" {
					w.write(s.write)
				}
				w.pass(s.pass)
				w.Entries()
				w.logged(s.lines, s.log)
			}
		})
	}
}

// A line about many tokens names some of them.
func TestFileLogsFewNames(t *testing.T) {
	var file strings.Builder
	for i := range 30 {
		file.WriteString(lineOf(fmt.Sprint("t", i), fmt.Sprint(i), "expires=2001-01-01T00:00:00Z"))
	}
	watch(t, file.String()).logged(1, "and 20 more]")
}

// Expiry is logged even if no client presents a token.
func TestFileLogsExpiryWithoutRequests(t *testing.T) {
	w := watch(t, lineOf("a", "a", "expires="+testTime.Add(time.Hour).Format(time.RFC3339)))
	w.logged(1, "expire within")
	w.pass(time.Hour)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w.Run(ended)
	w.logged(1, "have expired")
}
