package record

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// An operator who has made room on the disk learns what else fails.
func TestAReasonThatBecomesAnotherOneIsTold(t *testing.T) {
	full, denied := errors.New("the disk is full"), errors.New("permission denied")
	for _, test := range []struct {
		rule    string
		reasons func(since time.Duration) error
		told    string
	}{
		{"once, if it stays", func(time.Duration) error { return full }, "[the disk is full]"},
		{"another one, however long the first has lasted", func(since time.Duration) error {
			if since < 3*time.Hour {
				return full
			}
			return denied
		}, "[the disk is full permission denied]"},
		{"one that comes soon, a while later", func(since time.Duration) error {
			if since < time.Minute {
				return full
			}
			return denied
		}, "[the disk is full permission denied]"},
		{"one that passes soon is not", func(since time.Duration) error {
			if since > time.Minute && since < 5*time.Minute {
				return denied
			}
			return full
		}, "[the disk is full]"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reasons []string
				began := time.Now()
				r := New(Options{
					Open:    func(context.Context) (*tlog.Log, error) { return nil, test.reasons(time.Since(began)) },
					Changed: func(s State) { reasons = append(reasons, s.Err.Error()) },
				})
				time.Sleep(24 * time.Hour)
				r.Close()
				synctest.Wait()
				if got := fmt.Sprint(reasons); got != test.told {
					t.Errorf("told is %s", got)
				}
			})
		})
	}
}

// However many reasons there are, few are told.
func TestReasonsThatAlternateAreToldSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts, told := 0, 0
		r := New(Options{
			Open:    func(context.Context) (*tlog.Log, error) { attempts++; return nil, fmt.Errorf("attempt %d", attempts) },
			Changed: func(State) { told++ },
		})
		time.Sleep(time.Hour)
		r.Close()
		synctest.Wait()
		if attempts < 60 || told > 6 {
			t.Errorf("%d reasons of %d are told in an hour", told, attempts)
		}
	})
}
