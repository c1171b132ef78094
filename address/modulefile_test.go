package address

import (
	"slices"
	"testing"
)

func TestModuleFormats(t *testing.T) {
	if got := DistinctModuleFormats(); !slices.Equal(got, []string{"tar.gz", "zip"}) {
		t.Errorf("the formats are %q", got)
	}
	for name, want := range map[string]string{"1.0.0.tgz": "tar.gz", "archive.tar.gz": "tar.gz", "archive.zip": "zip", "1.0.0.tar": "", "1.0.0": ""} {
		if got := ModuleFormatOf(name); got != want {
			t.Errorf("the format of %s is %q", name, got)
		}
	}
	if got := ModuleFileNames("VERSION"); got != "VERSION.tar.gz, VERSION.tgz or VERSION.zip" {
		t.Errorf("the names are %q", got)
	}
}
