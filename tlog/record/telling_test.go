package record

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
)

// The folder of a log is on a network disk whose server is away: a call returns when it is back.
func TestAFolderThatDoesNotAnswerIsTold(t *testing.T) {
	before, after := twoVersions(t)
	for _, call := range []string{"read", "create"} {
		t.Run(call, func(t *testing.T) {
			storage := tlogtest.New(t)
			synctest.Test(t, func(t *testing.T) {
				var back atomic.Pointer[chan struct{}] // nil: the server answers
				var told []string
				r := New(Options{
					Open: func(ctx context.Context) (*tlog.Log, error) {
						o := storage.Options()
						o.Store = hangingStore{o.Store, call, &back}
						return new(tlog.Opening).Open(ctx, o)
					},
					Changed: func(s State) { told = append(told, fmt.Sprint(s.Trouble, " ", s.Err)) },
				})
				r.Offered(before, nil)
				time.Sleep(time.Minute + time.Second) // between two attempts
				answers := make(chan struct{})
				back.Store(&answers)
				r.Offered(after, nil)
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				if want := "[failed the folder of the log does not answer in time]"; fmt.Sprint(told) != want || r.State().Trouble != Failed {
					t.Errorf("told is %s, and it is %+v", told, r.State())
				}
				back.Store(nil)
				close(answers)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if state := r.State(); state != (State{}) || len(told) != 2 || r.Log().Head().Size != 2 {
					t.Errorf("when it answers again, it is %+v, and told is %s", state, told)
				}
				r.Close()
				synctest.Wait()
			})
		})
	}
}

// Comparing waits for the scan under way, and the first one of a large tree on a network disk may take long.
func TestAnIndexThatScansIsNoFaultOfTheLog(t *testing.T) {
	for _, test := range []struct {
		rule          string
		scan, writing time.Duration
	}{
		{"longer than an attempt may take", time.Hour, 0},
		{"nearly as long, and entering takes its time, too", attempt, 20 * time.Second},
	} {
		t.Run(test.rule, func(t *testing.T) { testAnIndexThatScans(t, test.scan, test.writing) })
	}
}

func testAnIndexThatScans(t *testing.T, scanning, writing time.Duration) {
	before, after := twoVersions(t)
	storage := tlogtest.New(t)
	synctest.Test(t, func(t *testing.T) {
		earlier := New(Options{Open: storage.Open})
		earlier.Offered(before, nil)
		time.Sleep(time.Minute)
		earlier.Close()
		var told []string
		r := New(Options{
			Open: func(ctx context.Context) (*tlog.Log, error) {
				o := storage.Options()
				o.Store = slowStore{o.Store, writing}
				return new(tlog.Opening).Open(ctx, o)
			},
			Learned: func(...address.Address) { time.Sleep(scanning) },
			Changed: func(s State) { told = append(told, fmt.Sprint(s.Trouble, " ", s.Err)) },
		})
		r.Offered(after, nil)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if len(told) > 0 || r.Log().Head().Size != 2 {
			t.Errorf("told is %s, and there are %d entries", told, r.Log().Head().Size)
		}
		r.Close()
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

// A slowStore takes its time to create a file.
type slowStore struct {
	tlog.Store
	time time.Duration
}

func (s slowStore) Create(ctx context.Context, name string, content []byte) error {
	time.Sleep(s.time)
	return s.Store.Create(ctx, name, content)
}

// A hangingStore does not answer one kind of call.
type hangingStore struct {
	tlog.Store
	call string
	back *atomic.Pointer[chan struct{}]
}

func (s hangingStore) wait(call string) {
	if back := s.back.Load(); back != nil && call == s.call {
		<-*back
	}
}

func (s hangingStore) Read(ctx context.Context, name string) ([]byte, error) {
	s.wait("read")
	return s.Store.Read(ctx, name)
}

func (s hangingStore) Create(ctx context.Context, name string, content []byte) error {
	s.wait("create")
	return s.Store.Create(ctx, name, content)
}

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
