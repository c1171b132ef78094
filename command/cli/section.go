package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// WriteSection writes a heading, the items below it and an empty line. It writes nothing if
// there are no items.
func WriteSection[T any](out io.Writer, heading string, items []T, text func(T) string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintln(out, heading)
	for _, item := range items {
		fmt.Fprintln(out, strings.TrimSuffix(text(item), "\n"))
	}
	fmt.Fprintln(out)
}

// WriteProblems writes a section of problems.
func WriteProblems(out io.Writer, heading string, problems []index.Problem) {
	WriteSection(out, heading, problems, func(p index.Problem) string { return ProblemText(p, 0) })
}

// ProblemText is the path of a problem, and below it the address and version to which the
// path belongs, the reason and what to do.
func ProblemText(p index.Problem, margin int) string {
	subject := strings.TrimSpace(p.Address + " " + p.Version)
	if subject != "" {
		subject += ": "
	}
	return fmt.Sprintf("%*s%s\n", margin, "", Printable(p.Path)) +
		Wrap(Printable(subject)+string(p.Reason), margin+Indent) +
		Wrap(Printable(p.Detail), margin+Indent)
}
