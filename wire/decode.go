package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

var errNoObject = errors.New("it is not one JSON object")

// eachMember reads a JSON object member by member, so that a large object is never in
// memory twice.
func eachMember(body []byte, read func(name string, d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return errNoObject
	}
	if err := members(d, read); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errNoObject
	}
	return nil
}

// members reads the members after the opening brace of an object.
func members(d *json.Decoder, read func(name string, d *json.Decoder) error) error {
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		if err := read(token.(string), d); err != nil { // the decoder refuses any other name
			return err
		}
	}
	_, err := d.Token()
	return err
}

// eachElement reads an array. found is false for null.
func eachElement(d *json.Decoder, read func(json.RawMessage) error) (found bool, err error) {
	switch token, err := d.Token(); {
	case err != nil:
		return false, err
	case token == nil:
		return false, nil
	case token != json.Delim('['):
		return false, errNoObject
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return true, err
		}
		if err := read(raw); err != nil {
			return true, err
		}
	}
	_, err = d.Token()
	return true, err
}

// lenient reads the elements of an array that have type T, and skips the others.
func lenient[T any](raw json.RawMessage) (list []T) {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return nil
	}
	for _, element := range elements {
		var v *T // nil for null
		if json.Unmarshal(element, &v) == nil && v != nil {
			list = append(list, *v)
		}
	}
	return list
}
