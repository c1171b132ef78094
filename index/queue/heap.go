package queue

// An archiveHeap has the archives to read, in order.
type archiveHeap[A Archive] []queued[A]

type queued[A Archive] struct {
	archive A
	rank    int
	first   bool // it was found by the first scan
}

// isUrgent reports whether an archive is urgent, or needs not be read any more.
func (q queued[A]) isUrgent() bool {
	s := q.archive.task().state
	return s.urgent || s.begun || s.dropped
}

func (h archiveHeap[A]) Len() int { return len(h) }

func (h archiveHeap[A]) Less(i, j int) bool {
	if h[i].first != h[j].first {
		return h[j].first
	}
	return h[i].rank < h[j].rank
}

func (h archiveHeap[A]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *archiveHeap[A]) Push(x any) { *h = append(*h, x.(queued[A])) }

// Pop implements heap.Interface.
func (h *archiveHeap[A]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = queued[A]{}
	*h = old[:len(old)-1]
	return last
}
