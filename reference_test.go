package terraformregistry_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/reference.md again")

// A configured is a type of the configuration.
type configured struct {
	folder, typ string
	title       string
	note        string // about Caddyfiles, where they differ from JSON
}

var reference = []configured{
	{"module", "Handler", "Options of `terraform_registry`", ""},
	{"module", "SigningKey", "`signing_key`", "In a Caddyfile these are arguments; `off` takes the place of the file."},
	{"module", "Access", "`access`", "In a Caddyfile each rule is a line."},
	{"module", "AccessRule", "A rule of `access`", "In a Caddyfile these are the words of the line, in this order."},
	{"module/authenticate", "Tokens", "`auth terraform_tokens`", "In a Caddyfile the file is an argument."},
	{"module/authenticate", "OpenID", "`auth terraform_oidc`", "In a Caddyfile the issuer is an argument, and the claims are `subject` and `groups`."},
	{"module", "Login", "`login`", ""},
	{"module", "Upstream", "`upstream`", "In a Caddyfile the hostnames are arguments, `modules` may have the URL as its argument, and each of the hosts is a block `host`."},
	{"module", "UpstreamHost", "`host` of `upstream`", "In a Caddyfile the name is an argument."},
	{"module", "Git", "`git`", "In a Caddyfile each of the hosts is a block `host`."},
	{"module", "GitHost", "`host` of `git`", "In a Caddyfile the name is an argument."},
	{"module", "UI", "`ui`", "In a Caddyfile the path is an argument, and each of the links is a line `link`."},
	{"module", "UILink", "`link` of `ui`", "In a Caddyfile these are arguments."},
	{"module", "Publish", "`publish`", ""},
	{"module", "Tlog", "`tlog`", "In a Caddyfile the folder is an argument."},
	{"module", "Usage", "`usage`", ""},
	{"blob", "FileSystem", "The file system `blob`", ""},
	{"blob", "Cache", "`cache` of `blob`", "In a Caddyfile these are arguments."},
}

// The reference is made of the comments and flags in the code. After a change of the code,
// write it again with
//
//	go test -run TestReference . -update
func TestReference(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Reference\n\nEvery option, command and flag, in the words of the code. [Serving](serve.md) and the other pages of [the manual](README.md) explain what to use them for.\n")
	writeDirective(t, &b)
	for _, c := range reference {
		writeOptions(t, &b, c)
	}
	root := &cobra.Command{Use: "caddy-terraform-registry"}
	serve := caddycmd.Commands()["terraform-registry"]
	root.Use += " " + serve.Usage
	root.Long = serve.Long
	serve.CobraFunc(root)
	b.WriteString("\n## Commands\n\nIn a program called `caddy`, these are commands of `caddy terraform-registry`: [Where things are](operate.md#where-things-are).\n")
	writeCommand(&b, "", root)

	const file = "docs/reference.md"
	if *update {
		if err := os.WriteFile(filepath.FromSlash(file), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, file) != b.String() {
		t.Errorf("%s is not what the code says: run `go test -run TestReference . -update`", file)
	}
}

// writeDirective writes the syntax of the directive, which is the comment of package
// caddyfile.
func writeDirective(t *testing.T, b *bytes.Buffer) {
	file, _ := parse(t, "caddyfile/directive.go")
	var syntax strings.Builder
	for line := range strings.Lines(file.Doc.Text()) {
		if line, ok := strings.CutPrefix(line, "\t"); ok {
			syntax.WriteString(line)
		}
	}
	fmt.Fprintf(b, "\n## The directive\n\n```\n%s```\n\n", syntax.String())
	b.WriteString("In JSON the handler is `http.handlers.terraform_registry`. Options have the same names there. The lists below have the names in JSON. Without `root` in the block, the folder is the one that the site's `root` directive sets, if it has no matcher.\n")
}

// writeOptions writes the fields of a type with their comments.
func writeOptions(t *testing.T, b *bytes.Buffer, c configured) {
	fmt.Fprintf(b, "\n### %s\n\n", c.title)
	if c.note != "" {
		fmt.Fprintf(b, "%s\n\n", c.note)
	}
	for _, field := range fields(t, c) {
		name, ok := jsonName(field)
		if !ok {
			continue
		}
		if field.Doc == nil {
			t.Fatalf("%s.%s has no comment", c.typ, field.Names[0].Name)
		}
		text := strings.ReplaceAll(strings.TrimSpace(field.Doc.Text()), "\n", "\n  ")
		text = strings.ReplaceAll(text, "](/docs/", "](https://caddyserver.com/docs/")
		fmt.Fprintf(b, "- **`%s`** %s\n", name, regexp.MustCompile(`(?m)^ +$`).ReplaceAllString(text, ""))
	}
}

func jsonName(field *ast.Field) (string, bool) {
	if field.Tag == nil {
		return "", false
	}
	tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
	name, _, _ := strings.Cut(tag, ",")
	return name, name != ""
}

// fields returns the fields of a type.
func fields(t *testing.T, c configured) []*ast.Field {
	var found []*ast.Field
	for _, name := range sources(t, c.folder) {
		file, _ := parse(t, name)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == c.typ {
				found = spec.Type.(*ast.StructType).Fields.List
			}
			return found == nil
		})
		if found != nil {
			return found
		}
	}
	t.Fatalf("%s has no type %s", c.folder, c.typ)
	return nil
}

// writeCommand writes a command with its flags, and its subcommands.
func writeCommand(b *bytes.Buffer, parents string, cmd *cobra.Command) {
	name := parents + cmd.Name()
	fmt.Fprintf(b, "\n### `%s`\n\n```\n%s\n```\n", name, parents+cmd.Use)
	if long := strings.TrimSpace(cmd.Long); long != "" {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", long)
	} else if cmd.Short != "" {
		fmt.Fprintf(b, "\n%s.\n", strings.TrimSuffix(cmd.Short, "."))
	}
	writeFlags(b, cmd)
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			writeCommand(b, name+" ", sub)
		}
	}
}

func writeFlags(b *bytes.Buffer, cmd *cobra.Command) {
	heading := "\n| flag | meaning | default |\n|---|---|---|\n"
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "`--" + f.Name
		switch kind = strings.ReplaceAll(kind, "|", `\|`); {
		case kind == "":
		case f.NoOptDefVal != "":
			name += "[=" + kind + "]"
		default:
			name += " " + kind
		}
		name += "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		value := f.DefValue
		if value != "" && value != "false" && value != "[]" && value != "0" && value != "0s" {
			value = "`" + value + "`"
		} else {
			value = ""
		}
		fmt.Fprintf(b, "%s| %s | %s | %s |\n", heading, name, strings.ReplaceAll(usage, "|", `\|`), value)
		heading = ""
	})
}
