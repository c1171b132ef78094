package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

// watch prints the entries of a log as they come, and keeps what it has seen.
func watch(ctx context.Context, cmd *cobra.Command, fl caddycmd.Flags, o *verify.Options, file string) error {
	namespaces, err := fl.GetStringSlice("namespace")
	if err != nil {
		return err
	}
	p := entryPrinter{cmd.OutOrStdout(), cmd.ErrOrStderr(), fl.Bool("json"), namespaces}
	var w *verify.Watcher // nil: the log has not answered yet
	wrong := false
	told := 0 // of the keys that also sign
	for {
		var news []verify.Entry
		var conflicts []verify.Conflict
		var pin verify.Pin
		if w == nil {
			w, err = o.Watch(ctx, fl.String("watch"))
		}
		if w != nil {
			news, conflicts, pin, err = w.Next(ctx)
		}
		failed, isUnanswered := errors.AsType[*verify.UnansweredError](err)
		_, isAlarm := errors.AsType[*verify.Alarm](err)
		switch {
		case err != nil && ctx.Err() != nil && !isAlarm && !fl.Bool("once"):
			return ended(cmd, wrong)
		case isUnanswered && !fl.Bool("once"):
			fmt.Fprintln(p.errs, cli.Printable(failed.Error()))
		case err != nil:
			return p.failed(cmd, err)
		default:
			if err := p.print(news, conflicts); err != nil {
				return err
			}
			wrong = wrong || len(conflicts) > 0
			if err := keep(o, file, pin, p.errs); err != nil {
				return err
			}
			if more := w.MoreKeys(); len(more) > told {
				fmt.Fprint(p.errs, alsoSigned(cli.Printable(pin.Origin), more))
				told = len(more)
			}
		}
		if fl.Bool("once") {
			return ended(cmd, wrong)
		}
		select {
		case <-ctx.Done():
			return ended(cmd, wrong)
		case <-time.After(fl.Duration("interval")):
		}
	}
}

// ended ends the command, after it has printed all that is wrong.
func ended(cmd *cobra.Command, wrong bool) error {
	if wrong {
		return cli.Exit(cmd, cli.ExitProblem)
	}
	return nil
}

// keep writes what was seen of the log.
func keep(o *verify.Options, file string, pin verify.Pin, errs io.Writer) error {
	at := slices.IndexFunc(o.Pins, func(p verify.Pin) bool { return p.Origin == pin.Origin })
	switch {
	case at < 0:
		fmt.Fprint(errs, cli.Wrap(fmt.Sprintf("The log %s is used for the first time here. It has %s: only those that come later are printed. What was seen is in %s.", cli.Printable(pin.Origin), cli.Count(pin.Size, "entry"), cli.Printable(file)), 0))
		for _, before := range pin.Replaces {
			fmt.Fprint(errs, cli.Wrap(fmt.Sprintf("It takes the place of %s, as was accepted by --update.", cli.Printable(before)), 0))
		}
	case o.Pins[at].Checkpoint == pin.Checkpoint && slices.Equal(o.Pins[at].Keys, pin.Keys) && slices.Equal(o.Pins[at].Hosts, pin.Hosts):
		return nil
	}
	before := o.Pins
	o.Pins = verify.Keep(slices.Clone(before), pin)
	return verify.UpdatePins(file, before, o.Pins)
}

// An entryPrinter prints entries as lines, or as JSON, one a line.
type entryPrinter struct {
	out, errs  io.Writer
	json       bool
	namespaces []string
}

// A watchedEntry is an entry as JSON.
type watchedEntry struct {
	Index    int64     `json:"index"`
	Time     time.Time `json:"time"`
	Event    string    `json:"event"`
	Address  string    `json:"address"`
	Version  string    `json:"version"`
	Platform string    `json:"platform,omitempty"`
	Hashes   []string  `json:"hashes,omitempty"`
	Conflict *int64    `json:"conflict,omitempty"` // the number of the entry that has other files
}

func (p entryPrinter) print(news []verify.Entry, conflicts []verify.Conflict) error {
	with := make(map[int64]int64)
	for _, c := range conflicts {
		with[c.Second.Index] = c.First
		if !slices.ContainsFunc(news, func(e verify.Entry) bool { return e.Index == c.Second.Index }) {
			news = append(news, c.Second)
		}
	}
	for _, e := range news {
		first, isConflict := with[e.Index]
		concerns := isConflict || e.Succession != nil || len(p.namespaces) == 0 || slices.Contains(p.namespaces, e.Leaf.Address.Namespace)
		if !concerns {
			continue
		}
		if err := p.printEntry(e, first, isConflict); err != nil {
			return err
		}
	}
	return nil
}

func (p entryPrinter) printEntry(e verify.Entry, first int64, isConflict bool) error {
	l := e.Leaf
	if p.json {
		entry := watchedEntry{Index: e.Index, Time: l.Time, Event: string(l.Event), Address: l.Address.String(), Version: l.Version, Hashes: l.Hashes}
		if l.Platform.OS != "" {
			entry.Platform = l.Platform.String()
		}
		if isConflict {
			entry.Conflict = &first
		}
		if s := e.Succession; s != nil {
			entry.Time, entry.Event, entry.Address = s.Time, "continues", s.Origin
		}
		return json.NewEncoder(p.out).Encode(entry)
	}
	if s := e.Succession; s != nil {
		_, err := fmt.Fprintf(p.out, "the log was begun on %s in place of %s, which had %s\n", s.Time.Format(time.RFC3339), cli.Printable(s.Origin), cli.Count(s.Size, "entry"))
		return err
	}
	if l.Event == "" {
		_, err := fmt.Fprintf(p.out, "entry %d is written by a later version of the registry: %s\n", e.Index, cli.Printable(e.Text))
		return err
	}
	kind, platform := "provider", ""
	if l.Address.IsModule() {
		kind = "module"
	} else if l.Platform.OS != "" {
		platform = " " + l.Platform.String()
	}
	_, err := fmt.Fprintf(p.out, "%s %s %s %s %s%s\n", l.Time.Format(time.RFC3339), l.Event, kind, cli.Printable(l.Address.String()), cli.Printable(l.Version), platform)
	switch {
	case err != nil:
	case !isConflict && len(l.Hashes) > 2: // one "h1:" may be of other files, and only who has the zip can tell
		_, err = fmt.Fprintln(p.out, "    it has several h1:, as some zips do: only its zh: tells which package it is")
	case !isConflict:
	case first == e.Index:
		_, err = fmt.Fprintf(p.out, "    ENTRY %d HAS THE FILES OF TWO PACKAGES\n", e.Index)
	default:
		_, err = fmt.Fprintf(p.out, "    ENTRY %d HAS OTHER FILES THAN ENTRY %d\n", e.Index, first)
	}
	return err
}

// failed prints an alarm.
func (p entryPrinter) failed(cmd *cobra.Command, err error) error {
	alarm, ok := errors.AsType[*verify.Alarm](err)
	if !ok {
		return err
	}
	if p.json {
		if err := json.NewEncoder(p.out).Encode(map[string]any{"alarm": alarm}); err != nil {
			return err
		}
	} else {
		io.WriteString(p.out, alarmText(alarm))
	}
	return cli.Exit(cmd, cli.ExitProblem)
}
