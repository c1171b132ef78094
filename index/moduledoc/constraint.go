package moduledoc

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxConstraint limits the types that are parsed, in bytes: HCL's parser is recursive, and
// its stack must not overflow.
const maxConstraint = 8 << 10

// Constraint returns the type that values of the variable must have, or the type any if it
// has none. The error means that clients refuse the type. The defaults of optional attributes
// are not looked at, because whoever wrote the module chose how long it takes to compute them.
func (v *Variable) Constraint() (cty.Type, error) {
	switch {
	case v.Type == "":
		return cty.DynamicPseudoType, nil
	case len(v.Type) > maxConstraint:
		return cty.NilType, fmt.Errorf("the type is longer than %d bytes", maxConstraint)
	}
	expression, problems := hclsyntax.ParseExpression([]byte(v.Type), "", hcl.InitialPos)
	if problems.HasErrors() {
		return cty.NilType, problems
	}
	switch hcl.ExprAsKeyword(expression) { // clients take these two, as Terraform 0.11 had them
	case "list":
		return cty.List(cty.DynamicPseudoType), nil
	case "map":
		return cty.Map(cty.DynamicPseudoType), nil
	}
	_ = hclsyntax.VisitAll(expression, withoutDefault)
	constraint, problems := typeexpr.TypeConstraint(expression)
	if problems.HasErrors() {
		return cty.NilType, problems
	}
	return constraint, nil
}

// withoutDefault removes the default from optional(TYPE, DEFAULT).
func withoutDefault(node hclsyntax.Node) hcl.Diagnostics {
	if call, ok := node.(*hclsyntax.FunctionCallExpr); ok && call.Name == "optional" && len(call.Args) == 2 {
		call.Args = call.Args[:1]
	}
	return nil
}
