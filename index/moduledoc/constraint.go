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
// has none. The error means that clients refuse the type.
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
	constraint, _, problems := typeexpr.TypeConstraintWithDefaults(expression)
	if problems.HasErrors() {
		return cty.NilType, problems
	}
	return constraint, nil
}
