package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// maxMinutes is the number of segments of minutes after which the segments of a day are merged.
	maxMinutes = 32

	// maxUnmerged is the number of segments of a day after which it is told that the lock for merging
	// them is not to be had.
	maxUnmerged = 8 * maxMinutes

	// mergedAtOnce limits how many segments are merged at once.
	mergedAtOnce = 1024

	// dayEnds is when all instances have written what they have counted on the day before.
	dayEnds = 10 * time.Minute

	// mergePatience is how long a merge waits for another instance that merges.
	mergePatience = time.Minute
)

// errLocked means that another instance merges, or was killed while it did.
var errLocked = errors.New("segments cannot be merged")

// mergeSegments merges the segments of days with many, and of days that are over. The error is
// the first of a day.
func (c *Counter) mergeSegments(ctx context.Context, days map[Day][]segmentName) (failed error) {
	for day, names := range days {
		if !c.worthMerging(day, names) || len(names) == c.readDay(day).unmerged {
			continue
		}
		err := c.mergeDay(ctx, day)
		if errors.Is(err, errLocked) { // for all days: the next minute tries again
			if len(names) > maxUnmerged {
				failed = cmp.Or(failed, err)
			}
			break
		}
		if err != nil && !errors.Is(err, errMerged) {
			failed = cmp.Or(failed, err)
		}
		failed = cmp.Or(failed, c.writeInTime(ctx))
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

func (c *Counter) worthMerging(day Day, names []segmentName) bool {
	minutes, merged := 0, 0
	for _, name := range names {
		switch name.kind {
		case ofMinute:
			minutes++
		case ofDay:
			merged++
		}
	}
	return minutes > maxMinutes || c.isOver(day) && minutes+merged > 1
}

func (c *Counter) isOver(day Day) bool {
	return !c.options.Now().Before((day + 1).Time().Add(dayEnds))
}

// mergeDay replaces the segments of a day by one, which may have parts. It works also if another
// instance merges at the same time, since the lock of some storages is lost when they fail: a
// merged segment stays only if all that it replaces is still there after it was stored,
// and if no other replaces any of that. It replaces what an earlier merge has left, too.
func (c *Counter) mergeDay(ctx context.Context, day Day) error {
	waiting, cancel := context.WithTimeout(ctx, mergePatience)
	unlock, err := c.options.Storage.Lock(waiting)
	cancel()
	switch {
	case err != nil && waiting.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("%w: %w", errLocked, err)
	case err != nil:
		return err
	}
	defer unlock()
	names, err := c.listDay(ctx, day)
	if err != nil || !c.worthMerging(day, names) { // another instance has merged them
		return err
	}
	known := &readDay{merged: make(map[string]*segment)}
	live, err := c.live(ctx, known, names)
	if err != nil {
		return err
	}
	var from []string
	sum := newDayTally()
	sum.partial = known.lost
	for _, name := range live[:min(len(live), mergedAtOnce)] {
		switch err := c.sum(ctx, known, name, sum); {
		case errors.Is(err, errDamaged): // it stays until its day is kept no longer
		case err != nil:
			return err
		default:
			from = append(from, name.text)
		}
	}
	rest, parts := known.rest(names, live)
	if len(from) == 0 || len(from)+len(rest) < 2 {
		c.readDay(day).unmerged = len(names)
		return nil
	}
	from = append(from, rest...)
	stored, err := c.storeMerged(ctx, day, sum, slices.Concat(from, c.mergedEarlier(known, day, from)))
	if err != nil {
		return err // parts without the segment that names them are removed by the next merge
	}
	if alone, err := c.isAlone(ctx, day, stored, from); err != nil {
		return err
	} else if !alone {
		return c.removeAll(ctx, stored)
	}
	for _, text := range from {
		gone := []segmentName{{text: text}} // before its parts, which do not count without it
		if merged := known.merged[text]; merged != nil {
			for _, part := range merged.Parts {
				gone = append(gone, segmentName{text: part})
			}
		}
		if err := c.removeAll(ctx, gone); err != nil {
			return err
		}
	}
	return c.removeAll(ctx, parts)
}

// mergedEarlier returns the segments that the merged ones among others replace, which have gone. An
// instance that got no answer from the storage stores such a segment again, later on that day.
func (c *Counter) mergedEarlier(known *readDay, day Day, from []string) (earlier []string) {
	if c.isOver(day) {
		return nil
	}
	for _, text := range from {
		if merged := known.merged[text]; merged != nil {
			earlier = append(earlier, merged.Replaces...)
		}
	}
	return earlier[:min(len(earlier), mergedAtOnce)]
}

func (c *Counter) removeAll(ctx context.Context, names []segmentName) error {
	for _, name := range names {
		if err := c.remove(ctx, name.text); err != nil {
			return err
		}
	}
	return nil
}

// listDay lists the segments of a day.
func (c *Counter) listDay(ctx context.Context, day Day) (names []segmentName, err error) {
	texts, err := c.options.Storage.List(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(texts)
	for _, text := range texts {
		if name, ok := parseSegmentName(text); ok && name.day == day {
			names = append(names, name)
		}
	}
	return names, nil
}

// rest returns what an earlier merge has left when it was killed: segments that have been
// replaced, and parts of none. The merge may also be under way, in an instance that has lost the
// lock, and take back what it stored. So nothing is removed before another segment has its counts.
func (d *readDay) rest(names, live []segmentName) (replaced []string, parts []segmentName) {
	needed := make(map[string]bool)
	for _, name := range live {
		needed[name.text] = true
	}
	for _, merged := range d.merged {
		for _, part := range merged.Parts {
			needed[part] = true
		}
	}
	for _, name := range names {
		switch {
		case needed[name.text]:
		case name.kind == ofPart && !d.damaged: // it may be a part of what is damaged
			parts = append(parts, name)
		case name.kind == ofMinute || d.merged[name.text] != nil:
			replaced = append(replaced, name.text)
		}
	}
	return replaced, parts
}

// storeMerged stores counts as one segment with its parts, and returns their names: the segment
// first, although it is stored last. Nothing counts before that.
func (c *Counter) storeMerged(ctx context.Context, day Day, sum *dayTally, replaces []string) (stored []segmentName, err error) {
	var first *segment
	for s := range split(sum.uses, c.most) {
		if first == nil {
			first = s
			continue
		}
		content := s.encode()
		name := nameSegment(day, ofPart, content)
		if err := c.options.Storage.Store(ctx, name.text, content); err != nil {
			return nil, err
		}
		first.Parts = append(first.Parts, name.text)
		stored = append(stored, name)
	}
	first.Replaces, first.Partial = replaces, sum.partial
	content := first.encode()
	name := nameSegment(day, ofDay, content)
	if err := c.options.Storage.Store(ctx, name.text, content); err != nil {
		return nil, err
	}
	return append([]segmentName{name}, stored...), nil
}

// isAlone reports whether a new segment and its parts are there, with all that it replaces, and no
// other merged segment has any of that.
func (c *Counter) isAlone(ctx context.Context, day Day, made []segmentName, from []string) (bool, error) {
	names, err := c.listDay(ctx, day)
	if err != nil {
		return false, err
	}
	listed := make(map[string]bool)
	for _, name := range names {
		listed[name.text] = true
	}
	for _, name := range made {
		if !listed[name.text] {
			return false, nil
		}
	}
	for _, text := range from {
		if !listed[text] {
			return false, nil
		}
	}
	for _, name := range names {
		if name.kind != ofDay || name == made[0] || slices.Contains(from, name.text) {
			continue
		}
		other, err := c.load(ctx, name)
		if errors.Is(err, errMerged) || err == nil && slices.ContainsFunc(other.Replaces, func(text string) bool { return slices.Contains(from, text) }) {
			return false, nil
		}
		if err != nil && !errors.Is(err, errDamaged) {
			return false, err
		}
	}
	return true, nil
}
