// Typecheck finds what does not compile on other systems: in the packages of a module,
// in their tests, and in all that they import. It reads source alone, which takes
// seconds for a system; go vet and go build compile every dependency first, which takes
// minutes for each.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("usage: typecheck FOLDER_OF_A_MODULE GOOS/GOARCH...")
	}
	failed := false
	files := sources{fset: token.NewFileSet()}
	for _, system := range os.Args[2:] {
		goos, goarch, ok := strings.Cut(system, "/")
		if !ok {
			log.Fatalf("%s is not GOOS/GOARCH", system)
		}
		pkgs, err := packages.Load(&packages.Config{
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
				packages.NeedImports | packages.NeedDeps | packages.NeedModule |
				packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes,
			Dir:   os.Args[1],
			Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
			Tests: true,

			Fset:      files.fset,
			ParseFile: files.parse,
		}, "./...")
		if err != nil {
			log.Fatalf("%s: %v", system, err)
		}
		if len(pkgs) == 0 {
			log.Fatalf("%s: there are no packages in %s", system, os.Args[1])
		}
		if packages.PrintErrors(pkgs) > 0 {
			fmt.Fprintf(os.Stderr, "does not compile for %s\n", system)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// Sources are files that are parsed once for all systems, most of which have the same.
type sources struct {
	fset   *token.FileSet
	byName sync.Map // of *ast.File
}

func (s *sources) parse(_ *token.FileSet, name string, content []byte) (*ast.File, error) {
	if file, ok := s.byName.Load(name); ok {
		return file.(*ast.File), nil
	}
	file, err := parser.ParseFile(s.fset, name, content, parser.SkipObjectResolution)
	if err == nil {
		s.byName.Store(name, file)
	}
	return file, err
}
