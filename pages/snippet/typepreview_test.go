package snippet

import (
	"runtime"
	"strings"
	"testing"
)

func TestPreviewsOfTypes(t *testing.T) {
	for _, test := range []struct{ rule, typ, want string }{
		{"a type without an object is as it is", "map(string)", "map(string)"},
		{"an object has the names of its attributes", "object({\n  a = string\n  b = optional(number, 1)\n})", "object({ a, b })"},
		{"so has an object in other types", "map(object({ enabled = bool, instance = string }))", "map(object({ enabled, instance }))"},
		{"names in inner objects are left out", "object({\n  a = object({ x = string })\n  b = list(object({ y = string }))\n})", "object({ a, b })"},
		{"a default has no names", "object({ a = optional(map(string), { x = 1 }), b = optional(string, \"c = {\") })", "object({ a, b })"},
		{"a comment has no names", "object({\n  # old = string\n  a = string // c = 1\n  /* d = 2 */ b = string\n})", "object({ a, b })"},
		{"an attribute has one name", "object({ a = b == c ? string : number, d = string })", "object({ a, d })"},
		{"a comment at the end of a line ends an attribute", "object({\n  a = string # the first\n  b = string // the second\n  c = string\n})", "object({ a, b, c })"},
		{"many names are cut", "object({ availability = string, bandwidth = string, connection = string, durability = string, encryption = string })", "object({ availability, bandwidth, connection, … })"},
		{"an object without attributes", "object({})", "object({ })"},
		{"what does not end", "object({ a = string", "object({ a })"},
		{"a long type without an object is cut", "tuple([string, string, string, string, string, string, string])", "tuple([string, string, string, string, strin…"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := typePreview(test.typ); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A type may be long, and is no type if its author likes. A page may have hundreds of them.
func TestPreviewsTakeLittle(t *testing.T) {
	for _, part := range []string{"a = ", "a==", ":", `"a" = `, "/**/a=", "#\na=", "{a=", "a=}", "("} {
		typ := "object({ " + strings.Repeat(part, 32<<10/len(part)) + "})"
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		typePreview(typ)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(64*len(typ)) {
			t.Errorf("of %q: %d bytes are allocated", part, took)
		}
	}
}
