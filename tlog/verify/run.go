package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// Options say what to check, and by what.
type Options struct {
	Finder

	// MinAge is how long a version must have been on record. Those that were there when the
	// log was begun have no age, and are old enough.
	MinAge time.Duration

	// RequireLog makes it a finding that a registry has no log.
	RequireLog bool

	Now time.Time
}

// requests bounds how many requests are sent at once.
const requests = 16

// Run checks projects. It returns what is to be kept of logs: at their first use or for an
// update something has changed.
func Run(ctx context.Context, o *Options, projects []Project) (r *Report, pins []Pin, changed bool, err error) {
	run := &run{Options: o, records: make(map[subject]*record)}
	run.collect(projects)
	if err := run.lookUp(ctx); err != nil {
		return nil, nil, false, err
	}
	run.checkLogs(ctx)
	if err := run.judge(ctx); err != nil {
		return nil, nil, false, err
	}
	pins, changed = run.keep()
	o.Client.Cache.Save()
	r = &Report{Items: run.items(), Logs: run.logs, Kept: o.Client.Kept(), Folders: []string{}}
	for _, p := range projects {
		r.Folders = append(r.Folders, p.Folder)
	}
	return r, pins, changed, nil
}

// A run has the items of all projects.
type run struct {
	*Options
	subjects  []subject
	records   map[subject]*record
	providers []providerItem
	modules   []*moduleItem
	strays    []*Item
	logs      []LogReport
	alarms    map[*Log]*Alarm
}

type providerItem struct {
	*Item
	provider Provider
}

// A moduleItem has the calls of one version of a module in a project.
type moduleItem struct {
	*Item
	subject
	calls    []Module
	contents []content
}

func (r *run) collect(projects []Project) {
	for _, p := range projects {
		for _, one := range p.Providers {
			r.add(subject{one.Address, one.Version})
			item := &Item{Kind: "provider", Address: one.Address.String(), Version: one.Version, Folder: p.Folder, From: []string{one.From}, Status: OK, Findings: []Finding{}}
			r.providers = append(r.providers, providerItem{item, one})
		}
		known := make(map[subject]*moduleItem)
		for _, one := range p.Modules {
			s := subject{one.Address, one.Version}
			r.add(s)
			item := known[s]
			if item == nil {
				item = &moduleItem{Item: &Item{Kind: "module", Address: one.Address.String(), Version: one.Version, Folder: p.Folder, Status: OK, Findings: []Finding{}}, subject: s}
				known[s] = item
				r.modules = append(r.modules, item)
			}
			item.From = append(item.From, one.Key)
			item.calls = append(item.calls, one)
		}
		for _, one := range p.Strays {
			r.addStray(p.Folder, one)
		}
	}
}

// addStray adds what is wrong with a call, whatever the log has of its module.
func (r *run) addStray(folder string, s lockfile.Stray) {
	item := &Item{Kind: "module", Address: s.Source, Version: s.Version, Folder: folder, From: []string{s.Key}}
	for _, m := range r.modules {
		if m.Folder == folder && s.Version != "" && slices.Contains(m.From, s.Key) {
			item = m.Item
		}
	}
	if s.Dir == "" {
		item.find(NotOnRecord, s.Key, "modules.json has no version of it: run `init` again")
	} else {
		item.find(OtherBytes, s.Key, fmt.Sprintf("the client loads another folder, %s, than where the module was installed: let `init` install it again", s.Dir))
	}
	if s.Version == "" {
		r.strays = append(r.strays, item)
	}
}

func (r *run) add(s subject) {
	if _, known := r.records[s]; !known {
		r.records[s] = nil
		r.subjects = append(r.subjects, s)
	}
}

func (r *run) lookUp(ctx context.Context) error {
	// Tokens are sent to a log when all hosts are known that lead to it.
	records := make([]*record, len(r.subjects))
	err := parallel(ctx, requests, len(records), func(i int) error {
		_, _, err := r.places(ctx, r.subjects[i].address)
		if _, ok := errors.AsType[*UnansweredError](err); ok || ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	})
	if err != nil {
		return err
	}
	err = parallel(ctx, requests, len(records), func(i int) error {
		records[i] = r.Finder.lookUp(ctx, r.subjects[i])
		return ctx.Err()
	})
	for i, s := range r.subjects {
		r.records[s] = records[i]
	}
	if err == nil {
		err = r.askNotices(ctx)
	}
	return err
}

// askNotices asks for the list of versions of each address, once.
func (r *run) askNotices(ctx context.Context) error {
	byList := make(map[string][]subject)
	for _, s := range r.subjects {
		if record := r.records[s]; record.found {
			list := record.place.service("versions").String()
			byList[list] = append(byList[list], s)
		}
	}
	lists := slices.Collect(maps.Values(byList))
	return parallel(ctx, requests, len(lists), func(i int) error {
		if notice := r.records[lists[i][0]].place.notices(ctx); notice != nil {
			for _, s := range lists[i] {
				r.records[s].notice = notice(s.version)
			}
		}
		return ctx.Err()
	})
}

func parallel(ctx context.Context, limit, n int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(limit)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(i) })
	}
	return errors.Join(group.Wait(), ctx.Err())
}

// checkLogs checks the logs themselves.
func (r *run) checkLogs(ctx context.Context) {
	r.alarms = make(map[*Log]*Alarm)
	logs := r.Finder.Logs()
	errs := make([]error, len(logs))
	for i, l := range logs {
		if errs[i] = l.begin(ctx); errs[i] == nil {
			errs[i] = l.proveCheckpoints(ctx)
		}
		for j, other := range logs[:i] {
			if errs[i] == nil && errs[j] == nil && l.origin == other.origin {
				errs[i] = l.agree(ctx, other)
			}
		}
	}
	for i, l := range logs {
		err := errs[i]
		report := LogReport{URL: l.URL(), Origin: shortened(l.origin, maxReason), Size: l.head.Size, Keys: l.allKeys(), More: l.moreKeys(l.head.signed), Pinned: "unchanged"}
		if report.Keys == nil {
			report.Keys = []string{}
		}
		if report.Alarm = l.alarmed(); report.Alarm != nil {
			r.alarms[l] = report.Alarm
		} else if err != nil {
			report.Error = err.Error()
		}
		r.logs = append(r.logs, report)
	}
}

// keep returns what is to be kept of logs. Nothing changes for a log that is not what it was.
func (r *run) keep() (pins []Pin, changed bool) {
	pins = slices.Clone(r.Pins)
	for i, l := range r.Finder.Logs() {
		report := &r.logs[i]
		if report.Alarm != nil || report.Error != "" {
			report.Pinned = "kept"
			continue
		}
		if len(l.replaces) > 0 {
			report.Before = l.replaces
			pins, changed = without(pins, l.replaces), true
		}
		next := Pin{URL: l.URL(), Hosts: l.ledBy(), Keys: l.allKeys(), Signed: l.head.signed, Checkpoint: l.head.Checkpoint}
		before := pinOf(pins, l.origin)
		switch {
		case before == nil:
			pins, changed, report.Pinned = append(pins, next), true, "first use"
		case r.Update && l.pin != nil && before.Size <= next.Size:
			if next.Size > before.Size || !slices.Equal(next.Keys, before.Keys) {
				next.addHosts(before.Hosts) // which may have led to the log at another URL
				*before, changed, report.Pinned = next, true, "updated"
			}
		}
		if before != nil && before.addHosts(l.foundBy) {
			changed = true
			if report.Pinned == "unchanged" {
				report.Pinned = "hosts added"
			}
		}
	}
	return pins, changed
}

func (r *run) items() []*Item {
	items := []*Item{}
	for _, p := range r.providers {
		items = append(items, p.Item)
	}
	for _, m := range r.modules {
		items = append(items, m.Item)
	}
	items = append(items, r.strays...)
	slices.SortStableFunc(items, func(a, b *Item) int { return strings.Compare(a.Folder, b.Folder) })
	return items
}
