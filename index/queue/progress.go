package queue

import "time"

// Progress says how many of the unknown archives have been read.
type Progress struct {
	Done, Total           int   // archives
	DoneBytes, TotalBytes int64 // of these archives
	Began                 time.Time
}

// Rate returns the average number of bytes read per second.
func (p Progress) Rate(now time.Time) int64 {
	elapsed := now.Sub(p.Began).Seconds()
	if elapsed <= 0 {
		return 0
	}
	return int64(float64(p.DoneBytes) / elapsed)
}

// Remaining estimates how long the rest takes at that rate, to the second; zero if there is
// no rate yet.
func (p Progress) Remaining(now time.Time) time.Duration {
	rate := p.Rate(now)
	if rate == 0 {
		return 0
	}
	return (time.Duration((p.TotalBytes-p.DoneBytes)/rate) * time.Second).Round(time.Second)
}
