package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func (r *run) judge(ctx context.Context) error {
	workers := runtime.GOMAXPROCS(0)
	err := parallel(ctx, workers, len(r.providers), func(i int) error { return r.judgeProvider(ctx, r.providers[i]) })
	if err == nil {
		err = parallel(ctx, workers, len(r.modules), func(i int) error { return r.readModule(ctx, r.modules[i]) })
	}
	if err == nil {
		err = r.judgeModules(ctx)
	}
	return err
}

// judgeVersion judges what concerns the version, and reports whether it is on record, so that
// its bytes can be compared. used tells which of its packages are used.
func (r *run) judgeVersion(item *Item, s subject, used func(packageRecord) bool) (*record, bool) {
	record := r.records[s]
	var alarm *Alarm
	if record.place.log != nil {
		item.Log, alarm = record.place.log.URL(), r.alarms[record.place.log]
	}
	if alarm == nil {
		alarm, _ = errors.AsType[*Alarm](record.err)
	}
	switch {
	case alarm != nil:
		item.find(Unproven, "", fmt.Sprintf("its log is not what it was: %s", alarm.Kind))
		return record, false
	case errors.Is(record.err, errUnproven):
		item.find(Unproven, "", record.err.Error())
		return record, false
	case record.err != nil:
		item.set(Unanswered, record.err.Error())
		return record, false
	case !record.found && len(record.without) > 0 && !record.sought:
		item.set(NoLog, strings.Join(record.without, " and ")+" has no log")
		if r.RequireLog {
			item.find(WithoutLog, "", item.Why)
		}
		return record, false
	case !record.found:
		item.find(NotOnRecord, "", "the log has no entry of it that you may see")
		return record, false
	}
	if record.withdrawn {
		why := record.reason
		if why == "" {
			why = "the registry tells no reason"
		}
		item.find(Withdrawn, "", why)
	}
	if len(record.packages) == 0 {
		item.find(NotOnRecord, "", "the log has no package of it")
		return record, false
	}
	for _, p := range record.packages {
		if p.replaced {
			detail := "the log has two packages of it with other files or bytes"
			if p.platform != (address.Platform{}) {
				detail += ": " + p.platform.String()
			}
			item.find(Replaced, "", detail)
		}
	}
	if since := record.since(used); !since.IsZero() {
		item.Since = &since
		if age := r.Now.Sub(since); r.MinAge > 0 && age < r.MinAge { // the clock here may be behind
			item.find(TooYoung, "", fmt.Sprintf("it is offered since %s", since.Format(time.RFC3339)))
		}
	}
	item.Deprecated = record.notice
	return record, true
}

// named bounds how many hashes a finding names.
const named = 3

// judgeProvider compares the hashes of the lock file, and the packages that are installed.
func (r *run) judgeProvider(ctx context.Context, p providerItem) error {
	record, ok := r.judgeVersion(p.Item, subject{p.provider.Address, p.provider.Version}, p.provider.uses)
	if !ok {
		return nil
	}
	r.judgeHashes(ctx, p, record)
	for _, installed := range p.provider.Packages {
		if err := r.judgePackage(ctx, p.Item, record, installed); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(p.provider.Hashes, wire.IsCompared) && len(p.provider.Packages) == 0 {
		p.find(OtherBytes, p.From[0], "there is nothing to compare: the lock file has no hashes of a scheme that clients know, and no package is installed")
	}
	return nil
}

// uses reports whether a package is installed, or the lock file has a hash of it.
func (p Provider) uses(one packageRecord) bool {
	return slices.ContainsFunc(p.Packages, func(i InstalledPackage) bool { return i.Platform == one.platform }) ||
		slices.ContainsFunc(p.Hashes, func(hash string) bool { return slices.Contains(one.h1, hash) || slices.Contains(one.zh, hash) })
}

func (r *run) judgeHashes(ctx context.Context, p providerItem, record *record) {
	h1, zh := record.hashes(nil)
	known := slices.Concat(h1, zh)
	var missing []string
	for _, hash := range p.provider.Hashes {
		if wire.IsCompared(hash) && !slices.Contains(known, hash) {
			missing = append(missing, hash)
		}
	}
	if len(missing) == 0 {
		return
	}
	why := "the registry serves no SHA256SUMS of it"
	if record.shasums != "" {
		sums, err := record.place.shasums(ctx, string(p.provider.Address.Hostname), p.provider.Version, record.shasums)
		failed, isUnanswered := errors.AsType[*UnansweredError](err)
		switch {
		case isUnanswered:
			p.set(Unanswered, failed.Error())
			return
		case err != nil:
			why = err.Error()
		case !slices.ContainsFunc(slices.Collect(maps.Values(sums)), func(sum wire.SHA256) bool { return slices.Contains(zh, sum.ZH()) }):
			why = "the SHA256SUMS that is served lists no package that is on record"
		default:
			listed := record.unentered(p.provider.Address.Name, p.provider.Version, sums)
			missing = slices.DeleteFunc(missing, func(hash string) bool { return slices.Contains(listed, hash) })
			why = "they are not in SHA256SUMS either"
		}
	}
	if len(missing) == 0 {
		return
	}
	total := len(missing)
	if len(missing) > named {
		missing = append(missing[:named], fmt.Sprintf("%d more", total-named))
	}
	p.find(OtherBytes, p.From[0], fmt.Sprintf("%d of %d hashes in the lock file are in no entry, and %s: %s", total, len(p.provider.Hashes), why, strings.Join(missing, ", ")))
}

// unentered returns the hashes in SHA256SUMS of the files that have no entry. For a platform with
// an entry, the entry alone counts.
func (r *record) unentered(name, version string, sums wire.Checksums) (hashes []string) {
	entered := make(map[string]bool)
	for _, p := range r.packages {
		entered[address.PackageName(name, version, p.platform)] = true
	}
	for file, sum := range sums {
		if !entered[file] {
			hashes = append(hashes, sum.ZH())
		}
	}
	return hashes
}

func (r *run) judgePackage(ctx context.Context, item *Item, record *record, installed InstalledPackage) error {
	h1, _ := record.hashes(&installed.Platform)
	if len(h1) == 0 {
		item.find(NotOnRecord, installed.Folder, "the log has no package for "+installed.Platform.String())
		return nil
	}
	c, err := readContent(ctx, r.Client.Cache, installed.Folder, true)
	if err != nil {
		return fmt.Errorf("reading an installed provider: %w", err)
	}
	found := c.h1()
	switch {
	case found == "":
		item.find(OtherBytes, installed.Folder, "the name of an installed file has a line feed")
	case !slices.Contains(h1, found) || len(c.Links) > 0:
		item.find(OtherBytes, installed.Folder, fmt.Sprintf("the installed files have the hash %s, and on record is %s", found, strings.Join(h1, " or ")))
	}
	return nil
}

// readModule reads the packages of a module as they lie there.
func (r *run) readModule(ctx context.Context, m *moduleItem) error {
	for _, call := range m.calls {
		c, err := readContent(ctx, r.Client.Cache, call.Folder, false)
		if err != nil {
			return fmt.Errorf("reading an installed module: %w: let `init` install it again", err)
		}
		m.contents = append(m.contents, c)
	}
	return nil
}

// judgeModules compares the installed modules with what is on record. A package that is as it
// was is also what its copies are compared with.
func (r *run) judgeModules(ctx context.Context) error {
	whole := make(map[subject]content)
	for _, m := range r.modules {
		h1, _ := r.records[m.subject].hashes(nil)
		for _, c := range m.contents {
			if len(c.Links) == 0 && slices.Contains(h1, c.h1()) {
				whole[m.subject] = c
			}
		}
	}
	return parallel(ctx, requests, len(r.modules), func(i int) error {
		m := r.modules[i]
		record, ok := r.judgeVersion(m.Item, m.subject, nil)
		if !ok {
			return ctx.Err()
		}
		for n, call := range m.calls {
			if err := r.judgeCall(ctx, m, record, call, m.contents[n], whole[m.subject]); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

func (r *run) judgeCall(ctx context.Context, m *moduleItem, record *record, call Module, c, whole content) error {
	h1, zh := record.hashes(&address.Platform{})
	if len(c.Links) == 0 && slices.Contains(h1, c.h1()) {
		return nil
	}
	if whole.Files != nil && len(c.differences(whole)) == 0 {
		return nil
	}
	const otherPackage = "it is not the package that is on record"
	pack, err := record.place.modulePackage(ctx, m.version, h1, zh)
	failed, isUnanswered := errors.AsType[*UnansweredError](err)
	_, isAtFault := errors.AsType[*archive.PackageError](err)
	switch {
	case err == nil:
		if differences := c.differences(pack); len(differences) > 0 {
			m.find(OtherBytes, call.Folder, otherPackage, differences...)
		}
	case whole.Files != nil:
		m.find(OtherBytes, call.Folder, otherPackage, c.differences(whole)...)
	case isUnanswered:
		m.set(Unanswered, fmt.Sprintf("%s is not the package itself, which cannot be fetched to compare the files: %s", call.Folder, failed))
	case isAtFault || errors.Is(err, errNotServed) || errors.Is(err, errOtherServed):
		m.find(OtherBytes, call.Folder, fmt.Sprintf("%s, and which files differ is not known: %s", otherPackage, err))
	default:
		return fmt.Errorf("fetching a module to compare the files: %w", err)
	}
	return nil
}
