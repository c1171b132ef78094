package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// A listedToken is a line of the list. There are no hashes in it: nobody needs
// them to tell tokens apart.
type listedToken struct {
	Name    string     `json:"name"`
	Groups  []string   `json:"groups"`
	Expires *time.Time `json:"expires"` // null: never
	State   string     `json:"state"`
}

// What the state of a token can be.
const (
	tokenGood    = "good"
	tokenExpired = "expired"
)

func listTokens(entries []access.TokenEntry, now time.Time) []listedToken {
	list := make([]listedToken, len(entries)) // in JSON an empty list, not null
	for i, e := range entries {
		list[i] = listedToken{Name: e.Name, Groups: append([]string{}, e.Groups...), State: tokenGood}
		if !e.Expires.IsZero() {
			list[i].Expires = &entries[i].Expires
		}
		if e.Expired(now) {
			list[i].State = tokenExpired
		}
	}
	return list
}

func writeTokenList(out io.Writer, list []listedToken) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "There are no tokens.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tGROUPS\tEXPIRES\tSTATE")
	for _, t := range list {
		expires := "never"
		if t.Expires != nil {
			expires = t.Expires.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, cmp.Or(strings.Join(t.Groups, ","), "-"), expires, t.State)
	}
	return w.Flush()
}

func writeTokenListJSON(out io.Writer, list []listedToken) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(list)
}

// A tokenNote says what to do with a new token, which it does not have in it.
type tokenNote struct {
	name, file string
	made       bool // the file
	expires    time.Time
}

func (n tokenNote) write(out io.Writer) {
	if n.made {
		fmt.Fprintf(out, "Made %s, which only you can read:\nhave it belong to the user that Caddy runs as.\n", n.file)
	}
	until := ""
	if !n.expires.IsZero() {
		until = ", good until " + n.expires.Format(time.RFC3339)
	}
	fmt.Fprintf(out, `Added %s to %s%s.
The token is not shown again: keep it now.

Clients take it from the environment, in a variable named after the registry.
For registry.example.com that is the one below; a - in the name becomes __:

    export TF_TOKEN_registry_example_com=TOKEN

Or from their configuration, ~/.terraformrc or ~/.tofurc:

    credentials "registry.example.com" {
      token = "TOKEN"
    }
`, n.name, n.file, until)
}
