package authenticate

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

// slowHash compares plain passwords, and takes a second for each.
type slowHash struct {
	mutex           sync.Mutex
	now, most, done int
}

func (s *slowHash) Compare(hashed, password []byte) (bool, error) {
	count := func(n int) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.now += n
		s.most = max(s.most, s.now)
		s.done += max(0, -n)
	}
	count(1)
	defer count(-1)
	time.Sleep(time.Second)
	return bytes.Equal(hashed, password), nil
}

// passwordsOf returns a configuration's http_basic with one account.
func passwordsOf(t *testing.T, hash caddyauth.Comparer) caddyauth.Authenticator {
	t.Helper()
	basic := &caddyauth.HTTPBasicAuth{HashCache: new(caddyauth.Cache), AccountList: []caddyauth.Account{{Username: "alice", Password: "$right"}}}
	if err := basic.Provision(newConfiguration(t).ctx); err != nil {
		t.Fatal(err)
	}
	basic.Hash = hash
	return BoundPasswords(basic, NewPasswordSlots())
}

func withPassword(name, password string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.SetBasicAuth(name, password)
	return r
}

// However many passwords are tried at once, one or two are compared at a time. A user
// whose password was right before does not wait, and a request that waits for too long
// is told so.
func TestPasswordsAreComparedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := new(slowHash)
		b := passwordsOf(t, hash)
		authenticate := func(r *http.Request) (string, error) {
			user, _, err := b.Authenticate(httptest.NewRecorder(), r)
			return user.ID, err
		}
		if user, err := authenticate(withPassword("alice", "$right")); user != "alice" || err != nil {
			t.Fatalf("she is %q, error %v", user, err)
		}
		const tries = 100
		var busy int
		var mutex sync.Mutex
		for i := range tries {
			go func() {
				user, err := authenticate(withPassword("alice", string(rune('a'+i))))
				mutex.Lock()
				defer mutex.Unlock()
				if user != "" || err != nil && !errors.Is(err, ErrTooManyPasswords) {
					t.Errorf("a wrong password: %q, %v", user, err)
				} else if err != nil {
					busy++
				}
			}()
		}
		synctest.Wait()
		began := time.Now()
		if user, err := authenticate(withPassword("alice", "$right")); user != "alice" || err != nil || time.Since(began) > 0 {
			t.Errorf("she is %q after %v, error %v", user, time.Since(began), err)
		}
		if user, err := authenticate(httptest.NewRequest(http.MethodGet, "/", nil)); user != "" || err != nil || time.Since(began) > 0 {
			t.Errorf("without a password: %q after %v, error %v", user, time.Since(began), err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mutex.Lock()
		defer mutex.Unlock()
		if hash.most > 2 || busy+hash.done != tries+1 || busy == 0 {
			t.Errorf("%d were compared at the same time, %d in all, and %d not at all", hash.most, hash.done, busy)
		}
	})
}
