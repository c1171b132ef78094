package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// pageInputs is how many inputs the measured module has: as many as the largest modules
// that people use.
const pageInputs = 300

// modulePages compares the pages of a module, compressed as browsers ask for them,
// with its list of versions, which the same process answers from memory.
func modulePages(ctx context.Context, l *lab, s subject) ([]row, error) {
	m := module{"team00", "network0000", []string{"1.0.0"}}
	root, err := l.folder("pages", func(root string) error {
		return writeLargeModule(filepath.Join(root, "modules", m.namespace, m.name, "aws", "1.0.0"))
	})
	if err != nil {
		return nil, err
	}
	handler := l.registry(root)
	handler["ui"] = map[string]any{}
	c, err := l.serving(ctx, s, "pages", nil, site{name: "registry", handler: handler})
	if err != nil {
		return nil, err
	}
	versions := m.path("versions")
	var list *answer
	if _, err := c.await(ctx, "registry", versions, func(a *answer) bool { list = a; return a.ok() }); err != nil {
		return nil, err
	}
	reference := newTarget(c.addresses["registry"], c.Process.Pid, versions, list)
	page := "/modules/" + m.namespace + "/" + m.name + "/aws/1.0.0"
	var rows []row
	for _, p := range []struct{ name, path string }{
		{"README", page},
		{fmt.Sprintf("%d inputs", pageInputs), page + "?tab=inputs"},
	} {
		asked := target{address: c.addresses["registry"], path: p.path, gzip: true}
		a, err := c.fetch(ctx, asked)
		if err != nil {
			return nil, err
		}
		if !a.ok() {
			return nil, fmt.Errorf("GET %s: %d: %s", p.path, a.status, a.body)
		}
		repeated := newTarget(asked.address, c.Process.Pid, p.path, a)
		repeated.gzip = asked.gzip
		rows = append(rows, row{
			what: fmt.Sprintf("module page, %s, %d bytes compressed: CPU time of an answer", p.name, len(a.body)), unit: "s", goal: goal{atLeast: 0.5},
			cost:    l.asking(c, s.name+"-page-"+p.name, repeated, l.connections, usage.perAnswer),
			against: fmt.Sprintf("its `versions`, %d bytes", len(list.body)), reference: l.asking(c, s.name+"-versions", reference, l.connections, usage.perAnswer),
		})
	}
	return rows, nil
}

// writeLargeModule writes a module folder with pageInputs inputs and a README that
// lists them, as terraform-docs writes it.
func writeLargeModule(dir string) error {
	var code, readme bytes.Buffer
	readme.WriteString("# Network\n\nEverything a network needs.\n\n| Name | Description | Type | Default | Required |\n|------|-------------|------|---------|:--------:|\n")
	for n := range pageInputs {
		name := fmt.Sprintf("setting_%03d", n)
		fmt.Fprintf(&code, "variable %q {\n  type = object({\n    enabled = bool\n    names   = optional(list(string), [])\n  })\n  description = \"Whether part %d of the network is created, and the names of its members.\"\n  default     = { enabled = true }\n}\n\n", name, n)
		fmt.Fprintf(&readme, "| <a name=\"input_%s\"></a> [%s](#input_%s) | Whether part %d of the network is created. | `object({...})` | `{}` | no |\n", name, name, name, n)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"variables.tf": code.Bytes(), "README.md": readme.Bytes()} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
		if err := os.Chtimes(file, modified, modified); err != nil {
			return err
		}
	}
	return nil
}
