package moduledoc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
)

// Limits of a Summary.
const (
	maxSummaryNames = 4 << 10 // bytes of the inputs' names; of the outputs' names; of the names of all submodules' inputs
	maxSummaryUses  = 4 << 10 // bytes of the types, of the providers and of the calls of the root; of the same of all submodules
	maxSubmodules   = 50
	maxRefused      = 5
)

// Summary returns the short form.
func (p *Package) Summary() Summary {
	i := introduce(p.Root.Readme.Content, maxIntroduction)
	s := Summary{
		Description: i.description, Words: i.words, Resources: len(p.Root.Resources), Examples: len(p.Examples),
		Inputs:  firstNames(inputs(p.Root.Variables), maxSummaryNames),
		Outputs: firstNames(outputs(p.Root.Outputs), maxSummaryNames),
		Uses:    p.Root.uses(&room{maxSummaryUses, maxSummaryUses, maxSummaryUses}),
	}
	s.RefusedTotal = len(p.Refused)
	s.Refused = slices.Clip(p.Refused[:min(len(p.Refused), maxRefused)])
	left, uses := maxSummaryNames, room{maxSummaryUses, maxSummaryUses, maxSummaryUses}
	for _, m := range p.Submodules[:min(len(p.Submodules), maxSubmodules)] {
		names := firstNames(inputs(m.Variables), left)
		for _, name := range names {
			left -= len(name)
		}
		s.Submodules = append(s.Submodules, SubmoduleSummary{
			Path: m.Path, Description: introduce(m.Readme.Content, maxSubmoduleIntroduction).description, Inputs: names,
			Uses: m.uses(&uses),
		})
	}
	return s
}

func inputs(variables []Variable) []string {
	var names []string
	for _, v := range variables {
		names = append(names, v.Name)
	}
	return names
}

func outputs(list []Output) []string {
	var names []string
	for _, o := range list {
		names = append(names, o.Name)
	}
	return names
}

// firstNames returns the first names up to the limit.
func firstNames(names []string, room int) []string {
	for i, name := range names {
		if room -= len(name); room < 0 {
			return slices.Clip(names[:i])
		}
	}
	return names
}

// MayLackNames reports whether the module may have more inputs or outputs than the summary has
// room for.
func (s *Summary) MayLackNames() bool {
	for _, names := range [][]string{s.Inputs, s.Outputs} {
		room := maxSummaryNames
		for _, name := range names {
			room -= len(name)
		}
		if room < maxLabel { // a name that was left out is at most so long
			return true
		}
	}
	return false
}

// A room has the bytes that are left for what modules use.
type room struct{ types, providers, calls int }

// uses returns what a module uses of others, as far as there is room.
func (m *Module) uses(left *room) (u Uses) {
	var types []string
	seen := make(map[string]bool)
	for _, r := range m.Resources {
		typ := r.Type
		if r.Mode != Managed {
			typ = string(r.Mode) + "." + typ
		}
		if !seen[typ] {
			seen[typ] = true
			types = append(types, typ)
		}
	}
	u.Types = firstNames(types, left.types)
	for _, typ := range u.Types {
		left.types -= len(typ)
	}
	for _, p := range m.Providers {
		u.Providers = appendUse(u.Providers, Use{p.Source, p.Version}, &left.providers)
	}
	for _, c := range m.Calls {
		if c.Source != "" && !IsLocal(c.Source) {
			u.Calls = appendUse(u.Calls, Use{c.Source, c.Version}, &left.calls)
		}
	}
	return u
}

// appendUse appends a use that is new, if there is room.
func appendUse(uses []Use, u Use, left *int) []Use {
	if size := len(u.Source) + len(u.Version); size <= *left && !slices.Contains(uses, u) {
		*left -= size
		uses = append(uses, u)
	}
	return uses
}

// IsLocal reports whether a module's source is a folder of the same package.
func IsLocal(source string) bool {
	return strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../")
}

// summaryFormat begins an encoded Summary. The first format began with the length of the
// description, which is never so large, and said nothing of what modules use.
const summaryFormat = "\xff\xff\x7f2"

// IsCurrent reports whether Encode returned an encoded Summary, and not an earlier release,
// which had less to say about a module.
func IsCurrent(encoded []byte) bool { return bytes.HasPrefix(encoded, []byte(summaryFormat)) }

// Encode returns a Summary in a compact form.
func (s Summary) Encode() []byte {
	b := appendText([]byte(summaryFormat), s.Description)
	b = appendText(b, s.Words)
	b = appendNames(b, s.Inputs)
	b = appendNames(b, s.Outputs)
	b = binary.AppendUvarint(b, uint64(s.Resources))
	b = binary.AppendUvarint(b, uint64(s.Examples))
	b = binary.AppendUvarint(b, uint64(s.RefusedTotal))
	b = binary.AppendUvarint(b, uint64(len(s.Refused)))
	for _, p := range s.Refused {
		b = appendText(b, p.File)
		b = binary.AppendUvarint(b, uint64(p.Line))
		b = appendText(b, p.Text)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Submodules)))
	for _, m := range s.Submodules {
		b = appendText(b, m.Path)
		b = appendText(b, m.Description)
		b = appendNames(b, m.Inputs)
		b = appendUses(b, &m.Uses)
	}
	return slices.Clip(appendUses(b, &s.Uses))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendNames(b []byte, names []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, name := range names {
		b = appendText(b, name)
	}
	return b
}

func appendUses(b []byte, u *Uses) []byte {
	b = appendNames(b, u.Types)
	for _, uses := range [][]Use{u.Providers, u.Calls} {
		b = binary.AppendUvarint(b, uint64(len(uses)))
		for _, use := range uses {
			b = appendText(appendText(b, use.Source), use.Version)
		}
	}
	return b
}

var errDamaged = errors.New("the summary is damaged")

// DecodeSummary decodes the bytes that Encode returned, of an earlier release too. Without
// bytes it returns the zero Summary.
func DecodeSummary(b []byte) (Summary, error) {
	if len(b) == 0 {
		return Summary{}, nil
	}
	d := decoder{rest: string(b)}
	d.rest, d.current = strings.CutPrefix(d.rest, summaryFormat)
	s := Summary{Description: d.text(), Words: d.text(), Inputs: d.names(), Outputs: d.names(), Resources: d.number(), Examples: d.number(), RefusedTotal: d.number()}
	for range d.count() {
		s.Refused = append(s.Refused, Problem{File: d.text(), Line: d.number(), Text: d.text()})
	}
	for range d.count() {
		s.Submodules = append(s.Submodules, SubmoduleSummary{Path: d.text(), Description: d.text(), Inputs: d.names(), Uses: d.uses()})
	}
	s.Uses = d.uses()
	if d.damaged || d.rest != "" {
		return Summary{}, errDamaged
	}
	return s, nil
}

// A decoder reads values until one is missing.
type decoder struct {
	rest    string
	current bool // it is not of the first format
	damaged bool
}

func (d *decoder) number() int {
	n, size := binary.Uvarint([]byte(d.rest[:min(len(d.rest), binary.MaxVarintLen32)]))
	if size <= 0 {
		d.damaged = true
		return 0
	}
	d.rest = d.rest[size:]
	return int(n)
}

// count reads a number of values. A number greater than the bytes left is invalid.
func (d *decoder) count() int {
	n := d.number()
	if n > len(d.rest) {
		d.damaged = true
		return 0
	}
	return n
}

func (d *decoder) text() string {
	n := d.count()
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) names() []string {
	n := d.count()
	if n == 0 {
		return nil
	}
	names := make([]string, n)
	for i := range names {
		names[i] = d.text()
	}
	return names
}

func (d *decoder) uses() (u Uses) {
	if !d.current {
		return u
	}
	u.Types = d.names()
	for _, uses := range []*[]Use{&u.Providers, &u.Calls} {
		for range d.count() {
			*uses = append(*uses, Use{d.text(), d.text()})
		}
	}
	return u
}
