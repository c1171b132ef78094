package command

import (
	"fmt"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// writeProblems writes each path, and below it the address and version it belongs
// to, the reason and what to do.
func writeProblems(b *strings.Builder, title string, problems []index.Problem) {
	if len(problems) == 0 {
		return
	}
	fmt.Fprintln(b, title)
	for _, p := range problems {
		writeProblem(b, p, 0)
	}
	fmt.Fprintln(b)
}

func writeProblem(b *strings.Builder, p index.Problem, margin int) {
	subject := strings.TrimSpace(p.Address + " " + p.Version)
	if subject != "" {
		subject += ": "
	}
	fmt.Fprintf(b, "%*s%s\n", margin, "", printable(p.Path))
	b.WriteString(wrap(printable(subject)+string(p.Reason), margin+reportIndent))
	b.WriteString(wrap(printable(p.Detail), margin+reportIndent))
}
