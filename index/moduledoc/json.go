package moduledoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"strings"
)

// JSON is read with encoding/json, not with HCL's parser for it. That parser is recursive,
// and ends strings with some Unicode characters at the wrong place, so that the depth of its
// input cannot be checked beforehand. Values stay text.

// parseJSON parses configuration in JSON. report is called if the text is broken, and then
// no part of it is read.
func parseJSON(content []byte, report func(line int, text string)) iter.Seq[body] {
	return func(yield func(body) bool) {
		var whole json.RawMessage
		err := json.Unmarshal(content, &whole)
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			report((&lineCounter{text: content}).lineAt(int(syntax.Offset)), sentence("The file is not valid JSON: "+err.Error()))
			return
		case err != nil:
			report(0, sentence("The file is not valid JSON: "+err.Error()))
			return
		}
		if objects := (jsonValue{text: content, lines: &lineCounter{text: content}}).objects(); len(objects) > 0 {
			yield(newJSONBody(objects...))
			return
		}
		report(1, "The file does not contain a JSON object.")
	}
}

// A lineCounter finds the numbers of lines. It counts on from where it was asked last, since
// a file may have thousands of blocks, which are mostly asked for in their order.
type lineCounter struct {
	text   []byte
	at     int
	breaks int // before at
}

// lineAt returns the number of the line that contains a byte.
func (l *lineCounter) lineAt(at int) int {
	at = max(0, min(at, len(l.text)))
	if at < l.at {
		l.at, l.breaks = 0, 0
	}
	l.breaks += bytes.Count(l.text[l.at:at], []byte("\n"))
	l.at = at
	return 1 + l.breaks
}

// A jsonValue is a part of a JSON file.
type jsonValue struct {
	text  []byte
	lines *lineCounter // of the file
	at    int          // the offset in the file where it begins
}

func (v jsonValue) line() int { return v.lines.lineAt(v.at) }

func (v jsonValue) source() string { return string(v.text) }

func (v jsonValue) literal() (string, bool) {
	var b bytes.Buffer
	if json.Compact(&b, v.text) != nil {
		return "", false
	}
	return b.String(), true
}

func (v jsonValue) members(yield func(string, value) bool) {
	v.each(func(key string, member jsonValue) bool { return yield(key, member) })
}

func (v jsonValue) references() []string { return reference.FindAllString(string(v.text), -1) }

// each yields the members of an object, or the elements of an array with empty keys. The
// text must be valid.
func (v jsonValue) each(yield func(key string, member jsonValue) bool) {
	d := json.NewDecoder(bytes.NewReader(v.text))
	open, err := d.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return
	}
	for d.More() {
		key := ""
		if open == json.Delim('{') {
			t, err := d.Token()
			if err != nil {
				return
			}
			key, _ = t.(string)
		}
		var text json.RawMessage
		if d.Decode(&text) != nil {
			return
		}
		end := int(d.InputOffset())
		member := jsonValue{text: v.text[end-len(text) : end], lines: v.lines, at: v.at + end - len(text)}
		if !yield(key, member) {
			return
		}
	}
}

// objects returns the object, or the objects in an array: a block can be written either way.
func (v jsonValue) objects() []jsonValue {
	switch first(v.text) {
	case '{':
		return []jsonValue{v}
	case '[':
		var objects []jsonValue
		v.each(func(_ string, element jsonValue) bool {
			if first(element.text) == '{' {
				objects = append(objects, element)
			}
			return true
		})
		return objects
	}
	return nil
}

func first(text []byte) byte {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 {
		return 0
	}
	return text[0]
}

// A jsonBody is a body that consists of one object, or of several merged ones.
type jsonBody struct {
	members []jsonMember
	first   jsonValue
}

type jsonMember struct {
	key   string
	value jsonValue
}

func newJSONBody(objects ...jsonValue) jsonBody {
	b := jsonBody{first: objects[0]}
	for _, object := range objects {
		object.each(func(key string, v jsonValue) bool {
			if key != "//" { // a comment
				b.members = append(b.members, jsonMember{key, v})
			}
			return true
		})
	}
	return b
}

func (b jsonBody) line() int { return b.first.line() }

func (b jsonBody) attribute(name string) value {
	for _, m := range b.members {
		if m.key == name {
			return m.value
		}
	}
	return nil
}

func (b jsonBody) attributes(yield func(string, value) bool) {
	for _, m := range b.members {
		if !yield(m.key, m.value) {
			return
		}
	}
}

func (b jsonBody) blocks(typ string, labels int) []block {
	var found []block
	for _, m := range b.members {
		if m.key == typ {
			found = appendBlocks(found, m.value, nil, labels)
		}
	}
	return found
}

// appendBlocks adds the blocks of a value, which has a level of objects for each label that
// is missing.
func appendBlocks(found []block, v jsonValue, labels []string, missing int) []block {
	for _, object := range v.objects() {
		if missing == 0 {
			found = append(found, block{newJSONBody(object), labels})
			continue
		}
		object.each(func(label string, inner jsonValue) bool {
			if label != "//" {
				found = appendBlocks(found, inner, append(labels[:len(labels):len(labels)], label), missing-1)
			}
			return true
		})
	}
	return found
}

// withoutInterpolation returns the reference in "${…}", the notation of older configuration.
func withoutInterpolation(s string) string {
	if inner, ok := strings.CutPrefix(s, "${"); ok {
		return strings.TrimSpace(strings.TrimSuffix(inner, "}"))
	}
	return s
}
