package command

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclwrite"
	tfaddr "github.com/hashicorp/terraform-registry-address"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// welcome is what the command prints when it serves: what it found, and what
// to tell the clients, ready to be pasted.
type welcome struct {
	site      site
	root      string
	report    *index.Report
	authority string // the certificate clients have to trust; empty if public

	// variables are those that a module needs. May be nil.
	variables func(address, version string) []exampleVariable
}

// maxWelcome is how many problems are printed: what is to be pasted comes below.
const maxWelcome = 20

// elsewhere stands for the name of a proxy that only the user knows.
const elsewhere = "registry.example.com"

func (w welcome) write(out io.Writer) error {
	b := bufio.NewWriter(out)
	fmt.Fprintf(b, "Serving %s on %s\n\n", w.root, w.site.url())
	w.writeFound(b)
	w.writeTransport(b)
	w.writeClient(b)
	w.writeExample(b)
	return b.Flush()
}

func (w welcome) writeFound(b *bufio.Writer) {
	fmt.Fprint(b, wrap(summary(w.report), 0))
	if w.report.Hint != "" {
		fmt.Fprint(b, "\n", wrap(sentence(w.report.Hint), 0))
	}
	if len(w.report.Withheld) == 0 {
		fmt.Fprintln(b)
		return
	}
	fmt.Fprint(b, "\nWithheld, and what to do:\n")
	problems := new(strings.Builder)
	for _, p := range w.report.Withheld[:min(len(w.report.Withheld), maxWelcome)] {
		writeProblem(problems, p, 2)
	}
	b.WriteString(problems.String())
	if more := len(w.report.Withheld) - maxWelcome; more > 0 {
		fmt.Fprintf(b, "  … and %d more: `caddy terraform-registry check` lists all\n", more)
	}
	fmt.Fprintln(b)
}

func (w welcome) writeTransport(b *bufio.Writer) {
	switch {
	case !w.site.https:
		fmt.Fprintf(b, "Clients speak HTTPS only, and this is plain HTTP. Put a proxy with a certificate\n"+
			"in front (below, %s stands for its name), or use --domain or\n--internal-certs.\n\n", elsewhere)
	case w.authority != "":
		fmt.Fprintf(b, "Its certificate is by an authority on this machine. On Linux, have clients trust it:\n\n"+
			"export SSL_CERT_FILE=%s\n\n"+
			"On macOS and Windows, add that file to the trusted certificates of the system.\n\n", shellQuote(w.authority))
	}
}

func (w welcome) writeClient(b *bufio.Writer) {
	authority := w.authorityOf(w.host())
	url := "https://" + authority + handlers.DefaultPrefix + "/mirror/"
	fmt.Fprint(b, "As a mirror for all providers, in ~/.terraformrc for Terraform and in ~/.tofurc\nfor OpenTofu:\n\n")
	if !strings.Contains(authority, ":") {
		fmt.Fprintf(b, "provider_installation {\n"+
			"  network_mirror {\n"+
			"    url = %q\n"+
			"  }\n"+
			"  direct {} # leave this out where the public registries cannot be reached\n"+
			"}\n\n", url)
		return
	}
	// Clients take the port of an address they look for in a mirror for a part
	// of a URL, and fail. They have to ask the registry.
	own := authority + "/*/*"
	fmt.Fprintf(b, "provider_installation {\n"+
		"  network_mirror {\n"+
		"    url     = %q\n"+
		"    exclude = [%q]\n"+
		"  }\n"+
		"  direct {\n"+
		"    # Where the public registries cannot be reached:\n"+
		"    # include = [%q]\n"+
		"  }\n"+
		"}\n\n", url, own, own)
}

// writeExample shows how to use what is there, by its real addresses. A tree
// without anything gets a made-up example.
func (w welcome) writeExample(b *bufio.Writer) {
	provider, hasProvider := w.firstProvider()
	module, hasModule := w.firstModule()
	if !hasProvider && !hasModule {
		return
	}
	fmt.Fprint(b, "As a registry, in a configuration:\n\n")
	if hasProvider {
		fmt.Fprintf(b, "terraform {\n"+
			"  required_providers {\n"+
			"    %s = {\n"+
			"      source  = %q\n"+
			"      version = %q\n"+
			"    }\n"+
			"  }\n"+
			"}\n\n", provider.name, provider.source, provider.version)
	}
	if hasModule {
		fmt.Fprintf(b, "module %q {\n"+
			"  source  = %q\n"+
			"  version = %q\n", module.name, module.source, module.version)
		writeVariables(b, module.variables)
		fmt.Fprint(b, "}\n\n")
	}
}

// An example is one thing the tree offers, as configurations name it.
type example struct {
	name, source, version string
	variables             []exampleVariable
}

// writeVariables gives a module the values without which clients do not plan.
func writeVariables(b *bufio.Writer, variables []exampleVariable) {
	if len(variables) == 0 {
		return
	}
	var arguments strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&arguments, "%s = %s\n", v.name, v.value)
	}
	fmt.Fprint(b, "\n  # Required by the module; the values are examples.\n")
	for line := range strings.Lines(string(hclwrite.Format([]byte(arguments.String())))) {
		fmt.Fprint(b, "  ", line)
	}
}

// firstProvider is one of the registry's own; if it is only a mirror, one that
// it mirrors.
func (w welcome) firstProvider() (example, bool) {
	var mirrored example
	for _, o := range w.report.Offered {
		if o.Kind != index.KindProvider {
			continue
		}
		parts := strings.Split(o.Address, "/")
		name := parts[len(parts)-1]
		if own, ok := w.own(parts, 2); ok && o.Signature != "none" {
			return example{name: name, source: w.authorityOf(w.host()) + "/" + own, version: w.newest(o)}, true
		}
		if mirrored.source == "" && len(parts) == 3 {
			mirrored = example{name: name, source: o.Address, version: w.newest(o)}
		}
	}
	return mirrored, mirrored.source != ""
}

func (w welcome) firstModule() (example, bool) {
	for _, o := range w.report.Offered {
		if o.Kind != index.KindModule {
			continue
		}
		parts := strings.Split(o.Address, "/")
		own, ok := w.own(parts, 3)
		if !ok {
			continue
		}
		if source, ok := w.moduleSource(own); ok {
			e := example{name: parts[len(parts)-2], source: source, version: w.newest(o)}
			if w.variables != nil {
				e.variables = w.variables(o.Address, e.version)
			}
			return e, true
		}
	}
	return example{}, false
}

// own returns the address without its hostname if it is one of this registry.
func (w welcome) own(parts []string, length int) (string, bool) {
	switch {
	case len(parts) == length:
		return strings.Join(parts, "/"), true
	case len(parts) == length+1 && parts[0] == displayName(w.authorityOf(w.host())):
		return strings.Join(parts[1:], "/"), true
	}
	return "", false
}

// moduleSource is the address as a module's source. There, clients take what
// has no dot for a namespace, so localhost has to be written as a number.
func (w welcome) moduleSource(address string) (string, bool) {
	host := w.host()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	source := w.authorityOf(host) + "/" + address
	_, err := tfaddr.ParseModuleSource(source)
	return source, err == nil
}

// newest is the newest version of the address, one that is no pre-release if
// there is one. They are listed the newest first.
func (w welcome) newest(first index.Offer) string {
	for _, o := range w.report.Offered {
		if o.Kind == first.Kind && o.Address == first.Address && !strings.Contains(o.Version, "-") {
			return o.Version
		}
	}
	return first.Version
}

// host is the name clients reach the registry by, as users write it.
func (w welcome) host() string {
	if !w.site.https {
		return cmp.Or(displayName(w.site.domain), elsewhere)
	}
	return displayName(w.site.host)
}

// authorityOf adds the port, which behind a proxy is the proxy's.
func (w welcome) authorityOf(host string) string {
	if !w.site.https {
		return host
	}
	return w.site.authority(host)
}

// displayName is a hostname as users write it, in Unicode.
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

// shellQuote quotes a path for a POSIX shell, if it needs that.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@%:", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
