package offer

import (
	"testing"

	version "github.com/hashicorp/go-version"
)

// A version that is taken for unchanged keeps what the report said of it.
func TestFactsThatMakeAnotherVersion(t *testing.T) {
	made := func(change func(*ModuleVersion)) *ModuleVersion {
		v := NewModuleVersion("", version.Must(version.NewVersion("1.2.0")), &File{Name: "archive.zip"}, "")
		v.notes = []string{"a note"}
		change(v)
		return v
	}
	before := made(func(*ModuleVersion) {})
	for name, test := range map[string]struct {
		change func(*ModuleVersion)
		same   bool
	}{
		"nothing":                 {func(*ModuleVersion) {}, true},
		"when it was offered":     {func(v *ModuleVersion) { v.offered = 1 }, true},
		"the hostname":            {func(v *ModuleVersion) { v.Hostname = "example.com" }, false},
		"the version":             {func(v *ModuleVersion) { v.Version = "1.3.0" }, false},
		"the time of its file":    {func(v *ModuleVersion) { v.published = 1 }, false},
		"the notes of its report": {func(v *ModuleVersion) { v.notes = nil }, false},
		"who signed it":           {func(v *ModuleVersion) { v.Signature = &Signature{By: ByPublisher, KeyID: "A"} }, false},
		"its tag":                 {func(v *ModuleVersion) { v.Tag = &Tag{Commit: "a"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if v := made(test.change); (v.OrUnchanged(before) == before) != test.same {
				t.Errorf("it is taken for the version before: %v", !test.same)
			}
		})
	}
}
