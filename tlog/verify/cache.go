package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Cache keeps answers of registries and the digests of large files in a folder of the user.
// Answers are checked whenever they are used, as if they had just come. The digests, and which
// checkpoints are of one log, are taken as they are. All that fails here costs time only.
type Cache struct {
	dir string // empty: nothing is kept

	mu      sync.Mutex
	digests map[string]keptDigest // by path; nil: not read yet
	changed bool
}

// A keptDigest is the digest of a file that had this stamp.
type keptDigest struct {
	Stamp tree.Stamp  `json:"stamp"`
	Sum   wire.SHA256 `json:"sum"`
	Used  time.Time   `json:"used"`
}

// keptFor is how long what is not used is kept.
const keptFor = 90 * 24 * time.Hour

// OpenCache returns the cache in a folder, which need not exist.
func OpenCache(dir string) *Cache {
	c := &Cache{dir: dir}
	c.prune()
	return c
}

// prune removes what has not been used for a long time, once a day.
func (c *Cache) prune() {
	stamp := filepath.Join(c.dir, "pruned")
	if info, err := os.Stat(stamp); c.dir == "" || err == nil && time.Since(info.ModTime()) < 24*time.Hour {
		return
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > keptFor {
			os.Remove(filepath.Join(c.dir, e.Name()))
		}
	}
	c.write("pruned", nil)
}

func (c *Cache) write(name string, content []byte) {
	if c == nil || c.dir == "" || os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	_ = disk.RewriteFile(filepath.Join(c.dir, name), func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

func (c *Cache) read(name string) []byte {
	if c == nil || c.dir == "" {
		return nil
	}
	content, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		return nil
	}
	return content
}

// A keptAnswer is the last answer for a URL.
type keptAnswer struct {
	URL  string    `json:"url"`
	At   string    `json:"at"` // after redirects
	Time time.Time `json:"time"`
	Body []byte    `json:"body"`
}

// nameOf returns the name of a file for what has that key.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

func (c *Cache) answer(url string) (a keptAnswer, ok bool) {
	err := json.Unmarshal(c.read(nameOf(url)), &a)
	return a, err == nil && a.URL == url
}

// keepAnswer keeps an answer. If it has not changed, its time may be an hour behind: reading
// takes less time than writing.
func (c *Cache) keepAnswer(url, at string, body []byte) {
	if last, ok := c.answer(url); ok && bytes.Equal(last.Body, body) && last.At == at && time.Since(last.Time) < time.Hour {
		return
	}
	content, err := json.Marshal(keptAnswer{url, at, time.Now().UTC(), body})
	if err == nil {
		c.write(nameOf(url), content)
	}
}

// digestsName is the file with the digests.
const digestsName = "digests.json"

// smallFile is the size in bytes below which a file is read as fast as its digest is found.
const smallFile = 1 << 20

// young is how long after a change a file may change again with the same stamp.
const young = 2 * time.Second

// digest returns the digest of a file that has not changed since.
func (c *Cache) digest(path string, stamp tree.Stamp) (sum wire.SHA256, ok bool) {
	if c == nil || stamp.Size < smallFile {
		return sum, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.load()
	kept, ok := c.digests[path]
	if !ok || kept.Stamp != stamp {
		return sum, false
	}
	if time.Since(kept.Used) > 24*time.Hour {
		kept.Used, c.changed = time.Now(), true
		c.digests[path] = kept
	}
	return kept.Sum, true
}

func (c *Cache) keepDigest(path string, stamp tree.Stamp, sum wire.SHA256) {
	if c == nil || stamp.Size < smallFile || time.Since(time.Unix(0, stamp.ModTime)) < young {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.load()
	c.digests[path], c.changed = keptDigest{stamp, sum, time.Now()}, true
}

func (c *Cache) load() {
	if c.digests != nil {
		return
	}
	if json.Unmarshal(c.read(digestsName), &c.digests) != nil || c.digests == nil {
		c.digests = make(map[string]keptDigest)
	}
}

// Save writes what is new.
func (c *Cache) Save() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return
	}
	for path, kept := range c.digests {
		if time.Since(kept.Used) > keptFor {
			delete(c.digests, path)
		}
	}
	if content, err := json.Marshal(c.digests); err == nil {
		c.write(digestsName, content)
	}
	c.changed = false
}
