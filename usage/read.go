package usage

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// A readDay knows which segments of a day are in the counts.
type readDay struct {
	have    map[string]bool     // their names, and the names of segments that they replace
	broken  map[string]bool     // the names of damaged ones, which are not: it may pass
	forgot  bool                // have lacks some: the day is read again when something is
	merged  map[string]*segment // those that are listed, without their counts
	damaged bool                // one of them is
	lost    bool                // the counts of a segment that one of them replaces may be

	unmerged int // segments when there was nothing to merge, since some are damaged
}

func (c *Counter) readDay(day Day) *readDay {
	if c.read[day] == nil {
		c.read[day] = &readDay{have: make(map[string]bool), broken: make(map[string]bool), merged: make(map[string]*segment)}
	}
	return c.read[day]
}

const (
	// maxListings is how often segments are listed again because some were merged after they
	// had been listed.
	maxListings = 3

	// maxListed is how many segments are read. Those of older days are left out.
	maxListed = 16 << 10
)

// errMerged means that segments have to be listed again.
var errMerged = errors.New("segments were merged meanwhile")

// readSegments adds what other instances have counted. It returns the segments by day. Segments
// that go while they are read are left for the next time. A day that cannot be read hinders no
// other: the error is the first of them.
func (c *Counter) readSegments(ctx context.Context) (days map[Day][]segmentName, failed error) {
	var counted []Day
	var expired []string
	again := true
	for range maxListings {
		if !again {
			break
		}
		if days, expired, failed = c.list(ctx); days == nil {
			return nil, failed
		}
		again, counted = false, nil
		for day, names := range days {
			switch err := c.readSegmentsOf(ctx, day, names); {
			case err == nil:
				counted = append(counted, day)
			case errors.Is(err, errMerged):
				again = true
			case ctx.Err() != nil:
				return nil, err
			default:
				failed = cmp.Or(failed, err)
			}
			failed = cmp.Or(failed, c.writeInTime(ctx))
		}
	}
	slices.Sort(counted)
	c.mutex.Lock()
	c.counted = counted
	c.known = c.known || failed == nil || len(counted) > 0
	c.mutex.Unlock()
	for _, text := range expired {
		failed = cmp.Or(failed, c.remove(ctx, text))
	}
	return days, failed
}

// list returns the segments by day, and the expired ones. It makes sure that today has one, so that
// it is known as a day on which downloads are counted: if that alone fails, it returns the others
// with the error.
func (c *Counter) list(ctx context.Context) (days map[Day][]segmentName, expired []string, err error) {
	texts, err := c.options.Storage.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	today := DayOf(c.options.Now())
	slices.SortFunc(texts, func(a, b string) int { return strings.Compare(b, a) }) // newest day first
	first, last := c.keptDays(texts, today)
	listed := 0
	days = make(map[Day][]segmentName)
	for _, text := range texts {
		switch name, ok := parseSegmentName(text); {
		case !ok || name.day > last:
		case name.day < first:
			expired = append(expired, text)
		case listed < maxListed:
			listed++
			days[name.day] = append(days[name.day], name)
		case len(days) > 1:
			delete(days, name.day) // not all of it
		}
	}
	if len(days[today]) == 0 {
		content := new(segment).encode()
		name := nameSegment(today, ofMinute, content)
		if err = c.options.Storage.Store(ctx, name.text, content); err == nil {
			days[today] = []segmentName{name}
		}
	}
	for day := range c.read {
		if day < first || day > last {
			delete(c.read, day)
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	gone := func(d Day) bool { return d < first || d > last }
	maps.DeleteFunc(c.partial, func(d Day, _ bool) bool { return gone(d) })
	if oldest, newest := c.counts.span(); oldest != 0 && (gone(oldest) || gone(newest)) {
		c.counts.drop(gone)
	}
	return days, expired, err
}

// proofDays are the days before today on which downloads were counted, if the clock is right.
const proofDays = 7

// keptDays returns the first and the last day that count, given the names of segments. A clock
// that is wrong for some days must not remove anything, so the past ends with the proofDays, as
// far as there are so many. Nor does the clock bring a day into the counts that has not come;
// clocks may differ a little.
func (c *Counter) keptDays(texts []string, today Day) (first, last Day) {
	c.mutex.Lock()
	keep := daysIn(c.keep)
	c.mutex.Unlock()
	var before []Day // newest day first, as the texts
	for _, text := range texts {
		if name, ok := parseSegmentName(text); ok && name.day < today && !slices.Contains(before, name.day) {
			before = append(before, name.day)
		}
		if len(before) == int(min(keep, proofDays)) {
			break
		}
	}
	first = today
	switch n := len(before); {
	case n == int(min(keep, proofDays)):
		first = min(today, before[n-1]+Day(n))
	case n > 0:
		first = min(today, before[0]+1)
	}
	return first - keep + 1, today + 1
}

// remove deletes a segment that may be gone already.
func (c *Counter) remove(ctx context.Context, name string) error {
	if err := c.options.Storage.Delete(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// load returns a segment.
func (c *Counter) load(ctx context.Context, name segmentName) (*segment, error) {
	content, err := c.options.Storage.Load(ctx, name.text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMerged
	}
	if err != nil {
		return nil, err
	}
	return decodeSegment(name, content)
}

// readSegmentsOf adds the segments of a day that are new. If a merged segment replaces some that
// are in the counts and some that are not, the whole day is read again.
func (c *Counter) readSegmentsOf(ctx context.Context, day Day, names []segmentName) error {
	known := c.readDay(day)
	live, err := c.live(ctx, known, names)
	if err != nil {
		return err
	}
	if day < DayOf(c.options.Now())-1 {
		defer known.forget(names)
	}
	if known.damaged || known.lost {
		c.mutex.Lock()
		c.partial[day] = true
		c.mutex.Unlock()
	}
	segments, again, err := c.uncounted(ctx, known, live)
	if err != nil || len(segments) == 0 {
		return err
	}
	if again {
		segments = live
	}
	sum := newDayTally()
	sum.partial = known.damaged || known.lost
	for _, name := range segments {
		switch err := c.sum(ctx, known, name, sum); {
		case errors.Is(err, errDamaged):
			sum.partial, known.broken[name.text] = true, true
		case err != nil:
			return err
		default:
			delete(known.broken, name.text)
		}
	}
	c.addDay(day, known, segments, sum, again)
	return nil
}

// uncounted returns the segments of a day that are not in the counts. again says that the whole day has to
// be read: a merged segment has others in it that are in the counts.
func (c *Counter) uncounted(ctx context.Context, known *readDay, live []segmentName) (segments []segmentName, again bool, err error) {
	again = known.forgot
	for _, name := range live {
		if known.have[name.text] {
			continue
		}
		if known.broken[name.text] {
			err := c.sum(ctx, known, name, newDayTally())
			if errors.Is(err, errDamaged) {
				continue
			}
			if err != nil {
				return nil, false, err
			}
		}
		if merged := known.merged[name.text]; merged != nil {
			missing := func(text string) bool { return !known.have[text] }
			if !slices.ContainsFunc(merged.Replaces, missing) {
				known.have[name.text] = true
				continue
			}
			again = again || slices.ContainsFunc(merged.Replaces, func(text string) bool { return known.have[text] })
		}
		segments = append(segments, name)
	}
	return segments, again, nil
}

// addDay adds what the segments of a day have; again: in place of all that was counted of that day.
func (c *Counter) addDay(day Day, known *readDay, segments []segmentName, sum *dayTally, again bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if again {
		c.counts.drop(func(d Day) bool { return d == day })
		delete(c.partial, day)
		known.have, known.forgot = make(map[string]bool), false
	}
	for _, name := range segments {
		if known.broken[name.text] {
			continue
		}
		known.have[name.text] = true
		if merged := known.merged[name.text]; merged != nil {
			for _, replaced := range merged.Replaces {
				known.have[replaced] = true
			}
		}
	}
	if again {
		for _, w := range c.written {
			if w.day == day && !known.have[w.text] {
				known.have[w.text] = true
				sum.add(w.counts)
			}
		}
		if pending := c.pending[day]; pending != nil {
			sum.add(pending)
		}
	}
	if sum.partial {
		c.partial[day] = true
	}
	for u, n := range sum.uses {
		if u, ok := c.counts.add(day, u, n); !ok {
			c.notAll(day, u)
		}
	}
}

// forget forgets the names that are not listed any more. While a day lasts, and a listing may be
// late, they are kept: none of them must be added again. Later, that costs too much memory, and
// a day is read again if there is something new.
func (d *readDay) forget(names []segmentName) {
	have := make(map[string]bool, len(names))
	for _, name := range names {
		if d.have[name.text] {
			have[name.text] = true
		}
	}
	d.forgot = d.forgot || len(have) < len(d.have)
	d.have = have
}

// live returns the segments of a day that count: no parts, and none that another replaces.
func (c *Counter) live(ctx context.Context, known *readDay, names []segmentName) (live []segmentName, err error) {
	before := known.merged
	known.merged, known.damaged, known.lost = make(map[string]*segment), false, false
	for _, name := range names {
		if name.kind != ofDay {
			continue
		}
		merged := before[name.text]
		if merged == nil {
			loaded, err := c.load(ctx, name)
			if errors.Is(err, errDamaged) {
				known.damaged = true
				continue
			}
			if err != nil {
				known.merged = before
				return nil, err
			}
			merged = &segment{Parts: loaded.Parts, Replaces: loaded.Replaces}
		}
		known.merged[name.text] = merged
	}
	replaced := known.replaced(names)
	for _, name := range names {
		if name.kind != ofPart && !replaced[name.text] && (name.kind != ofDay || known.merged[name.text] != nil) {
			live = append(live, name)
		}
	}
	return live, nil
}

// replaced returns the segments that do not count, since a merged one has their counts. Of two
// merged ones that replace the same, the one that replaces more counts, if it has its parts:
// instances may have merged at the same time, or a storage stored one long after that was given up.
func (d *readDay) replaced(names []segmentName) map[string]bool {
	listed := make(map[string]bool)
	for _, name := range names {
		listed[name.text] = true
	}
	worth := func(text string) int {
		merged := d.merged[text]
		if slices.ContainsFunc(merged.Parts, func(part string) bool { return !listed[part] }) {
			return 0
		}
		return len(merged.Replaces)
	}
	byWorth := slices.SortedFunc(maps.Keys(d.merged), func(a, b string) int {
		return cmp.Or(cmp.Compare(worth(b), worth(a)), cmp.Compare(a, b))
	})
	named := make(map[string]bool)
	for _, merged := range d.merged {
		for _, text := range merged.Replaces {
			named[text] = true
		}
	}
	replaced, taken := make(map[string]bool), make(map[string]bool)
	for _, text := range byWorth {
		of, again, lost := d.merged[text].Replaces, false, false
		for _, t := range of {
			again, lost = again || taken[t], lost || !taken[t] && !listed[t]
		}
		if again && !named[text] {
			replaced[text], d.lost = true, d.lost || lost
			continue
		}
		for _, t := range of {
			replaced[t], taken[t] = true, taken[t] || !named[text]
		}
	}
	return replaced
}

// sum adds the counts of a segment and its parts.
func (c *Counter) sum(ctx context.Context, known *readDay, name segmentName, sum *dayTally) error {
	names := []segmentName{name}
	if merged := known.merged[name.text]; merged != nil {
		for _, text := range merged.Parts {
			part, ok := parseSegmentName(text)
			if !ok {
				return errDamaged
			}
			names = append(names, part)
		}
	}
	all := newDayTally()
	for _, of := range names {
		s, err := c.load(ctx, of)
		if errors.Is(err, errMerged) && of.kind == ofPart {
			// A segment is removed before its parts.
			if _, err := c.load(ctx, name); err == nil {
				return errDamaged
			}
		}
		if err != nil {
			return err
		}
		s.sumInto(all)
	}
	sum.add(all)
	return nil
}
