package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
)

// PinsName is the file in which a repository keeps the checkpoints that it has seen.
const PinsName = ".terraform-registry.checkpoint"

// A Pin is a log as a repository has seen it last. In the file it is
//
//	log https://registry.example.com/v1/tlog/
//	host registry.example.com
//	key registry.example.com/v1/tlog+48c54eab+AV…
//
//	registry.example.com/v1/tlog
//	52
//	q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=
//
//	— registry.example.com/v1/tlog 48c54eab…
//
// The part from the line with the origin alone on is a signed note. While keys rotate there
// are several lines with keys. The discovery of a host has led to the log.
type Pin struct {
	URL    string
	Hosts  []string
	Keys   []string // of the log, as lines
	Signed []byte   // the checkpoint with its signatures
	tlog.Checkpoint

	// Replaces has the names of logs whose pins go: the log was begun in their place, and the
	// user has accepted that. The file does not have it.
	Replaces []string
}

// without returns pins without those that a log replaces.
func without(pins []Pin, replaced []string) []Pin {
	return slices.DeleteFunc(pins, func(p Pin) bool { return slices.Contains(replaced, p.Origin) })
}

// Keep adds a pin, or replaces the one of the same log.
func Keep(pins []Pin, p Pin) []Pin {
	pins = without(pins, append(p.Replaces, p.Origin))
	p.Replaces = nil
	return append(pins, p)
}

const (
	pinsHeader = "# What this repository has seen of transparency logs, for `caddy-terraform-registry verify`.\n" +
		"# Commit it: then the log cannot be shown otherwise to this repository than to all others.\n\n"
	maxPins    = 1 << 20 // bytes
	maxKeys    = tlog.MaxKeys
	maxHosts   = 64   // of a log
	maxKeyLine = 1024 // bytes
)

// ReadPins reads the file with that name. It has none if the file does not exist.
func ReadPins(name string) ([]Pin, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxPins+1))
	if err != nil {
		return nil, err
	}
	pins, err := parsePins(content)
	if err == nil && len(bytes.TrimSpace(content)) == 0 { // it was cut off: it begins with a comment
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: restore it from the repository", name, err)
	}
	return pins, nil
}

func parsePins(content []byte) (pins []Pin, err error) {
	if len(content) > maxPins {
		return nil, fmt.Errorf("it has more than %d bytes", maxPins)
	}
	var parts []string
	for part := range strings.SplitSeq(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n\n") {
		if part = strings.Trim(part, "\n"); part != "" && !strings.HasPrefix(part, "#") {
			parts = append(parts, part)
		}
	}
	if len(parts)%3 != 0 {
		return nil, errors.New("a checkpoint or its signature is not there")
	}
	for part := range slices.Chunk(parts, 3) {
		p, err := parsePin(part[0], part[1]+"\n\n"+part[2]+"\n")
		if err != nil {
			return nil, err
		}
		if pinOf(pins, p.Origin) != nil {
			return nil, fmt.Errorf("it has two checkpoints of %q", p.Origin)
		}
		pins = append(pins, p)
	}
	return pins, nil
}

func parsePin(head, signed string) (p Pin, err error) {
	p.Signed = []byte(signed)
	for line := range strings.SplitSeq(head, "\n") {
		if u, ok := strings.CutPrefix(line, "log "); ok && p.URL == "" {
			p.URL = u
		} else if key, ok := strings.CutPrefix(line, "key "); ok && len(p.Keys) < maxKeys {
			p.Keys = append(p.Keys, key)
		} else if host, ok := strings.CutPrefix(line, "host "); ok && len(p.Hosts) < maxHosts {
			p.Hosts = append(p.Hosts, host)
		} else {
			return p, fmt.Errorf("%.100q is not log URL, host NAME or key KEY", line)
		}
	}
	if u, err := url.Parse(p.URL); err != nil || u.Host == "" {
		return p, fmt.Errorf("%.100q is no URL of a log", p.URL)
	}
	origin, _, _ := strings.Cut(signed, "\n")
	verifiers, err := verifiersOf(origin, p.Keys)
	if err != nil {
		return p, err
	}
	p.Checkpoint, err = tlog.OpenCheckpoint(p.Signed, origin, verifiers...)
	return p, err
}

// verifiersOf reads the keys of a log.
func verifiersOf(origin string, keys []string) (verifiers []note.Verifier, err error) {
	if len(keys) == 0 {
		return nil, errors.New("it has no key")
	}
	for _, key := range keys {
		v, err := note.NewVerifier(key)
		if err != nil || len(key) > maxKeyLine {
			return nil, fmt.Errorf("%.100q is no key of a log", key)
		}
		if v.Name() != origin {
			return nil, fmt.Errorf("the key is of the log %.100q, not of %.100q", v.Name(), origin)
		}
		verifiers = append(verifiers, v)
	}
	return verifiers, nil
}

func encodePins(pins []Pin) []byte {
	var b bytes.Buffer
	b.WriteString(pinsHeader)
	for i, p := range pins {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "log %s\n", p.URL)
		for _, host := range p.Hosts {
			fmt.Fprintf(&b, "host %s\n", host)
		}
		for _, key := range p.Keys {
			fmt.Fprintf(&b, "key %s\n", key)
		}
		b.WriteString("\n")
		b.Write(p.Signed)
	}
	return b.Bytes()
}

// holds reports whether the file has the checkpoint when it is read again. A checkpoint that it
// cannot hold would never be compared with a later one.
func (p Pin) holds() bool {
	again, err := parsePins(encodePins([]Pin{p}))
	return err == nil && len(again) == 1 && again[0].Checkpoint == p.Checkpoint
}

// UpdatePins changes the file with that name as pins have changed since they were read from it. Others
// may have written it meanwhile, as for another log. What they have kept of the same log stays,
// unless it is older.
func UpdatePins(name string, before, after []Pin) error {
	now, err := ReadPins(name)
	if err != nil {
		return err
	}
	for _, p := range before {
		if pinOf(after, p.Origin) == nil {
			now = without(now, []string{p.Origin})
		}
	}
	for _, p := range after {
		was, is := pinOf(before, p.Origin), pinOf(now, p.Origin)
		switch {
		case was != nil && was.equal(p):
		case is == nil:
			now = append(now, p)
		case was != nil && was.equal(*is) || is.Size < p.Size:
			*is = p
		default:
			is.addHosts(p.Hosts)
		}
	}
	return WritePins(name, now)
}

// equal reports whether the file has the same lines for two pins.
func (p Pin) equal(other Pin) bool {
	return bytes.Equal(encodePins([]Pin{p}), encodePins([]Pin{other}))
}

// WritePins replaces the file with that name. Of a symbolic link, it replaces the target, which need
// not exist yet.
func WritePins(name string, pins []Pin) error {
	slices.SortFunc(pins, func(a, b Pin) int { return strings.Compare(a.Origin, b.Origin) })
	content := encodePins(pins)
	if _, err := parsePins(content); err != nil {
		return fmt.Errorf("a checkpoint cannot be kept: %w", err)
	}
	name, _, err := disk.LinkTarget(name)
	if err != nil {
		return err
	}
	return disk.ReplaceFile(name, content, func(f *os.File) error { return f.Chmod(0o644) })
}

// addHosts adds hosts whose discovery leads to the log. It reports whether some are new.
func (p *Pin) addHosts(hosts []string) (added bool) {
	all := slices.Clone(p.Hosts)
	for _, host := range hosts {
		if !slices.Contains(all, host) && len(all) < maxHosts {
			all, added = append(all, host), true
		}
	}
	slices.Sort(all)
	p.Hosts = all
	return added
}

// pinFor returns the pin of the log to which the discovery of a host led, or of a log at the
// host itself.
func pinFor(pins []Pin, host string) *Pin {
	for i := range pins {
		if slices.Contains(pins[i].Hosts, host) {
			return &pins[i]
		}
	}
	for i := range pins {
		if u, err := url.Parse(pins[i].URL); err == nil && u.Host == host {
			return &pins[i]
		}
	}
	return nil
}

func pinOf(pins []Pin, origin string) *Pin {
	for i := range pins {
		if pins[i].Origin == origin {
			return &pins[i]
		}
	}
	return nil
}
