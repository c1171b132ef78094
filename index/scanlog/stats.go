package scanlog

import (
	"sync"
	"time"
)

// Stats counts the work of an index since it was created.
type Stats struct {
	Scans, Failed  uint64        // Scans includes those that failed
	Read, Recalled uint64        // archives read, and known from the memo
	Verified       uint64        // signatures verified, not counting those known from the memo
	LastScan       time.Duration // how long it took
}

// Counts adds scans up. The zero value has counted none.
type Counts struct {
	mutex sync.Mutex
	stats Stats
}

// Stats returns what has been counted so far. It does not count signatures.
func (c *Counts) Stats() Stats {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.stats
}

// Succeeded counts a scan and the archives that it read and recalled.
func (c *Counts) Succeeded(took time.Duration, read, recalled int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.stats.Scans++
	c.stats.LastScan = took
	c.stats.Read += uint64(read)
	c.stats.Recalled += uint64(recalled)
}

// Failed counts a scan that failed.
func (c *Counts) Failed(took time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.stats.Scans++
	c.stats.Failed++
	c.stats.LastScan = took
}
