package index

import (
	"context"
	"sync"
	"time"
)

// Scan looks at the tree once, to the end.
func Scan(ctx context.Context, o Options) (*Snapshot, error) {
	return (&looker{options: o, progress: o.Progress}).look(ctx, nil, nil)
}

// A looker looks at a tree again and again, and remembers what it saw.
type looker struct {
	options  Options
	memo     memo
	releases releaseMemo
	watch    *watcher
	progress func(Progress)
	last     *Snapshot // of the look before this one; nil at first

	keysFiles map[keysOf]*keysFile // as they were read last
	rested    map[string]stamp     // module folders, as they were offered last
}

// look walks the tree, reads what is not known, and verifies. Whenever a batch
// of archives has been read on the way, or what a request waits for, it calls
// publish with what can be offered by then. Both may be nil.
func (l *looker) look(ctx context.Context, waiting *waiting, publish func(*Snapshot)) (*Snapshot, error) {
	for _, name := range l.options.Paths {
		l.watch.pass(name) // before it is taken
	}
	tree, err := l.options.Open()
	if err != nil {
		return nil, err
	}
	s := &scanner{looker: l, ctx: ctx, tree: tree, now: l.options.now(), live: waiting != nil}
	l.memo.begin()
	s.walk()

	if len(s.unread) > 0 {
		r := newReading(s, publish)
		waiting.begin(r)
		if l.last == nil {
			r.batches.publish() // what is known is served at once
		}
		r.run()
		waiting.end()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	snapshot := s.assemble()
	if err := snapshot.Report.failure(); err != nil {
		return nil, err
	}
	if r := snapshot.Report; len(r.Offered)+len(r.Withheld)+r.Pending == 0 {
		if r.Hint = tree.hint(); r.Hint == nothingYet && len(s.keys) > 0 {
			r.Hint = "" // the keys came first
		}
	}
	snapshot.Read, snapshot.Recalled = len(s.unread), s.recalled
	l.memo.finish()
	l.releases.finish(snapshot)
	l.watch.finish()
	l.last = snapshot
	return snapshot, nil
}

// walk finds out what there is.
func (s *scanner) walk() {
	w := &walker{scanner: s, report: newReport()}
	s.keys = w.readKeys()
	s.providers = w.walkProviders()
	s.modules = w.walkModules()
	s.report, s.unread, s.recalled = w.report, w.unread, w.recalled
}

// A scanner is the state of one scan.
type scanner struct {
	*looker
	ctx  context.Context
	tree Tree
	now  time.Time
	live bool // another scan follows when something is too young to be offered

	report    *Report // of the walk
	keys      map[keysOf]*keysFile
	providers []*providerFolder
	modules   []*moduleFolder
	recalled  int

	mutex  sync.Mutex // guards what reading gives to the archives
	unread []*archive
}

// assemble verifies what has been read and makes a snapshot of it.
func (s *scanner) assemble() *Snapshot {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	a := &assembly{scanner: s, folders: make(map[string]stamp), report: s.report.clone(), snapshot: newSnapshot(s.tree, s.now)}
	a.addProviders()
	for _, m := range s.modules {
		a.addModule(m)
	}
	a.snapshot.Report = a.report
	s.rested = a.folders
	var twice shadows
	a.snapshot.mergeProviders(&twice)
	a.snapshot.mergeModules(&twice)
	twice.note(a.report)
	a.report.sort()
	return a.snapshot
}

// An assembly is a snapshot under construction, with a report of its own: there
// may be several in one scan.
type assembly struct {
	*scanner
	folders  map[string]stamp
	report   *Report
	snapshot *Snapshot
}
