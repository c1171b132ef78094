package caddyfile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"
)

// A word begins a line in the block of an option.
type word struct {
	name  string
	parse parser
}

// A parser parses a line, at its first word.
type parser func(*caddyfile.Dispenser) error

// parseBlock parses the block of an option, if it has one.
func parseBlock(d *caddyfile.Dispenser, option string, words ...word) error {
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		i := slices.IndexFunc(words, func(w word) bool { return w.name == d.Val() })
		if i < 0 {
			var names []string
			for _, w := range words {
				names = append(names, w.name)
			}
			return d.Errf("unrecognized word '%s' in %s, the allowed ones are: %s", d.Val(), option, strings.Join(names, ", "))
		}
		if err := words[i].parse(d); err != nil {
			return err
		}
	}
	return nil
}

// checked checks what has been parsed, so that an error has the line.
func checked(parse parser, check func() error) parser {
	return func(d *caddyfile.Dispenser) error {
		if err := parse(d); err != nil {
			return err
		}
		if err := check(); err != nil {
			return d.WrapErr(err)
		}
		return nil
	}
}

// argument returns a word and its only argument. The word may stand once; isSet says that it has stood before.
func argument(d *caddyfile.Dispenser, isSet bool) (name, value string, err error) {
	name = d.Val()
	switch {
	case isSet:
		err = d.Errf("%s is already specified", name)
	case !d.AllArgs(&value):
		err = d.ArgErr()
	}
	return name, value, err
}

// text parses a word with one argument, which may stand once.
func text(field *string) parser {
	return func(d *caddyfile.Dispenser) error {
		name, value, err := argument(d, *field != "")
		if err != nil {
			return err
		}
		if value == "" {
			return d.Errf("%s is empty", name)
		}
		*field = value
		return nil
	}
}

// list parses a word with at least one argument. If the word is repeated, the arguments add up.
func list(field *[]string) parser {
	return func(d *caddyfile.Dispenser) error {
		words := d.RemainingArgs()
		if len(words) == 0 {
			return d.ArgErr()
		}
		*field = append(*field, words...)
		return nil
	}
}

// size parses a word with one argument, a number of bytes such as 500GiB, which may stand once.
func size(field *int64) parser {
	return func(d *caddyfile.Dispenser) error {
		name, value, err := argument(d, *field != 0)
		if err != nil {
			return err
		}
		size, err := humanize.ParseBytes(value)
		if err != nil || size == 0 || size > math.MaxInt64 {
			return d.Errf("%s: '%s' is not a size, write it like 500GiB", name, value)
		}
		*field = int64(size)
		return nil
	}
}

// duration parses a word with one argument, a positive duration, which may stand once.
func duration(field *caddy.Duration) parser {
	return func(d *caddyfile.Dispenser) error {
		name, value, err := argument(d, *field != 0)
		if err != nil {
			return err
		}
		duration, err := caddy.ParseDuration(value)
		if err != nil {
			return d.WrapErr(fmt.Errorf("%s: %w", name, err))
		}
		if duration <= 0 {
			return d.Errf("%s must be positive, not '%s'", name, value)
		}
		*field = caddy.Duration(duration)
		return nil
	}
}
