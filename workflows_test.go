package terraformregistry_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The workflows install only the latest Go of one minor version. A module that asks for
// another one would not be built there.
func TestWorkflowsHaveTheGoOfEveryModule(t *testing.T) {
	const goVersion = "1.26"
	for _, name := range []string{".github/workflows/ci.yml", ".github/workflows/release.yml"} {
		workflow := read(t, name)
		steps := strings.Count(workflow, "actions/setup-go@")
		if steps == 0 || strings.Count(workflow, `go-version: "`+goVersion+`"`) != steps || strings.Count(workflow, "check-latest: true") != steps {
			t.Errorf("%s does not install the latest Go %s in each of %d steps", name, goVersion, steps)
		}
	}
	modules := []string{"go.mod"}
	for _, pattern := range []string{".ci/*/go.mod", "blob/go.mod", "blob/*/go.mod", "xcaddy/*/go.mod", "e2e/*/go.mod"} {
		names, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: there are no modules: %v", pattern, err)
		}
		modules = append(modules, names...)
	}
	line := regexp.MustCompile(`(?m)^go ` + regexp.QuoteMeta(goVersion) + `(\.\d+)?$`)
	for _, name := range modules {
		if !line.MatchString(read(t, name)) {
			t.Errorf("%s needs another Go than %s", name, goVersion)
		}
	}
}
