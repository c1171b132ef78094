package upstream

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// pathsFrom returns the relative paths in a file of configuration, from its folder: the
// sources of called modules, and the files that it reads through ${path.module}. The
// paths are found in the text, so paths that an expression
// builds in another way are missing, and paths in comments are included.
func pathsFrom(name string, content []byte) ([]string, error) {
	if !bytes.Contains(content, []byte("./")) && !bytes.Contains(content, []byte("/..")) {
		return nil, nil // no path leaves the folder
	}
	paths, err := calledFrom(name, content)
	for _, m := range readThroughModule.FindAllSubmatchIndex(content, -1) {
		text, rest := string(content[m[2]:m[3]]), content[m[3]:]
		paths = append(paths, literalPath(text, rest))
		if path, _, command := strings.Cut(text, " "); command { // the text is a command
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return slices.DeleteFunc(paths, func(path string) bool { return len(path) > maxEntryName }), err
}

// readThroughModule matches ${path.module} in a template with the literal text that
// follows it, as far as the text leads upwards. JSON and heredocs have the same form.
var readThroughModule = regexp.MustCompile(`\$\{~?\s*path\s*\.\s*module\s*~?\}/+([^"'\\$%\x00-\x1f]*\.\.[^"'\\$%\x00-\x1f]*)`)

// literalPath returns the path in the literal text of a template. If the text is
// followed by an expression, the expression may be the rest of a name, so the path is
// its folder.
func literalPath(text string, rest []byte) string {
	if len(rest) > 0 && strings.IndexByte(`$%\`, rest[0]) >= 0 {
		text = text[:strings.LastIndexByte(text, '/')+1] + "."
	}
	return text
}

// calledFrom returns the relative paths among the sources of module calls.
func calledFrom(name string, content []byte) (paths []string, err error) {
	// Each file is read by itself and as the main one: a file that replaces another is
	// used by only one of the clients, and even an overridden source may have to be
	// fetched.
	name, isJSON := "main.tf", strings.HasSuffix(name, ".json")
	if isJSON {
		name += ".json"
	}
	var file moduledoc.Collector
	if err := file.Add(name, bytes.NewReader(content)); err != nil {
		return nil, err
	}
	for _, call := range file.Package("").Root.Calls {
		// OpenTofu allows variables in a source, which is then returned as it is
		// written.
		source, template := strings.CutPrefix(call.Source, `"`)
		if end := strings.IndexAny(source, `"$%\`); template && end >= 0 {
			source = literalPath(source[:end], []byte(source[end:]))
		}
		if strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../") {
			paths = append(paths, source)
		}
	}
	return paths, nil
}
