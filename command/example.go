package command

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclwrite"
	tfaddr "github.com/hashicorp/terraform-registry-address"
	"github.com/zclconf/go-cty/cty"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// An example is a provider or a module of the tree, as configurations name it.
type example struct {
	Name, Source, Version string
	Arguments             string // for the required variables of a module
}

// provider returns a hosted provider or, in a tree that is only a mirror, a
// mirrored one; nil if there is neither.
func (w welcome) provider() (mirrored *example) {
	for _, o := range w.report.Offered {
		if o.Kind != index.KindProvider {
			continue
		}
		a, err := address.Parse(o.Address)
		switch {
		case err != nil:
		case w.hosts(a) && o.Signature != "none":
			return &example{Name: a.Name, Source: w.authorityOf(w.host()) + "/" + a.At("").String(), Version: w.newest(o)}
		case mirrored == nil && a.Hostname != "" && !w.hosts(a):
			mirrored = &example{Name: a.Name, Source: o.Address, Version: w.newest(o)}
		}
	}
	return mirrored
}

// module returns a hosted module; nil if there is none.
func (w welcome) module() *example {
	for _, o := range w.report.Offered {
		if o.Kind != index.KindModule {
			continue
		}
		a, err := address.Parse(o.Address)
		if err != nil || !w.hosts(a) {
			continue
		}
		// In a module's source, clients take a part without a dot for a namespace, so
		// localhost has to be written as a number.
		host := w.host()
		if host == "localhost" {
			host = "127.0.0.1"
		}
		e := &example{Name: a.Name, Source: w.authorityOf(host) + "/" + a.At("").String(), Version: w.newest(o)}
		if _, err := tfaddr.ParseModuleSource(e.Source); err != nil {
			continue
		}
		if w.variables != nil {
			e.Arguments = arguments(w.variables(o.Address, e.Version))
		}
		return e
	}
	return nil
}

// hosts reports whether the address is one of this registry's own.
func (w welcome) hosts(a address.Address) bool {
	return a.Hostname == "" || a.Hostname.ForDisplay() == displayName(w.authorityOf(w.host()))
}

// newest is the newest version of the address that is not a pre-release, or else
// the newest. A report lists the newest first.
func (w welcome) newest(first index.Offer) string {
	for _, o := range w.report.Offered {
		if o.Kind == first.Kind && o.Address == first.Address && !strings.Contains(o.Version, "-") {
			return o.Version
		}
	}
	return first.Version
}

// arguments sets the variables in a module block. Clients refuse to plan without
// them.
func arguments(variables []exampleVariable) string {
	if len(variables) == 0 {
		return ""
	}
	var unformatted strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&unformatted, "%s = %s\n", v.name, v.value)
	}
	text := "\n  # Required by the module; the values are examples.\n"
	for line := range strings.Lines(string(hclwrite.Format([]byte(unformatted.String())))) {
		text += "  " + line
	}
	return text
}

// An exampleVariable is a required variable of a module, with a value of its type.
type exampleVariable struct{ name, value string }

// Bounds of what is read of a module for an example.
const (
	maxExampleFile  = 128 << 10
	maxExampleFiles = 200
)

// exampleVariables returns the required variables of a module version. As they are
// only for an example, what cannot be read is left out.
func exampleVariables(s *index.Snapshot, text, version string) []exampleVariable {
	a, err := address.Parse(text)
	if err != nil {
		return nil
	}
	m := s.Module(a)
	if m == nil || m.Version(version) == nil {
		return nil
	}
	archive := m.Version(version).Archive
	f, err := s.Open(archive)
	if err != nil {
		return nil
	}
	defer f.Close()
	files := make(map[string][]byte)
	read := readTarGz
	if strings.HasSuffix(archive.Name, ".zip") {
		read = func(r io.ReadSeeker, files map[string][]byte) error { return readZip(r, archive.Size, files) }
	}
	if err := read(f, files); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return requiredVariables(files)
}

// keepConfiguration keeps a file of an archive if it may be configuration of the
// module, which is at the root or in the one folder there.
func keepConfiguration(files map[string][]byte, name string, r io.Reader) error {
	name = path.Clean(name)
	isConfiguration := strings.HasSuffix(name, ".tf") || strings.HasSuffix(name, ".tofu")
	if !isConfiguration || strings.Count(name, "/") > 1 || len(files) == maxExampleFiles {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(r, maxExampleFile+1))
	if err == nil && len(content) <= maxExampleFile {
		files[name] = content
	}
	return err
}

func readTarGz(f io.ReadSeeker, files map[string][]byte) error {
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := keepConfiguration(files, h.Name, t); err != nil {
			return err
		}
	}
}

func readZip(f io.ReadSeeker, size int64, files map[string][]byte) error {
	at, ok := f.(io.ReaderAt)
	if !ok {
		return errors.ErrUnsupported
	}
	z, err := zip.NewReader(at, size)
	if err != nil {
		return err
	}
	for _, e := range z.File {
		if e.FileInfo().IsDir() {
			continue
		}
		r, err := e.Open()
		if err != nil {
			return err
		}
		err = keepConfiguration(files, e.Name, r)
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

var (
	variableBlocks = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "variable", LabelNames: []string{"name"}}}}
	variableSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "type"}, {Name: "default"}}}
)

// requiredVariables returns the variables without a default, sorted by name.
func requiredVariables(files map[string][]byte) []exampleVariable {
	folders := make(map[string]bool)
	for name := range files {
		folders[path.Dir(name)] = true
	}
	if len(folders) > 1 && !folders["."] {
		return nil // several folders: none of them is the module
	}
	var required []exampleVariable
	seen := make(map[string]bool)
	for name, content := range files {
		if folders["."] && path.Dir(name) != "." {
			continue
		}
		f, _ := hclparse.NewParser().ParseHCL(content, path.Base(name))
		if f == nil {
			continue
		}
		body, _, _ := f.Body.PartialContent(variableBlocks)
		for _, block := range body.Blocks {
			of, _, _ := block.Body.PartialContent(variableSchema)
			variable := block.Labels[0]
			if of.Attributes["default"] != nil || seen[variable] {
				continue
			}
			seen[variable] = true
			kind := cty.String
			if t := of.Attributes["type"]; t != nil {
				if declared, _, problems := typeexpr.TypeConstraintWithDefaults(t.Expr); !problems.HasErrors() {
					kind = declared
				}
			}
			value := hclwrite.TokensForValue(exampleValue(kind)).Bytes()
			required = append(required, exampleVariable{variable, string(value)})
		}
	}
	slices.SortFunc(required, func(a, b exampleVariable) int { return cmp.Compare(a.name, b.name) })
	return required
}

// exampleValue returns a small value of a type.
func exampleValue(t cty.Type) cty.Value {
	switch {
	case t == cty.Number:
		return cty.NumberIntVal(1)
	case t == cty.Bool:
		return cty.False
	case t.IsListType() || t.IsSetType():
		return cty.EmptyTupleVal
	case t.IsMapType():
		return cty.EmptyObjectVal
	case t.IsTupleType():
		var values []cty.Value
		for _, element := range t.TupleElementTypes() {
			values = append(values, exampleValue(element))
		}
		return cty.TupleVal(values)
	case t.IsObjectType():
		values := make(map[string]cty.Value)
		for name, attribute := range t.AttributeTypes() {
			if !t.AttributeOptional(name) {
				values[name] = exampleValue(attribute)
			}
		}
		return cty.ObjectVal(values)
	}
	return cty.StringVal("example")
}
