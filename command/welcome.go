package command

import (
	"bytes"
	"cmp"
	_ "embed" // the template
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A welcome is the output of the command when it serves: a summary of the folder, and the
// configuration of clients, ready to be pasted.
type welcome struct {
	site            site
	root            string
	report          *index.Report
	certificateFile string // of the authority that clients have to trust; empty if that is public

	// variables returns the required variables of a module. May be nil.
	variables func(address, version string) []exampleVariable
}

// maxWithheld bounds the problems that are printed above the configuration of clients.
const maxWithheld = 20

// exampleHostname stands for the name of a proxy, which only the user knows.
const exampleHostname = "registry.example.com"

//go:embed welcome.tmpl
var welcomeText string

func (w welcome) write(out io.Writer) error {
	t, err := template.New("welcome").Parse(welcomeText)
	if err != nil {
		return err
	}
	clients := w.clients()
	data := struct {
		Root, URL, Summary, Hint, Withheld string
		MoreWithheld                       int

		HTTPS           bool
		CertificateFile string // quoted for a shell

		Registry string // the hostname in addresses
		Mirror   string
		StandIn  string // introduces the Blocks
		Blocks   []string

		Provider, Module *example
	}{
		Root:         w.root,
		URL:          w.site.url(),
		Summary:      cli.Wrap(summary(w.report), 0),
		MoreWithheld: max(0, len(w.report.Withheld)-maxWithheld),
		HTTPS:        w.site.https,
		Registry:     w.authorityOf(w.host()),
		Mirror:       clients.Mirror(),
		Provider:     w.provider(),
		Module:       w.module(),
	}
	if len(clients.Origins) > 0 {
		data.StandIn = cli.Wrap("Or, instead of the mirror, in place of "+enumerate(clients.Origins)+". Then clients verify the publishers' signatures themselves, and lock files get the hashes of all platforms:", 0)
	}
	for _, o := range clients.Origins {
		data.Blocks = append(data.Blocks, clients.StandIn(o))
	}
	if w.report.Hint != "" {
		data.Hint = cli.Wrap(cli.Sentence(w.report.Hint), 0)
	}
	var problems strings.Builder
	for _, p := range w.report.Withheld[:min(len(w.report.Withheld), maxWithheld)] {
		problems.WriteString(cli.ProblemText(p, 2))
	}
	data.Withheld = problems.String()
	if w.certificateFile != "" {
		data.CertificateFile = shellQuote(w.certificateFile)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	_, err = out.Write(b.Bytes())
	return err
}

// clients describes the registry for the configuration of clients.
func (w welcome) clients() clientconfig.Registry {
	registry := w.authorityOf(w.host())
	c := clientconfig.Registry{URL: "https://" + registry + handlers.DefaultPrefix}
	if _, err := address.ParseHostname(registry); err == nil { // not an IPv6 address, which no pattern can have
		c.Hostnames = []string{registry}
	}
	for _, o := range w.report.Offered {
		a, err := address.Parse(o.Address)
		switch {
		case err != nil:
		case !w.hosts(a):
			i, found := slices.BinarySearchFunc(c.Origins, a.Hostname, func(o clientconfig.Origin, h svchost.Hostname) int { return cmp.Compare(o.Hostname, h) })
			if !found {
				c.Origins = slices.Insert(c.Origins, i, clientconfig.Origin{Hostname: a.Hostname})
			}
			c.Origins[i].Providers = c.Origins[i].Providers || !a.IsModule()
			c.Origins[i].Modules = c.Origins[i].Modules || a.IsModule()
		case !a.IsModule() && o.Signature != "none":
			c.HostsProviders = true
		}
	}
	return c
}

// enumerate names the origins in a sentence.
func enumerate(origins []clientconfig.Origin) string {
	var names []string
	for _, o := range origins {
		names = append(names, o.String())
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// host is the name that clients reach the registry by, in Unicode.
func (w welcome) host() string {
	switch {
	case w.site.https:
		return displayName(w.site.host)
	case w.site.domain != "":
		return displayName(w.site.domain)
	}
	return exampleHostname
}

// authorityOf adds the port. Behind a proxy, clients use the port of the proxy.
func (w welcome) authorityOf(host string) string {
	if !w.site.https {
		return host
	}
	return w.site.authority(host)
}

// displayName is a hostname in Unicode, as users write it. It leaves IP addresses
// alone.
func displayName(name string) string {
	host, _, err := net.SplitHostPort(name)
	if err != nil {
		host = name
	}
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return name
	}
	return svchost.ForDisplay(name)
}

// shellQuote quotes a path for a POSIX shell if necessary.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@%:", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
