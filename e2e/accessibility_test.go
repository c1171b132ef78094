package e2e_test

import (
	"os"
	"path/filepath"
	"sync"
)

// axe is the source of axe-core, which finds violations of the rules of
// accessible pages.
var axe = sync.OnceValues(func() (string, error) {
	packages, err := browserPackages()
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(packages, "node_modules", "axe-core", "axe.min.js"))
	return string(source), err
})

// Violations returns the violations that axe-core finds on the page, in its present
// size and colour scheme.
func (tab *Tab) Violations() []string {
	tab.t.Helper()
	source, err := axe()
	require(tab.t, err)
	evaluate[bool](tab, source+"\n;true")
	return evaluate[[]string](tab, `axe.run(document, { resultTypes: ['violations'] }).then(found =>
		found.violations.flatMap(v => v.nodes.map(n =>
			v.id + ': ' + v.help + ': ' + n.target.join(' ') + ': ' + n.failureSummary.replace(/\s+/g, ' '))))`)
}
