package changes

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

func TestTheSectionOfAVersion(t *testing.T) {
	for _, test := range []struct{ rule, text, want string }{
		{"of Keep a Changelog", "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-12\n### Added\n- a\n\n## [1.1.0]\n- b\n", "### Added\n- a"},
		{"with a v", "# v1.2.0\na\n# v1.1.0\nb\n", "a"},
		{"of release-please", "## [1.2.0](https://h/compare/v1.1.0...v1.2.0) (2026-11-12)\n\n### Features\n\n* a\n\n### [1.1.1](x)\n\n* b", "### Features\n\n* a"},
		{"of release-please, of a patch release among its parts", "## [1.3.0](x)\n\n### Features\n\n* c\n\n### [1.2.0](x)\n\n\n### Bug Fixes\n\n* a\n\n### Performance\n\n* p\n\n### [1.1.9](x)\n\n* b", "### Bug Fixes\n\n* a\n\n### Performance\n\n* p"},
		{"a part that begins with another version", "## 1.2.0\n### 1.5.7 of Terraform is required now\n- a\n### Fixes\n- b\n## 1.0.0\n", "### 1.5.7 of Terraform is required now\n- a\n### Fixes\n- b"},
		{"of a patch release before a minor release", "## 1.3.0\n### 1.2.0\n### Fixes\na\n## 1.1.0\nb\n", "### Fixes\na"},
		{"with a part that names another version", "## 1.2.0\n### Upgrading from 1.1.0\na\n## 1.1.0\nb\n", "### Upgrading from 1.1.0\na"},
		{"with a part that begins with the version", "## 1.2.0\n### 1.2.0 is the first of its kind\na\n## 1.1.0\nb\n", "### 1.2.0 is the first of its kind\na"},
		{"before one without a version", "## 1.2.0\na\n## Older versions\nb\n", "a"},
		{"the last one", "## 1.2.0\na", "a"},
		{"a version that only begins alike", "## 1.2.0-rc.1\na\n## 11.2.0\nb\n", ""},
		{"a part of the section of another version", "## 2.0.0\n### Upgrading from 1.2.0\na\n## 1.2.0\nb\n", "b"},
		{"a part of the section of another version only", "## 2.0.0\n### Upgrading from 1.2.0\na\n## 1.0.0\nb\n", ""},
		{"a part of a section without a version", "# Changelog\n## Unreleased\n### 1.2.0 is the last of its kind\na\n## 1.2.0\nb\n", "b"},
		{"another version that mentions it", "## 2.0.0 (after 1.2.0)\na\n## 1.2.0\nb\n", "b"},
		{"a patch release below its minor release", "## 1.3.0\na\n### 1.2.0\nb\n", "b"},
		{"with words before it", "# Changelog\n## Release v1.2.0 (stable)\na\n", "a"},
		{"what is a heading in code only", "## 1.3.0\n```\n## 1.2.0\na\n```\n", ""},
		{"headings in its code", "## 1.2.0\n~~~sh\n# a\n```\n# b\n~~~\nc\n## 1.1.0", "~~~sh\n# a\n```\n# b\n~~~\nc"},
		{"a byte order mark before it", "\ufeff## 1.2.0\na\n## 1.1.0\n", "a"},
		{"line breaks of Windows", "## 1.2.0\r\na\r\n## 1.1.0\r\n", "a"},
		{"none", "", ""},
	} {
		if got := Notes(test.text, "1.2.0"); got != test.want {
			t.Errorf("%s: got %q, not %q", test.rule, got, test.want)
		}
	}
}

func TestTheChangelogOfAPackage(t *testing.T) {
	for names, want := range map[string]string{
		"CHANGES.md CHANGELOG.md": "CHANGELOG.md", "History.markdown": "History.markdown", "docs/CHANGELOG.md": "", "CHANGELOG.sh": "", "": "",
	} {
		files := &content.Files{}
		for name := range strings.FieldsSeq(names) {
			files.List = append(files.List, content.ListedFile{Path: name})
		}
		got := ""
		if f := Changelog(files); f != nil {
			got = f.Path
		}
		if got != want {
			t.Errorf("of %s it is %q, not %q", names, got, want)
		}
	}
}

// A section is a part of its changelog.
func FuzzNotes(f *testing.F) {
	f.Add("## 1.0.0\na\n````\n# x\n```\n## 0.9", "1.0.0")
	f.Fuzz(func(t *testing.T, text, version string) {
		if section := Notes(text, version); !strings.Contains(withoutReturns(text), section) {
			t.Errorf("%q of %q is no part of it", section, text)
		}
	})
}
