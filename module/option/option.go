// Package option replaces the placeholders in options of the configuration.
package option

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
)

// Values are the values of an option. They may have placeholders that are known when the
// configuration is loaded.
type Values struct {
	name   string
	values []*string
}

// Scalar returns the only value of an option.
func Scalar(name string, value *string) Values { return Values{name, []*string{value}} }

// List returns all values of an option.
func List(name string, values []string) Values {
	v := Values{name: name}
	for i := range values {
		v.values = append(v.values, &values[i])
	}
	return v
}

// Expand replaces the placeholders in the values of options. A placeholder that is
// unknown or empty is an error.
func Expand(repl *caddy.Replacer, options ...Values) error {
	for _, o := range options {
		for _, value := range o.values {
			replaced, err := repl.ReplaceOrErr(*value, true, true)
			if err != nil {
				return fmt.Errorf("%s: %w", o.name, err)
			}
			*value = replaced
		}
	}
	return nil
}
