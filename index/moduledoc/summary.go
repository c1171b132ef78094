package moduledoc

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Limits of a Summary.
const (
	maxSummaryNames = 4 << 10 // bytes of the inputs' names; of the outputs' names; of the names of all submodules' inputs
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
	}
	s.RefusedTotal = len(p.Refused)
	s.Refused = slices.Clip(p.Refused[:min(len(p.Refused), maxRefused)])
	left := maxSummaryNames
	for _, m := range p.Submodules[:min(len(p.Submodules), maxSubmodules)] {
		names := firstNames(inputs(m.Variables), left)
		for _, name := range names {
			left -= len(name)
		}
		s.Submodules = append(s.Submodules, SubmoduleSummary{
			Path: m.Path, Description: introduce(m.Readme.Content, maxSubmoduleIntroduction).description, Inputs: names,
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

// Encode returns a Summary in a compact form.
func (s Summary) Encode() []byte {
	b := appendText(nil, s.Description)
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
	}
	return slices.Clip(b)
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

var errDamaged = errors.New("the summary is damaged")

// DecodeSummary decodes the bytes that Encode returned. Without bytes it returns the zero
// Summary.
func DecodeSummary(b []byte) (Summary, error) {
	if len(b) == 0 {
		return Summary{}, nil
	}
	d := decoder{rest: string(b)}
	s := Summary{Description: d.text(), Words: d.text(), Inputs: d.names(), Outputs: d.names(), Resources: d.number(), Examples: d.number(), RefusedTotal: d.number()}
	for range d.count() {
		s.Refused = append(s.Refused, Problem{File: d.text(), Line: d.number(), Text: d.text()})
	}
	for range d.count() {
		s.Submodules = append(s.Submodules, SubmoduleSummary{Path: d.text(), Description: d.text(), Inputs: d.names()})
	}
	if d.damaged || d.rest != "" {
		return Summary{}, errDamaged
	}
	return s, nil
}

// A decoder reads values until one is missing.
type decoder struct {
	rest    string
	damaged bool
}

func (d *decoder) number() int {
	var n uint64
	for shift := 0; shift < 35; shift += 7 {
		if d.rest == "" {
			break
		}
		b := d.rest[0]
		d.rest = d.rest[1:]
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return int(n)
		}
	}
	d.damaged = true
	return 0
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
