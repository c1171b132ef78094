package moduledoc

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDescriptions(t *testing.T) {
	for _, test := range []struct{ rule, readme, want string }{
		{"the first paragraph", "# Title\n\nCreates a network and\nits subnets.\n\nMore.", "Creates a network and its subnets."},
		{"under another kind of heading", "Title\n=====\n\nCreates a network.\n", "Creates a network."},
		{"without markup", "Creates a **network**, [its _subnets_](https://x) and `flow logs` \\*.", "Creates a network, its subnets and flow logs *."},
		{"after badges", "[![a](https://x/a.svg)](https://x) [![b](https://x/b.svg)](https://x)\n![c](c.png)\n\nCreates a network.", "Creates a network."},
		{"after badges by reference", "[![a][1]][2]\n\nCreates a network.\n\n[1]: https://x/a.svg\n[2]: https://x\n", "Creates a network."},
		{"after comments", "<!-- markdownlint-disable\n\nMD013 and others -->\n\nCreates a network.", "Creates a network."},
		{"after HTML", "<p align=\"center\">\n<img src=\"x\"> A slogan in HTML\n</p>\n\nCreates a network.", "Creates a network."},
		{"without HTML", "Creates<br>a <a name=\"x\"></a>network for all.", "Createsa network for all."},
		{"after a table of contents", "- [Usage](#usage)\n- [Inputs and others](#inputs)\n\nCreates a network.", "Creates a network."},
		{"after a table", "| Name | What it is |\n|------|------------|\n| a | b |\n\nCreates a network.", "Creates a network."},
		{"after code", "```hcl\nmodule \"a\" {}\n```\n\n    indented code too\n\nCreates a network.", "Creates a network."},
		{"after an alert", "> [!NOTE]\n> This module is old.\n\nCreates a network.", "Creates a network."},
		{"after front matter", "---\ntitle: Network of ours\n---\nCreates a network.", "Creates a network."},
		{"not a link alone", "https://example.com/\n\nv1.2.3\n\nCreates a network.", "Creates a network."},
		{"not links to other languages", "[English](README.md)|[简体中文](README.zh.md)\n\n[English](README.md)/[日本語](README.ja.md)\n\nhttps://example.com/文档\n\nCreates a network.", "Creates a network."},
		{"in any script", "ネットワーク と サブネット を作成します。", "ネットワーク と サブネット を作成します。"},
		{"in a script without spaces", "# VPC\n\nこのモジュールは、サブネットを作成します。\n\n## Usage\n\nSee the examples for more.\n", "このモジュールは、サブネットを作成します。"},
		{"in another one", "# VPC\n\n此模块用于创建网络和子网。\n\nSee the examples for more.\n", "此模块用于创建网络和子网。"},
		{"after a few characters of such a script", "# VPC\n\n中文版\n\n此模块用于创建网络和子网。\n", "此模块用于创建网络和子网。"},
		{"entities are characters", "Networks &amp; subnets &lt;all&gt; &#233;.", "Networks & subnets <all> é."},
		{"nothing", "", ""},
		{"only headings", "# A\n\n## B\n", ""},
	} {
		if got := introduce(test.readme, maxIntroduction).description; got != test.want {
			t.Errorf("%s: got %q, not %q", test.rule, got, test.want)
		}
	}
}

func TestLongDescriptionsEndAfterAWord(t *testing.T) {
	for _, word := range []string{"word ", "wörd ", "ネット "} {
		got := introduce(strings.Repeat(word, 200), maxIntroduction).description
		if len(got) > maxDescription || len(got) < maxDescription-20 || !strings.HasSuffix(got, strings.TrimSpace(word)+"…") || !utf8.ValidString(got) {
			t.Errorf("of %q it is %q with %d bytes", word, got, len(got))
		}
	}
}

// The only space of a text may be near its beginning.
func TestLongDescriptionsWithoutSpacesEndAfterACharacter(t *testing.T) {
	for _, readme := range []string{strings.Repeat("モジュール", 100), "AWS " + strings.Repeat("のモジュール", 100)} {
		got := introduce(readme, maxIntroduction).description
		if len(got) > maxDescription || len(got) < maxDescription-20 || !strings.HasPrefix(readme, strings.TrimSuffix(got, "…")) || !utf8.ValidString(got) {
			t.Errorf("it is %q with %d bytes", got, len(got))
		}
	}
}

func TestWords(t *testing.T) {
	for _, test := range []struct{ rule, readme, want string }{
		{"in lower case, each once", "A Network, the NETWORK: network.", "network the"},
		{"of headings, lists and tables", "# VPC peering\n\n* flow-logs\n\n| aws_vpc | s3 |\n", "vpc peering flow-logs aws_vpc s3"},
		{"no numbers, dashes, links or code", "1.2.3 -- 2026 [docs](https://example.com/x)\n\n```\ncode\n```\n", "docs"},
		{"no hashes", strings.Repeat("0123456789abcdef", 4) + " end", "end"},
	} {
		if got := introduce(test.readme, maxIntroduction).words; got != test.want {
			t.Errorf("%s: got %q, not %q", test.rule, got, test.want)
		}
	}
	var b strings.Builder
	for i := range 5000 {
		b.WriteString("word" + strings.Repeat("x", i%30) + string(rune('a'+i%26)) + " ")
	}
	if got := introduce(b.String(), maxIntroduction).words; len(got) > maxWords || len(got) < maxWords-50 {
		t.Errorf("of very many there are %d bytes", len(got))
	}
}

func TestWhichReadmeIsShown(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  string
	}{
		{[]string{"README.md", "README", "readme.md"}, "README.md"},
		{[]string{"Readme.Markdown", "README"}, "Readme.Markdown"},
		{[]string{"README"}, "README"},
		{[]string{"README.rst", "README.md.bak", ".README.md", "READMEs.md"}, ""},
	} {
		var all []string
		for _, name := range test.names {
			all = append(all, name, name)
		}
		if got := rootOf(t, all...).Readme; got.Name != test.want || got.Content != test.want {
			t.Errorf("of %q it is %+v", test.names, got)
		}
	}
}

func TestReadmesAreTextInUTF8(t *testing.T) {
	for content, want := range map[string]string{
		"\uFEFFa":      "a",
		"a\x00b":       "a\uFFFDb",
		"caf\xe9":      "caf\uFFFD",
		"line\r\nline": "line\r\nline",
	} {
		if got := rootOf(t, "README.md", content).Readme.Content; got != want {
			t.Errorf("of %q it is %q", content, got)
		}
	}
}

func TestLicenses(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"LICENSE", "MIT License\n\nCopyright (c) 2026\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\nof this software …\n\nThe above copyright notice and this permission notice shall be included in all\ncopies", "MIT"},
		{"LICENSE.md", "# Apache License\n\n_Version 2.0, January 2004_", ""},
		{"LICENSE.txt", "                                 Apache License\n                           Version 2.0, January 2004\n", "Apache-2.0"},
		{"LICENCE", "Mozilla Public License Version 2.0\n====", "MPL-2.0"},
		{"license", "Copyright (c) 2014 HashiCorp, Inc.\n\nMozilla Public License, version 2.0\n", "MPL-2.0"},
		{"COPYING", "                    GNU GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007\n", "GPL-3.0"},
		{"COPYING", "GNU GENERAL PUBLIC LICENSE\nVersion 2, June 1991\n… the GNU Lesser General Public License instead.", "GPL-2.0"},
		{"LICENSE", "GNU LESSER GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\n… version 3 of the GNU General Public License", "LGPL-3.0"},
		{"LICENSE", "GNU LESSER GENERAL PUBLIC LICENSE\n Version 2.1, February 1999", "LGPL-2.1"},
		{"LICENSE", "GNU AFFERO GENERAL PUBLIC LICENSE\n Version 3, 19 November 2007", "AGPL-3.0"},
		{"LICENSE", "Redistribution and use in source and binary forms, with or without modification\n1. Redistributions of source code must retain\n3. Neither the name of", "BSD-3-Clause"},
		{"LICENSE", "Redistribution and use in source and binary forms, with or without modification\n1. Redistributions of source code must retain", "BSD-2-Clause"},
		{"LICENSE", "Permission to use, copy, modify, and/or distribute this software for any\npurpose with or without fee is hereby granted", "ISC"},
		{"UNLICENSE", "This is free and unencumbered software released into the public domain.", "Unlicense"},
		{"LICENSE", "License text copyright (c) 2020 MariaDB\n\nBusiness Source License 1.1\n\nChange License: Apache License, Version 2.0", "BUSL-1.1"},
		{"LICENSE", "# SPDX-License-Identifier: EUPL-1.2", "EUPL-1.2"},
		{"LICENSE", "All rights reserved.", ""},
		{"NOTICE", "Apache License, Version 2.0", ""},
	} {
		c := collect(t, files("main.tf", "", test.name, test.text), Collector{})
		if got := c.Package("").License; got != test.want {
			t.Errorf("%s with %.40q is %q, not %q", test.name, test.text, got, test.want)
		}
	}
	c := collect(t, files("vpc/main.tf", "", "LICENSE", "Mozilla Public License Version 2.0"), Collector{})
	if got := c.Package("vpc").License; got != "MPL-2.0" {
		t.Errorf("beside the module's folder it is %q", got)
	}
}
