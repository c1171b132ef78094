package upstream

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// pathsFrom returns the relative paths that a file of configuration leads to, from the
// folder that it is in: the modules that it calls by them, and the files that it reads
// through ${path.module}. They are found in the text, so that what an expression builds
// otherwise is not among them, and what a comment names is.
func pathsFrom(name string, content []byte) ([]string, error) {
	if !bytes.Contains(content, []byte("./")) && !bytes.Contains(content, []byte("/..")) {
		return nil, nil // it stays in its folder
	}
	paths, err := calledFrom(name, content)
	for _, m := range readThroughModule.FindAllSubmatchIndex(content, -1) {
		text, rest := string(content[m[2]:m[3]]), content[m[3]:]
		paths = append(paths, literalPath(text, rest))
		if path, _, command := strings.Cut(text, " "); command { // as a command has it
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return slices.DeleteFunc(paths, func(path string) bool { return len(path) > maxEntryName }), err
}

// readThroughModule matches the folder of the module in a template with the literal text
// that follows it, as far as that leads upwards. It is the same in JSON and in heredocs.
var readThroughModule = regexp.MustCompile(`\$\{~?\s*path\s*\.\s*module\s*~?\}/+([^"'\\$%\x00-\x1f]*\.\.[^"'\\$%\x00-\x1f]*)`)

// literalPath is the path that a text in a template is. If it is interrupted by what has
// yet to be evaluated, that may be the rest of a name: the path is that of the folder.
func literalPath(text string, rest []byte) string {
	if len(rest) > 0 && strings.IndexByte(`$%\`, rest[0]) >= 0 {
		text = text[:strings.LastIndexByte(text, '/')+1] + "."
	}
	return text
}

// calledFrom returns the sources of module calls that are relative paths.
func calledFrom(name string, content []byte) (paths []string, err error) {
	// Each file is read by itself and as the main one: a file that replaces another does
	// so for one of the clients, and one that overrides a source leaves it to be fetched.
	name, isJSON := "main.tf", strings.HasSuffix(name, ".json")
	if isJSON {
		name += ".json"
	}
	var file moduledoc.Collector
	if err := file.Add(name, bytes.NewReader(content)); err != nil {
		return nil, err
	}
	for _, call := range file.Package("").Root.Calls {
		// OpenTofu allows variables in it; such a source is given as it is written.
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
