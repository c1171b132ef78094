package terraformregistry_test

import (
	"go/ast"
	"testing"
)

// Other packages and their readers rely on exported names, so each has a comment. One
// comment may stand for a group of constants or variables.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, l := range layers {
		for _, name := range sources(t, l.name) {
			file, fset := parse(t, name)
			for _, d := range file.Decls {
				for _, name := range undocumented(d) {
					t.Errorf("%s: %s has no comment", fset.Position(d.Pos()), name)
				}
			}
		}
	}
}

// undocumented returns the exported names of a declaration that lack a comment. Methods
// of well-known interfaces need none.
func undocumented(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || exportedReceiver(d.Recv) && !wellKnown[d.Name.Name]) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

func exportedReceiver(r *ast.FieldList) bool {
	typ := r.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	name, ok := typ.(*ast.Ident)
	return ok && name.IsExported()
}

var wellKnown = map[string]bool{
	"Error": true, "Unwrap": true, "Is": true, "String": true, "GoString": true, "Read": true, "Write": true, "Seek": true, "Close": true,
	"ServeHTTP": true, "MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true,
}
