package address

import "strings"

// ModuleFormats lists the formats of a module package by suffix, the preferred first.
var ModuleFormats = []struct{ Suffix, Format string }{
	{".tar.gz", "tar.gz"},
	{".tgz", "tar.gz"},
	{".zip", "zip"},
}

// ParseModuleFile splits the name of a module package into the text of its version and
// its format. Formats with a lower rank are preferred.
func ParseModuleFile(name string) (text, format string, rank int, ok bool) {
	for rank, f := range ModuleFormats {
		if text, ok := strings.CutSuffix(name, f.Suffix); ok {
			return text, f.Format, rank, true
		}
	}
	return "", "", 0, false
}
