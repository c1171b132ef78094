package mirror

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An unusedSince knows what has not been downloaded since a day.
type unusedSince struct {
	since string               // 2006-01-02, which can be compared
	last  map[versionOf]string // the day when a version was downloaded last
}

// A versionOf is a version of an address, as the server names them.
type versionOf struct{ address, version string }

// unusedFlag asks the running server what has not been downloaded for the period of the flag. It
// returns nil without the flag.
func unusedFlag(fl caddycmd.Flags, root string) (*unusedSince, error) {
	text := fl.String("unused")
	if !fl.Changed("unused") {
		if fl.Changed("address") {
			return nil, errors.New("--address: it belongs to --unused")
		}
		return nil, nil
	}
	days, err := parsePeriod(text)
	if err != nil {
		return nil, fmt.Errorf("--unused: %w", err)
	}
	all, err := remote.Usage(fl, 0)
	if err != nil {
		return nil, err
	}
	of := all[root]
	switch {
	case all[root+"#2"] != nil:
		return nil, fmt.Errorf("--unused: the server counts downloads from several trees with the root %s: it is not known which of them is meant", root)
	case of == nil:
		return nil, fmt.Errorf("--unused: the server counts no downloads from %s: give --root as its configuration has it", root)
	}
	return unusedFor(of, days, time.Now())
}

// parsePeriod reads a number of days, as 90d or 1y.
func parsePeriod(text string) (days int, err error) {
	for unit, length := range map[string]int{"d": 1, "y": 365} {
		number, ok := strings.CutSuffix(text, unit)
		if n, err := strconv.Atoi(number); ok && err == nil && n > 0 && n <= 100_000/length {
			return n * length, nil
		}
	}
	return 0, fmt.Errorf("%q is not a period: write it like 90d or 1y", text)
}

// unusedFor returns what has not been downloaded for a number of days on which downloads were
// counted. What happened on other days is not known, and the last days have to be: a server whose
// storage fails does not know what the clients of others have used since.
func unusedFor(of *wire.TreeUsage, days int, now time.Time) (*unusedSince, error) {
	if len(of.Counted) <= days {
		return nil, fmt.Errorf("--unused: downloads were counted on %s, so it is not known what was unused on %s: wait, give a shorter period, or have usage keep counts for longer",
			cli.Count(len(of.Counted), "day"), cli.Count(days, "day"))
	}
	if last := of.Counted[len(of.Counted)-1]; last < now.UTC().AddDate(0, 0, -1).Format(time.DateOnly) {
		return nil, fmt.Errorf("--unused: it is not known what was downloaded after %s: see the server's log, which says why, and try again", last)
	}
	u := &unusedSince{since: of.Counted[len(of.Counted)-days], last: make(map[versionOf]string)}
	for _, a := range of.Addresses {
		for _, v := range a.Versions {
			u.last[versionOf{a.Address, v.Version}] = v.LastUsed
		}
	}
	return u, nil
}

// plan plans to remove what is unused and not needed otherwise.
func (u *unusedSince) plan(t *treeReleases, needed []pull.Lock, options pull.PruneOptions) (pull.Pruning, error) {
	for i := range t.all {
		r := &t.all[i]
		arrived, err := t.arrivalDay(r)
		if err != nil {
			return pull.Pruning{}, err
		}
		last := u.lastUsed(r)
		switch {
		case last >= u.since || arrived >= u.since:
			needed = append(needed, pull.Lock{Address: r.Address, Version: r.Version})
		case last == "":
			r.Why = "not used in the time that is known, here since " + arrived
		default:
			r.Why = "last used on " + last
		}
	}
	return pull.PlanUnused(t.all, needed, options), nil
}

// lastUsed returns the day on which a release was used last; empty: on none that is known. What
// the server takes for its own, it counts without a hostname.
func (u *unusedSince) lastUsed(r *pull.StoredRelease) string {
	hosted := r.Address.WithHostname("")
	return max(u.last[versionOf{r.Address.String(), r.Version}], u.last[versionOf{hosted.String(), r.Version}])
}

// arrivalDay returns the day on which the last package of a release came into the tree, as far as
// the file system knows it.
func (t *treeReleases) arrivalDay(r *pull.StoredRelease) (day string, err error) {
	for _, file := range r.Files {
		if !isPackage(file) && !t.unpacked[file] {
			continue
		}
		info, err := t.in.Lookup(file)
		if err != nil {
			return "", unread(file, err)
		}
		stamp := tree.StampOf(info)
		day = max(day, time.Unix(0, max(stamp.ModTime, stamp.Changed)).UTC().Format(time.DateOnly))
	}
	if day == "" {
		return "", errors.New("nothing is removed: a release without a package was found: try again")
	}
	return day, nil
}
