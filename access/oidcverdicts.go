package access

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// maxVerdicts bounds the memory. A registry with more tokens in use at a
	// time verifies some of them again.
	maxVerdicts = 4096

	// verdictLife is how long a verdict counts at most. A key that its issuer
	// withdrew, once that is known, signs for nobody any longer after that.
	verdictLife = 5 * time.Minute
)

// A jwtDigest stands for a token, which is not kept.
type jwtDigest = [sha256.Size]byte

// A verdict is who a good token is for, and until when.
type verdict struct {
	subject Subject
	ends    time.Time
}

// verdicts remember good tokens, as verifying a signature takes a hundred times
// as long as everything else. Refusals are not remembered: anybody can make up
// tokens to push out the good ones.
type verdicts struct {
	mutex sync.RWMutex
	all   map[jwtDigest]verdict
	order []jwtDigest // the ring of all, from next on, wrapping round: the oldest first
	next  int
}

func (v *verdicts) get(token jwtDigest, now time.Time) (Subject, bool) {
	v.mutex.RLock()
	found, ok := v.all[token]
	v.mutex.RUnlock()
	if !ok || !now.Before(found.ends) {
		return Subject{}, false
	}
	return found.subject, true
}

// put remembers a verdict in place of the oldest, which is the first to end if
// tokens live longer than verdicts do.
func (v *verdicts) put(token jwtDigest, good verdict) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.all == nil {
		v.all = make(map[jwtDigest]verdict)
	}
	if _, ok := v.all[token]; !ok {
		if len(v.order) < maxVerdicts {
			v.order = append(v.order, token)
		} else {
			delete(v.all, v.order[v.next])
			v.order[v.next] = token
			v.next = (v.next + 1) % maxVerdicts
		}
	}
	v.all[token] = good
}
