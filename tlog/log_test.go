package tlog

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

const origin = "registry.example.com/v1/tlog"

var testSigner, testVerifier = newTestKey(rand.Reader)

func newTestKey(random io.Reader) (note.Signer, note.Verifier) {
	private, public, err := note.GenerateKey(random, origin)
	if err != nil {
		panic(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		panic(err)
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		panic(err)
	}
	return signer, verifier
}

func optionsFor(a *access) Options {
	return Options{Origin: origin, Signers: []note.Signer{testSigner}, Verifiers: []note.Verifier{testVerifier}, Store: a, Anchor: anchorAccess{a}}
}

func open(t *testing.T, m *memory) *Log {
	t.Helper()
	l, err := Open(t.Context(), optionsFor(&access{memory: m}))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// moduleLeaf is of a module that no other number has.
func moduleLeaf(n int) Leaf {
	a, err := address.Parse(fmt.Sprintf("acme/m%d/aws", n/3))
	if err != nil {
		panic(err)
	}
	return Leaf{Event: Offered, Address: a, Version: fmt.Sprintf("1.%d.0", n%3), Hashes: testHashes(n)}
}

func testHashes(n int) []string {
	return []string{"h1:" + strings.Repeat("A", 43) + "=", fmt.Sprintf("zh:%064x", n)}
}

func mustAppend(t *testing.T, l *Log, leaves ...Leaf) {
	t.Helper()
	if err := l.Append(t.Context(), leaves...); err != nil {
		t.Fatal(err)
	}
}

func leavesFrom(from, to int) (leaves []Leaf) {
	for n := from; n < to; n++ {
		leaves = append(leaves, moduleLeaf(n))
	}
	return leaves
}

func TestWhatIsAppendedIsProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		defer func() { l.Close() }()
		var heads []*Head
		appended := 0
		for _, n := range []int{0, 1, 2, 5, 255, 256, 257, 300, 511, 512, 513, 1000, 70_000} {
			for appended < n {
				next := min(n, appended+9_000)
				mustAppend(t, l, leavesFrom(appended, next)...)
				appended = next
			}
			if l.Head().Size != int64(n) {
				t.Fatalf("with %d leaves it has the size %d", n, l.Head().Size)
			}
			heads = append(heads, l.Head())
		}
		entries := checkMemory(t, m)
		for again := range 2 { // as it is, and when it is opened again
			for _, h := range heads {
				for _, n := range []int64{0, 1, 254, 255, 256, 511, h.Size - 2, h.Size - 1} {
					if n < 0 || n >= h.Size {
						continue
					}
					p, err := l.Prove(t.Context(), h, n)
					if err != nil {
						t.Fatal(err)
					}
					if err := p.Check(entries[n], h.Checkpoint); err != nil {
						t.Error(err)
					}
					if err := p.Check(entries[n]+" ", h.Checkpoint); err == nil {
						t.Errorf("another entry is at %d of %d", n, h.Size)
					}
				}
				for _, earlier := range heads {
					c, err := l.Consistency(t.Context(), h, min(earlier.Size, h.Size))
					if err == nil {
						err = c.Check(earlier.Checkpoint, h.Checkpoint)
					}
					if (err == nil) != (earlier.Size <= h.Size) {
						t.Errorf("%d entries after %d: %v", h.Size, earlier.Size, err)
					}
				}
			}
			if again == 0 {
				l.Close()
				l = open(t, m)
				if l.Head().Size != int64(appended) {
					t.Fatalf("opened again it has the size %d", l.Head().Size)
				}
			}
		}
	})
}

func TestTilesOfEachSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		defer l.Close()
		mustAppend(t, l, leavesFrom(0, 300)...)
		mustAppend(t, l, leavesFrom(300, 700)...)
		hashes := leafHashes(checkMemory(t, m))
		for _, test := range []struct {
			path string
			want []byte
		}{
			{"tile/0/000", join(hashes[:256])},
			{"tile/0/000.p/5", join(hashes[:5])},
			{"tile/0/002.p/188", join(hashes[512:700])},
			{"tile/0/002.p/189", nil},
			{"tile/0/002", nil},
			{"tile/0/003.p/1", nil},
			{"tile/1/000.p/2", append(merkle(hashes[:256]), merkle(hashes[256:512])...)},
			{"tile/1/000.p/3", nil},
			{"tile/1/000", nil},
			{"tile/2/000.p/1", nil},
			{"tile/63/000.p/1", nil},
			{"tile/0/x999/x999/x999/x999/x999/999", nil},
		} {
			tile, err := ParseTilePath(test.path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.Tile(t.Context(), l.Head(), tile)
			if string(got) != string(test.want) || errors.Is(err, fs.ErrNotExist) != (test.want == nil) {
				t.Errorf("%s has %d bytes, %v", test.path, len(got), err)
			}
		}
		for path, want := range map[string]int{"tile/entries/000": 256, "tile/entries/002.p/188": 188, "tile/entries/001.p/7": 7} {
			tile, err := ParseTilePath(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.Tile(t.Context(), l.Head(), tile)
			if entries := split(t, got); err != nil || len(entries) != want {
				t.Errorf("%s has %d entries, %v", path, len(entries), err)
			}
		}
	})
}

// A file that a signed log must have is no tile that it has not.
func TestATileWhoseFileIsGone(t *testing.T) {
	for _, gone := range []string{"tile/entries/000", "tile/0/000"} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			l := open(t, m)
			mustAppend(t, l, leavesFrom(0, 600)...)
			l.Close()
			l = open(t, m)
			defer l.Close()
			l.files.bundles.Remove(0)
			l.files.tiles.Remove(tilePlace{})
			delete(m.files, gone)
			tile, err := ParseTilePath(gone)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Tile(t.Context(), l.Head(), tile); !errors.Is(err, ErrForked) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", gone, err)
			}
			leaf := moduleLeaf(1)
			if _, err := l.Leaves(t.Context(), l.Head(), leaf.Address, leaf.Version); gone != "tile/0/000" && !errors.Is(err, ErrForked) {
				t.Errorf("its leaf: %v", err)
			}
		})
	}
}

// What a look-up costs, with a tile in memory.
func BenchmarkProof(b *testing.B) {
	m := newMemory()
	o := optionsFor(&access{memory: m})
	o.Interval = time.Nanosecond
	l, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for n := 0; n < 100_000; n += 10_000 {
		if err := l.Append(b.Context(), leavesFrom(n, n+10_000)...); err != nil {
			b.Fatal(err)
		}
	}
	h := l.Head()
	for b.Loop() {
		if _, err := l.Prove(b.Context(), h, 77); err != nil {
			b.Fatal(err)
		}
	}
}

func join(hashes [][]byte) (all []byte) {
	for _, h := range hashes {
		all = append(all, h...)
	}
	return all
}

func TestALeafThatIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, newMemory())
		defer l.Close()
		bad := moduleLeaf(1)
		bad.Version = "latest"
		done := make(chan error, 1)
		go func() { done <- l.Append(t.Context(), moduleLeaf(2)) }()
		if err := l.Append(t.Context(), bad); err == nil {
			t.Error("it is added")
		}
		if err := <-done; err != nil || l.Head().Size != 1 {
			t.Errorf("what others add at the same time: %v", err)
		}
	})
}

func TestAppendingToALogThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, newMemory())
		var results []chan error
		for n := range 5 {
			result := make(chan error, 1)
			results = append(results, result)
			go func() { result <- l.Append(t.Context(), leavesFrom(n*maxAdded, (n+1)*maxAdded)...) }()
		}
		synctest.Wait()
		l.Close()
		for _, result := range results {
			<-result // each caller is answered
		}
		if err := l.Append(t.Context(), moduleLeaf(1)); !errors.Is(err, errClosed) {
			t.Errorf("afterwards it says %v", err)
		}
	})
}

func TestALeafThatSaysNothingNewIsNotAppended(t *testing.T) {
	provider, err := address.Parse("acme/demo")
	if err != nil {
		t.Fatal(err)
	}
	linux, darwin := address.Platform{OS: "linux", Arch: "amd64"}, address.Platform{OS: "darwin", Arch: "arm64"}
	on := func(e Event, p address.Platform, n int) Leaf {
		return Leaf{Event: e, Address: provider, Version: "1.0.0", Platform: p, Hashes: testHashes(n)}
	}
	version := func(e Event) Leaf { return Leaf{Event: e, Address: provider, Version: "1.0.0"} }
	synctest.Test(t, func(t *testing.T) {
		l := open(t, newMemory())
		defer l.Close()
		for _, test := range []struct {
			rule  string
			leaf  Leaf
			added bool
		}{
			{"a version that was not withdrawn is not restored", version(Restored), false},
			{"the first package of a platform", on(Offered, linux, 1), true},
			{"the same again", on(Offered, linux, 1), false},
			{"what was found is on record if it was offered", on(Found, linux, 1), false},
			{"another package for the platform: the first one counts", on(Offered, linux, 2), false},
			{"a package for another platform", on(Offered, darwin, 2), true},
			{"the same content in other bytes", on(Repacked, linux, 3), true},
			{"these again", on(Repacked, linux, 3), false},
			{"a provider in other bytes is no repacked one by itself", on(Offered, linux, 4), false},
			{"a withdrawal", version(Withdrawn), true},
			{"the same withdrawal", version(Withdrawn), false},
			{"the end of it", version(Restored), true},
			{"which ends once", version(Restored), false},
			{"another withdrawal", version(Withdrawn), true},
		} {
			before := l.Head().Size
			mustAppend(t, l, test.leaf)
			if added := l.Head().Size > before; added != test.added {
				t.Errorf("%s: added is %t", test.rule, added)
			}
		}
		folder := moduleLeaf(1)
		folder.Pack = 1
		mustAppend(t, l, folder)
		for _, test := range []struct {
			rule  string
			files string
			zh    int
			want  string
		}{
			{"a folder that is packed in another way", folder.Hashes[0], 100, "[offered repacked]"},
			{"the same again", folder.Hashes[0], 100, "[offered repacked]"},
			{"a folder with other files: the first one counts", "h1:" + strings.Repeat("B", 42) + "A=", 101, "[offered repacked]"},
		} {
			other := folder
			other.Hashes = []string{test.files, testHashes(test.zh)[1]}
			mustAppend(t, l, other)
			leaves, err := l.Leaves(t.Context(), l.Head(), folder.Address, folder.Version)
			if got := fmt.Sprint(eventsOf(leaves)); err != nil || got != test.want {
				t.Errorf("%s: its leaves are %s, %v", test.rule, got, err)
			}
		}
		leaves, err := l.Leaves(t.Context(), l.Head(), provider, "1.0.0")
		events := eventsOf(leaves)
		if got := fmt.Sprint(events); err != nil || got != "[offered offered repacked withdrawn restored withdrawn]" {
			t.Errorf("its leaves are %s, %v", got, err)
		}
	})
}

func TestWhatIsOnRecordIsCompared(t *testing.T) {
	provider, err := address.Parse("acme/demo")
	if err != nil {
		t.Fatal(err)
	}
	linux, darwin := address.Platform{OS: "linux", Arch: "amd64"}, address.Platform{OS: "darwin", Arch: "arm64"}
	hashes := func(files, bytes int) []string {
		sum := sha256.Sum256([]byte{byte(files)})
		return []string{"h1:" + base64.StdEncoding.EncodeToString(sum[:]), fmt.Sprintf("zh:%064x", bytes)}
	}
	on := func(p address.Platform, files, bytes, pack int) Leaf {
		return Leaf{Event: Offered, Address: provider, Version: "1.0.0", Platform: p, Hashes: hashes(files, bytes), Pack: pack}
	}
	module := func(files, bytes int) Leaf {
		leaf := moduleLeaf(1)
		leaf.Hashes = hashes(files, bytes)
		return leaf
	}
	synctest.Test(t, func(t *testing.T) {
		l := open(t, newMemory())
		defer l.Close()
		begun := time.Now()
		mustAppend(t, l, on(linux, 1, 1, 0), on(darwin, 2, 2, 1), module(3, 3))
		time.Sleep(time.Hour)
		mustAppend(t, l, Leaf{Event: Withdrawn, Address: provider, Version: "1.0.0"})
		for _, test := range []struct {
			rule string
			leaf Leaf
			want Record
		}{
			{"the same package", on(linux, 1, 1, 0), OnRecord},
			{"other bytes of a provider", on(linux, 1, 9, 0), Replaced},
			{"other files", on(linux, 9, 9, 0), Replaced},
			{"a platform that came later", on(address.Platform{OS: "windows", Arch: "amd64"}, 9, 9, 0), NotOnRecord},
			{"the same files of a folder that is packed in another way", on(darwin, 2, 9, 1), OnRecord},
			{"a zip with the files of a folder that was packed", on(darwin, 2, 9, 0), Replaced},
			{"other files of a folder", on(darwin, 9, 9, 1), Replaced},
			{"the same module", module(3, 3), OnRecord},
			{"a module in other bytes: links are in no h1", module(3, 9), Replaced},
			{"a module with other files", module(9, 9), Replaced},
			{"another version", moduleLeaf(2), NotOnRecord},
		} {
			got := l.Compare(test.leaf)
			if got.Record != test.want || got.Found {
				t.Errorf("%s: it is %+v, not %d", test.rule, got, test.want)
			}
			if age := got.Since.Sub(begun); got.Record != NotOnRecord && (age < -time.Second || age > time.Minute) {
				t.Errorf("%s: it is on record since %s after the beginning", test.rule, age)
			}
		}
	})
}

func eventsOf(leaves []NumberedLeaf) (events []Event) {
	for _, leaf := range leaves {
		events = append(events, leaf.Event)
	}
	return events
}

// An instance was suspended before it creates a batch. Others have filled the bundle meanwhile,
// and removed the batch with the same number that they had. Then it goes on, just while a
// third one, which has not seen the bundle, reads the batch.
func TestABatchThatIsCreatedAgainIsNoPartOfTheLog(t *testing.T) {
	life := batchLife
	batchLife = 0
	defer func() { batchLife = life }()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		suspended, reader, filler := &access{memory: m}, &access{memory: m}, &access{memory: m}
		var logs []*Log
		for _, a := range []*access{suspended, reader, filler} {
			l, err := Open(t.Context(), optionsFor(a))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			logs = append(logs, l)
		}
		mustAppend(t, logs[2], leavesFrom(0, 5)...)
		for _, l := range logs {
			if err := l.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		done := false
		reader.before = func(o operation) error {
			if o.does == "read" && o.name == "batch/5" && !done {
				done = true
				suspended.before = func(create operation) error {
					if create.does != "create" {
						return nil
					}
					suspended.before = nil
					mustAppend(t, logs[2], leavesFrom(10, 300)...)
					if err := logs[2].Tidy(t.Context()); err != nil {
						t.Fatal(err)
					}
					if _, ok := m.files["batch/5"]; ok || m.files["tile/entries/000"] == nil {
						t.Fatal("the batch is still there")
					}
					create.do()
					o.do()
					return nil
				}
				mustAppend(t, logs[0], moduleLeaf(400))
			}
			return nil
		}
		if err := logs[1].Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		for _, l := range logs {
			if err := l.Refresh(t.Context()); err != nil || l.Head().Size != 296 {
				t.Errorf("a log has %d entries, %v", l.Head().Size, err)
			}
		}
		if !done {
			t.Error("the reader has not read the batch")
		}
		checkMemory(t, m)
	})
}

var (
	seeds     = flag.Int("seeds", 150, "how many histories of a log to try")
	firstSeed = flag.Uint64("seed", 1, "the first of them")
)

var errFault = errors.New("the storage fails")

// oneByOne has each instance do one operation after the other, and remove batches early.
func oneByOne(t *testing.T) {
	life, reads := batchLife, atOnce
	batchLife, atOnce = 0, 1
	t.Cleanup(func() { batchLife, atOnce = life, reads })
}

// Several instances append to one log. Between any two operations of one of them another one
// may do anything. Each operation may fail, with or without an effect, and any instance may
// be killed at any operation. After all that there is one log: all signed checkpoints are of
// it, and it has each leaf that was acknowledged once.
func TestThereIsOneLogWhateverHappens(t *testing.T) {
	oneByOne(t)
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		synctest.Test(t, func(t *testing.T) { tryHistory(t, newMemory(), nil, seed) })
		if t.Failed() {
			t.Fatalf("with -seed %d -seeds 1", seed)
		}
	}
}

// An instance of a history.
type instance struct {
	*access
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
	o.Interval = time.Nanosecond
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
