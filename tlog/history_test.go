package tlog

import (
	"context"
	"errors"
	"flag"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seeds     = flag.Int("seeds", 150, "how many histories of a log to try")
	firstSeed = flag.Uint64("seed", 1, "the first of them")
)

var errFault = errors.New("the storage fails")

// Several instances append to one log. Between any two operations of one of them another one
// may do anything. Each operation may fail, with or without an effect, and any instance may
// be killed at any operation. After all that there is one log: all signed checkpoints are of
// it, and it has each leaf that was acknowledged once.
func TestThereIsOneLogWhateverHappens(t *testing.T) {
	tries := uint64(*seeds)
	if testing.Short() { // with the race detector
		tries = max(1, tries/30)
	}
	for seed := *firstSeed; seed < *firstSeed+tries; seed++ {
		synctest.Test(t, func(t *testing.T) { tryHistory(t, newMemory(), nil, seed) })
		if t.Failed() {
			t.Fatalf("with -seed %d -seeds 1", seed)
		}
	}
}

// An instance of a history.
type instance struct {
	*access
	memo   keptMemo
	log    *Log
	active bool // is between two of its own operations
	dead   bool
}

type history struct {
	t         *testing.T
	r         *mathrand.Rand
	m         *memory
	instances []*instance
	faults    bool
	depth     int
	appended  int
	acked     []int
	backups   []*memory
	late      []func() // effects of operations that have failed, and come later
}

// tryHistory tries the history of a seed on a memory. If its files are in a store, contents
// returns them.
func tryHistory(t *testing.T, m *memory, contents func() map[string][]byte, seed uint64) {
	h := &history{t: t, r: mathrand.New(mathrand.NewPCG(seed, 0)), m: m, faults: true}
	for range 2 + h.r.IntN(2) {
		i := &instance{access: &access{memory: h.m}}
		i.before = func(o operation) error { return h.operate(i, o) }
		h.instances = append(h.instances, i)
	}
	for range 60 {
		h.step()
	}
	h.faults = false
	newest := slices.ContainsFunc(h.instances, h.refresh)
	for _, late := range h.late {
		late()
	}
	if newest {
		h.mustBeKept()
	}
	for _, i := range h.instances {
		i.dead = false
		h.restart(i)
		if i.log == nil {
			t.Fatalf("seed %d: it cannot be opened", seed)
		}
		if err := i.log.Append(t.Context(), moduleLeaf(1_000_000)); err != nil {
			t.Fatal(err)
		}
		i.log.Close()
	}
	if contents != nil {
		m.files = contents()
	}
	entries := checkMemory(t, h.m)
	count := make(map[string]int)
	for _, e := range entries {
		f := strings.Fields(e)
		count[f[3]+" "+f[4]]++
	}
	for name, n := range count {
		if n != 1 {
			t.Errorf("seed %d: %s is on record %d times", seed, name, n)
		}
	}
	for _, n := range append(h.acked, 1_000_000) {
		if l := moduleLeaf(n); count[l.Address.String()+" "+l.Version] != 1 {
			t.Errorf("seed %d: %s %s was acknowledged, and is not on record", seed, l.Address, l.Version)
		}
	}
}

// refresh has an instance read and keep everything, and reports whether one runs.
func (h *history) refresh(i *instance) bool {
	return i.log != nil && !i.dead && i.log.Refresh(context.Background()) == nil
}

// mustBeKept checks that the newest checkpoint is kept in both places when late effects of
// other instances have replaced it, and that then a backup of the files is not continued.
func (h *history) mustBeKept() {
	if n := len(h.m.signed); n > 0 && h.m.store == nil { // an instance that was suspended for long
		h.m.anchor, h.m.files[checkpointName] = h.m.signed[h.r.IntN(n)], h.m.signed[h.r.IntN(n)]
	}
	size := int64(0)
	for _, i := range h.instances {
		if h.refresh(i) {
			size = max(size, i.log.Head().Size)
		}
	}
	for where, signed := range map[string][]byte{"the anchor": h.m.anchor, "the store": h.m.files[checkpointName]} {
		if signed == nil && (size == 0 || h.m.store != nil) {
			continue
		}
		if c, err := OpenCheckpoint(signed, origin, testVerifier); err != nil || c.Size != size {
			h.t.Errorf("%s keeps a checkpoint of %d entries of %d, %v", where, c.Size, size, err)
		}
	}
	files := h.m.files
	for _, backup := range h.backups {
		has := int64(len(entriesOf(h.t, backup.files)))
		if has == size {
			continue
		}
		h.m.files = backup.files
		l, err := Open(context.Background(), optionsFor(&access{memory: h.m}))
		if err != nil {
			continue
		}
		if err := l.Append(context.Background(), moduleLeaf(2_000_000)); err == nil {
			h.t.Errorf("a backup of %d entries of %d is added to", has, size)
		}
		l.Close()
	}
	h.m.files = files
}

// operate decides what happens before an operation.
func (h *history) operate(i *instance, o operation) error {
	if i.dead {
		return errFault
	}
	if !h.faults {
		return nil
	}
	if h.depth < 3 && h.r.IntN(12) == 0 {
		h.step() // of another instance
	}
	if len(h.late) > 0 && h.r.IntN(20) == 0 {
		h.late[0]()
		h.late = h.late[1:]
	}
	switch h.r.IntN(60) {
	case 0:
		return errFault
	case 1:
		o.do()
		return errFault
	case 2:
		if o.does == "create" || o.does == "store" || o.does == "replace" {
			h.late = append(h.late, o.do)
		}
		return errFault
	case 3:
		i.dead = true
		if h.r.IntN(2) == 0 {
			o.do()
		}
		return errFault
	}
	return nil
}

// step lets an instance do something that is not doing anything.
func (h *history) step() {
	i := h.instances[h.r.IntN(len(h.instances))]
	if i.active {
		return
	}
	i.active = true
	h.depth++
	if h.m.store == nil && h.r.IntN(20) == 0 {
		h.backups = append(h.backups, h.m.copy())
	}
	defer func() { i.active = false; h.depth-- }()
	ctx := context.Background()
	switch n := h.r.IntN(10); {
	case i.log == nil || i.dead || n == 0:
		i.dead = false
		h.restart(i)
	case n < 7:
		var leaves []Leaf
		from := h.appended
		var numbers []int
		for range []int{1, 1, 1, 3, 40, 300}[h.r.IntN(6)] {
			leaves, numbers = append(leaves, moduleLeaf(h.appended)), append(numbers, h.appended)
			h.appended++
		}
		if from > 0 && h.r.IntN(3) == 0 { // another instance may have offered it, too
			leaves = append(leaves, moduleLeaf(h.r.IntN(from)))
		}
		if err := i.log.Append(ctx, leaves...); err == nil {
			h.acked = append(h.acked, numbers...)
		} else if errors.Is(err, ErrForked) || errors.Is(err, ErrBehind) {
			h.t.Errorf("appending: %v", err)
		}
	case n == 7:
		_ = i.log.Tidy(ctx)
		_ = i.log.Remember()
	default:
		if err := i.log.Refresh(ctx); errors.Is(err, ErrForked) || errors.Is(err, ErrBehind) {
			h.t.Errorf("refreshing: %v", err)
		}
	}
}

func (h *history) restart(i *instance) {
	if i.log != nil {
		i.log.Close()
		i.log = nil
	}
	o := optionsFor(i.access)
	o.Interval, o.Memo = time.Nanosecond, &i.memo
	o.reads, o.batchLife = 1, math.MinInt64 // it does one operation after the other, and removes batches early
	l, err := Open(context.Background(), o)
	if errors.Is(err, ErrForked) || errors.Is(err, ErrBehind) {
		h.t.Errorf("opening: %v", err)
	}
	if err == nil {
		i.log = l
	} else if !h.faults {
		h.t.Errorf("opening without faults: %v", err)
	}
}
