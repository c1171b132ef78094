package lockfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Name is the name of a configuration's lock file.
const Name = ".terraform.lock.hcl"

// maxSize is the maximum size of a lock file in bytes. It is about a hundred times the
// size for a large configuration.
const maxSize = 1 << 20

// A Locked provider is an entry of a lock file: init takes this version and no
// other, from a package with one of these hashes.
type Locked struct {
	Address address.Address // with its hostname
	Version string
	Hashes  []string // "h1:…", "zh:…", in the file's order
	From    string   // FILE:LINE

	// Legacy providers, registry.terraform.io/-/TYPE, are left behind by Terraform
	// 0.13 and in no registry. They have neither version nor hashes here.
	Legacy bool

	exact address.Constraints
}

// Requirement returns a requirement for exactly the locked version.
func (l Locked) Requirement() Requirement {
	return Requirement{Address: l.Address, From: []string{l.From}, constraints: l.exact}
}

// Accepts reports whether a package with these hashes may be the locked package. If both
// sides have hashes of the zip (zh), only these are compared, otherwise the hashes of the
// files in it. If there is nothing to compare, any package is accepted.
func (l Locked) Accepts(hashes []string) bool {
	for _, has := range []func(hash string) bool{wire.IsZH, wire.IsOfFiles} {
		locked, given := withScheme(l.Hashes, has), withScheme(hashes, has)
		if len(locked) > 0 && len(given) > 0 {
			return slices.ContainsFunc(given, func(hash string) bool { return slices.Contains(locked, hash) })
		}
	}
	return true
}

func withScheme(hashes []string, has func(hash string) bool) (of []string) {
	for _, hash := range hashes {
		if has(hash) {
			of = append(of, hash)
		}
	}
	return of
}

var (
	fileSchema     = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "provider", LabelNames: []string{"source"}}}}
	providerSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "version"}, {Name: "hashes"}}}
)

// Read reads a lock file, which may be a pipe.
func Read(name string) ([]Locked, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	return parse(name, content)
}

// parse reads the content of a lock file and returns its providers, ordered by address.
// It ignores attributes and blocks of later clients. The error uses name, and lists all
// mistakes as FILE:LINE: what.
func parse(name string, content []byte) ([]Locked, error) {
	if len(content) > maxSize {
		return nil, fmt.Errorf("%s: it is larger than %d bytes, which no lock file is", name, maxSize)
	}
	file, diags := hclsyntax.ParseConfig(content, name, hcl.InitialPos)
	if err := firstError(name, diags); err != nil {
		return nil, err
	}
	body, _, diags := file.Body.PartialContent(fileSchema)
	if err := firstError(name, diags); err != nil {
		return nil, err
	}
	var all []Locked
	var bad []error
	seen := make(map[address.Address]string)
	for _, block := range body.Blocks {
		l, err := parseLocked(block)
		if err == nil && seen[l.Address] != "" {
			err = fmt.Errorf("%s is locked at %s already: remove one of the two", l.Address, seen[l.Address])
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", position(block.DefRange), err))
			continue
		}
		seen[l.Address] = l.From
		all = append(all, l)
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Locked) int { return strings.Compare(a.Address.String(), b.Address.String()) })
	return all, nil
}

func parseLocked(block *hcl.Block) (Locked, error) {
	l := Locked{From: position(block.DefRange)}
	source := block.Labels[0]
	if strings.Count(source, "/") != 2 {
		return l, fmt.Errorf("%q is not HOSTNAME/NAMESPACE/TYPE, as clients lock providers: write its hostname too", source)
	}
	var err error
	if typ, legacy := strings.CutPrefix(source, string(address.TerraformHost)+"/-/"); legacy {
		l.Address, err = address.ParseProvider(string(address.TerraformHost), "hashicorp", typ)
		l.Address.Namespace, l.Legacy = "-", true
		return l, err
	}
	if l.Address, err = parseSource(source, ""); err != nil {
		return l, err
	}
	if isBuiltIn(l.Address) {
		return l, fmt.Errorf("%s is part of the client itself and cannot be locked: remove it", l.Address)
	}
	content, _, diags := block.Body.PartialContent(providerSchema)
	if diags.HasErrors() {
		return l, fmt.Errorf("%s: %w", l.Address, diags)
	}
	attribute := content.Attributes["version"]
	if attribute == nil {
		return l, fmt.Errorf("%s has no version: let init write a new one", l.Address)
	}
	var ok bool
	if l.Version, ok = literal(attribute.Expr); !ok {
		return l, fmt.Errorf("%s: version is not a string in quotes", l.Address)
	}
	v, err := address.ParseProviderVersion(l.Version)
	if err != nil {
		return l, fmt.Errorf("%s: %w", l.Address, err)
	}
	l.exact = address.Exactly(v)
	if l.Hashes, err = parseHashes(content.Attributes["hashes"]); err != nil {
		return l, fmt.Errorf("%s: %w", l.Address, err)
	}
	return l, nil
}

func parseHashes(attribute *hcl.Attribute) ([]string, error) {
	if attribute == nil {
		return nil, nil
	}
	list, diags := hcl.ExprList(attribute.Expr)
	if diags.HasErrors() {
		return nil, errors.New("hashes is not a list")
	}
	hashes := make([]string, 0, len(list))
	for _, expr := range list {
		hash, ok := literal(expr)
		scheme, sum, _ := strings.Cut(hash, ":")
		if !ok || scheme == "" || sum == "" {
			return nil, fmt.Errorf("the hash on line %d is not a string like \"h1:…\" or \"zh:…\"", expr.Range().Start.Line)
		}
		hashes = append(hashes, hash)
	}
	return hashes, nil
}

// literal returns the value of a literal string. Nothing is evaluated, since an
// expression of a module's author can take any amount of time and memory.
func literal(expr hcl.Expression) (string, bool) {
	switch e := expr.(type) {
	case *hclsyntax.TemplateExpr:
		var text strings.Builder
		for _, part := range e.Parts {
			l, ok := part.(*hclsyntax.LiteralValueExpr)
			if !ok || l.Val.Type() != cty.String {
				return "", false
			}
			text.WriteString(l.Val.AsString())
		}
		return text.String(), true
	case *hclsyntax.ObjectConsKeyExpr:
		if word := hcl.ExprAsKeyword(e); word != "" && !e.ForceNonLiteral {
			return word, true
		}
		return literal(e.Wrapped)
	case *hclsyntax.ParenthesesExpr:
		return literal(e.Expression)
	case hclsyntax.Expression:
		return "", false
	}
	// In JSON, a template is plain text if there are no variables.
	v, diags := expr.Value(nil)
	if diags.HasErrors() || v.IsNull() || v.Type() != cty.String || strings.Contains(v.AsString(), "${") || strings.Contains(v.AsString(), "%{") {
		return "", false
	}
	return v.AsString(), true
}

// firstError returns the parser's first error as FILE:LINE: what, or nil.
func firstError(name string, diags hcl.Diagnostics) error {
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		detail := strings.TrimSuffix(strings.Join(strings.Fields(d.Summary+": "+d.Detail), " "), ".")
		if d.Subject == nil {
			return fmt.Errorf("%s: %s", name, detail)
		}
		return fmt.Errorf("%s: %s", position(*d.Subject), detail)
	}
	return nil
}

// position returns FILE:LINE, to which editors can jump.
func position(r hcl.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }
