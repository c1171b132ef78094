package changes

import (
	"fmt"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// sameType reports whether two variables have the same type, whatever the layout. No
// type means any type. Defaults of optional attributes are part of a type.
func sameType(a, b *moduledoc.Variable) bool {
	return a.Type == b.Type || slices.Equal(typeWords(orAny(a.Type)), typeWords(orAny(b.Type)))
}

// typeWords returns a type as it is written, without its layout.
func typeWords(typ string) (words []string) {
	tokens, _ := hclsyntax.LexExpression([]byte(typ), "", hcl.InitialPos)
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenComma, hclsyntax.TokenComment, hclsyntax.TokenEOF:
		default:
			words = append(words, string(token.Bytes))
		}
	}
	if len(words) == 1 && (words[0] == "list" || words[0] == "map") { // clients take it for one of anything
		words = append(words, "(", "any", ")")
	}
	return words
}

// acceptsType reports whether the new variable accepts every value that the old one
// accepted. A type that cannot be read, or is too long to be read, may accept anything
// or nothing.
func acceptsType(now, old *moduledoc.Variable) bool {
	n, errNow := now.Constraint()
	o, errOld := old.Constraint()
	return errNow == nil && errOld == nil && accepts(n, o)
}

// accepts reports whether every value of the old type certainly fits the new one, and
// the new type ignores no attribute. It looks at each part of a type once.
func accepts(now, old cty.Type) bool {
	switch {
	case now == cty.DynamicPseudoType:
		return true
	case now == cty.String && (old == cty.Number || old == cty.Bool):
		return true // clients convert them
	case now.IsListType() && old.IsListType(), now.IsSetType() && old.IsSetType(), now.IsMapType() && old.IsMapType():
		return accepts(now.ElementType(), old.ElementType())
	case now.IsObjectType() && old.IsObjectType():
		for name, typ := range old.AttributeTypes() {
			if !now.HasAttribute(name) || !accepts(now.AttributeType(name), typ) {
				return false
			}
			if old.AttributeOptional(name) && !now.AttributeOptional(name) {
				return false
			}
		}
		for name := range now.AttributeTypes() {
			if !old.HasAttribute(name) && !now.AttributeOptional(name) {
				return false
			}
		}
		return true
	}
	return now.Equals(old)
}

// sameSource reports whether two sources name the same provider, whatever their spelling. A
// source without a hostname is at the registry that the client asks by default: it is the same
// as the one with that hostname, of Terraform or of OpenTofu.
func sameSource(a, b string) bool {
	one, errOne := providerOf(a)
	other, errOther := providerOf(b)
	switch {
	case errOne != nil || errOther != nil:
		return a == b
	case one.Hostname == "" && address.IsDefaultHost(other.Hostname):
		return one == other.WithHostname("")
	case other.Hostname == "" && address.IsDefaultHost(one.Hostname):
		return one.WithHostname("") == other
	}
	return one == other
}

// providerOf reads the source of a provider. Clients take a type alone for one of the namespace
// hashicorp.
func providerOf(source string) (address.Address, error) {
	if !strings.Contains(source, "/") {
		source = "hashicorp/" + source
	}
	return address.Parse(source)
}

// sameConstraints reports whether two constraints mean the same.
func sameConstraints(a, b string) bool {
	if a == b {
		return true
	}
	ca, errA := address.ParseConstraints(a)
	cb, errB := address.ParseConstraints(b)
	return errA == nil && errB == nil && ca.String() == cb.String()
}

// maxEffort limits the effort of narrows for two versions of a module, whose constraints may
// have hundreds of parts each. Those of real modules take a thousandth of it.
const maxEffort = 1 << 18

// narrows reports whether the constraints to refuse a version that from allows. Only
// their boundaries make a difference, so it tries only the versions around the
// boundaries. That takes time that grows with the square of their number.
func (c *comparer) narrows(from, to string) bool {
	parts := strings.Count(from, ",") + strings.Count(to, ",") + 2
	if c.effort += parts * parts; c.effort > maxEffort {
		return false
	}
	old, errOld := address.ParseConstraints(from)
	now, errNow := address.ParseConstraints(to)
	if errOld != nil || errNow != nil {
		return false // a constraint that cannot be read may allow anything
	}
	for _, v := range boundaryVersions(from + "," + to) {
		if old.Cover(v) && !now.Cover(v) {
			return true
		}
	}
	return false
}

// boundaryVersions returns the versions that constraints name, and the versions next to
// them.
func boundaryVersions(constraints string) []*version.Version {
	versions := []*version.Version{version.Must(version.NewVersion("0.0.0"))}
	for part := range strings.SplitSeq(constraints, ",") {
		v, err := version.NewVersion(strings.TrimLeft(strings.TrimSpace(part), "<>=!~ "))
		if err != nil {
			continue
		}
		versions = append(versions, v)
		segments := v.Core().Segments64()
		for i := range 3 {
			for _, step := range []int64{-1, 1} {
				next := slices.Clone(segments[:3])
				if next[i] += step; next[i] < 0 {
					continue
				}
				clear(next[i+1:])
				if step < 0 {
					for j := i + 1; j < 3; j++ {
						next[j] = 1 << 20 // the last version before it
					}
				}
				if v, err := version.NewVersion(fmt.Sprintf("%d.%d.%d", next[0], next[1], next[2])); err == nil { // a number that is too large makes no version
					versions = append(versions, v)
				}
			}
		}
	}
	return versions
}
