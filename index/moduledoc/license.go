package moduledoc

import (
	"bytes"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// isLicense reports whether a file of this name has the licence of the package.
func isLicense(name string) bool {
	name = strings.ToLower(name)
	switch path.Ext(name) {
	case ".md", ".txt":
		name = strings.TrimSuffix(name, path.Ext(name))
	}
	return slices.Contains([]string{"license", "licence", "copying", "unlicense"}, name)
}

var (
	spdxLine = regexp.MustCompile(`SPDX-License-Identifier:\s*([A-Za-z0-9.+-]{1,40})\s`)
	spaces   = regexp.MustCompile(`[\s>*#"'“”]+`)
)

// licenses have phrases that a licence contains: all of them, in lower case and with single
// spaces. The first licence that fits is used, since some texts name other licences.
var licenses = []struct {
	id      string
	phrases []string
}{
	{"BUSL-1.1", []string{"business source license 1.1"}},
	{"AGPL-3.0", []string{"gnu affero general public license version 3,"}},
	{"LGPL-3.0", []string{"gnu lesser general public license version 3,"}},
	{"LGPL-2.1", []string{"gnu lesser general public license version 2.1,"}},
	{"GPL-3.0", []string{"gnu general public license version 3,"}},
	{"GPL-2.0", []string{"gnu general public license version 2,"}},
	{"MPL-2.0", []string{"mozilla public license version 2.0"}},
	{"MPL-2.0", []string{"mozilla public license, version 2.0"}},
	{"Apache-2.0", []string{"apache license version 2.0"}},
	{"Apache-2.0", []string{"apache license, version 2.0"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms", "redistributions of source code must retain"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"}},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted"}},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "the above copyright notice and this permission notice shall be included"}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
}

// recognizeLicense returns the SPDX identifier of the first file with a known licence.
func recognizeLicense(files map[string][]byte) string {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if found := spdxLine.FindSubmatch(append(bytes.Clone(files[name]), '\n')); found != nil {
			return string(found[1])
		}
		text := spaces.ReplaceAllString(strings.ToLower(string(files[name])), " ")
		for _, l := range licenses {
			missing := func(phrase string) bool { return !strings.Contains(text, phrase) }
			if !slices.ContainsFunc(l.phrases, missing) {
				return l.id
			}
		}
	}
	return ""
}
