package cli

import (
	"fmt"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// WriteProblems writes each path, and below it the address and version it belongs
// to, the reason and what to do.
func WriteProblems(b *strings.Builder, title string, problems []index.Problem) {
	if len(problems) == 0 {
		return
	}
	fmt.Fprintln(b, title)
	for _, p := range problems {
		WriteProblem(b, p, 0)
	}
	fmt.Fprintln(b)
}

func WriteProblem(b *strings.Builder, p index.Problem, margin int) {
	subject := strings.TrimSpace(p.Address + " " + p.Version)
	if subject != "" {
		subject += ": "
	}
	fmt.Fprintf(b, "%*s%s\n", margin, "", Printable(p.Path))
	b.WriteString(Wrap(Printable(subject)+string(p.Reason), margin+Indent))
	b.WriteString(Wrap(Printable(p.Detail), margin+Indent))
}
