package address

import (
	"slices"
	"strings"
)

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

// ModuleFormatOf returns the format of a module package by the name of its file; empty: the
// file is no such package.
func ModuleFormatOf(name string) string {
	_, format, _, _ := ParseModuleFile(name)
	return format
}

// DistinctModuleFormats returns each format once, the preferred first.
func DistinctModuleFormats() (formats []string) {
	for _, f := range ModuleFormats {
		if !slices.Contains(formats, f.Format) {
			formats = append(formats, f.Format)
		}
	}
	return formats
}

// ModuleFileNames returns the names that the package of a version can have, for a message:
// "1.0.0.tar.gz, 1.0.0.tgz or 1.0.0.zip".
func ModuleFileNames(version string) string {
	var b strings.Builder
	for i, f := range ModuleFormats {
		switch {
		case i > 0 && i == len(ModuleFormats)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(version + f.Suffix)
	}
	return b.String()
}
