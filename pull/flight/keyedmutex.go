package flight

import "sync"

// A KeyedMutex is a mutex for each key. It is held while files are written, so that one mutex
// for all keys would have all wait. The zero value is ready for use.
type KeyedMutex struct {
	mutex sync.Mutex
	users map[string]*keyUsers
}

type keyUsers struct {
	sync.Mutex
	count int
}

// Lock locks a key.
func (k *KeyedMutex) Lock(key string) (unlock func()) {
	k.mutex.Lock()
	u := k.users[key]
	if u == nil {
		if k.users == nil {
			k.users = make(map[string]*keyUsers)
		}
		u = new(keyUsers)
		k.users[key] = u
	}
	u.count++
	k.mutex.Unlock()

	u.Lock()
	return func() {
		u.Unlock()
		k.mutex.Lock()
		defer k.mutex.Unlock()
		if u.count--; u.count == 0 {
			delete(k.users, key)
		}
	}
}
