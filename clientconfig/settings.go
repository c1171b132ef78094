package clientconfig

import (
	"net/url"
	"strings"

	"github.com/hashicorp/hcl/v2"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Settings say where a client gets packages from, by its CLI configuration.
type Settings struct {
	// Services are the URLs of services by hostname and id, of hosts that are not
	// discovered.
	Services map[svchost.Hostname]map[string]string

	methods []method
}

// A method is one of the ways in which a client installs providers.
type method struct {
	mirror           *url.URL // of a network mirror
	direct           bool     // from the registry of the address; neither: from the disk
	include, exclude []providerPattern
}

// A providerPattern has a HOSTNAME or *, a NAMESPACE or * and a TYPE or *.
type providerPattern [3]string

func (p providerPattern) covers(a address.Address) bool {
	for i, part := range [3]string{string(a.Hostname), a.Namespace, a.Name} {
		if p[i] != "*" && p[i] != part {
			return false
		}
	}
	return true
}

func (m method) covers(a address.Address) bool {
	for _, p := range m.exclude {
		if p.covers(a) {
			return false
		}
	}
	for _, p := range m.include {
		if p.covers(a) {
			return true
		}
	}
	return len(m.include) == 0
}

// Sources returns where a client may have a provider from: the URLs of network mirrors, the
// provider's own registry (direct), and a filesystem_mirror or an oci_mirror (elsewhere).
func (s Settings) Sources(provider address.Address) (mirrors []*url.URL, direct, elsewhere bool) {
	if len(s.methods) == 0 {
		return nil, true, false
	}
	for _, m := range s.methods {
		switch {
		case !m.covers(provider):
		case m.mirror != nil:
			mirrors = append(mirrors, m.mirror)
		case m.direct:
			direct = true
		default:
			elsewhere = true
		}
	}
	return mirrors, direct, elsewhere
}

// Add adds the settings of a further file. The first file that says something counts.
func (s *Settings) Add(other Settings) {
	for host, services := range other.Services {
		if _, known := s.Services[host]; known {
			continue
		}
		if s.Services == nil {
			s.Services = make(map[svchost.Hostname]map[string]string)
		}
		s.Services[host] = services
	}
	if len(s.methods) == 0 {
		s.methods = other.methods
	}
}

var (
	installationSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "network_mirror"}, {Type: "direct"}, {Type: "filesystem_mirror"}, {Type: "oci_mirror"},
	}}
	methodSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "url"}, {Name: "include"}, {Name: "exclude"}}}
)

// Settings returns what the file says of where packages come from.
func (f *File) Settings() (s Settings, err error) {
	if err := f.unread(f.diagnostics); err != nil {
		return s, err
	}
	blocks, diagnostics := f.blocks(hcl.BlockHeaderSchema{Type: "host", LabelNames: []string{"hostname"}}, hcl.BlockHeaderSchema{Type: "provider_installation"})
	if err := f.unread(diagnostics); err != nil {
		return s, err
	}
	for _, b := range blocks {
		if b.Type == "host" {
			err = f.addHost(&s, b)
		} else {
			err = f.addMethods(&s, b)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func (f *File) addHost(s *Settings, b *hcl.Block) error {
	hostname, err := address.ParseHostname(b.Labels[0])
	if err != nil {
		return f.unreadAt(b.DefRange)
	}
	services := make(map[string]string)
	if a := argument(b, "services"); a != nil {
		v, bad := a.Expr.Value(nil)
		if bad.HasErrors() || v.IsNull() || !v.IsKnown() || !v.CanIterateElements() {
			return f.unreadAt(a.Range)
		}
		for it := v.ElementIterator(); it.Next(); {
			id, service := it.Element()
			if isString(id) && isString(service) { // login.v1 is an object
				services[id.AsString()] = service.AsString()
			}
		}
	}
	s.Add(Settings{Services: map[svchost.Hostname]map[string]string{hostname: services}})
	return nil
}

func (f *File) addMethods(s *Settings, b *hcl.Block) error {
	blocks, _, diagnostics := b.Body.PartialContent(installationSchema)
	if err := f.unread(diagnostics); err != nil {
		return err
	}
	for _, b := range blocks.Blocks {
		m := method{direct: b.Type == "direct"}
		attributes, _, _ := b.Body.PartialContent(methodSchema)
		for name, a := range attributes.Attributes {
			ok := false
			switch name {
			case "url":
				var location string
				if location, ok = stringValue(a); ok && b.Type == "network_mirror" {
					m.mirror, ok = httpURL(location)
				}
			case "include":
				m.include, ok = patterns(a)
			case "exclude":
				m.exclude, ok = patterns(a)
			}
			if !ok {
				return f.unreadAt(a.Range)
			}
		}
		s.methods = append(s.methods, m)
	}
	return nil
}

func httpURL(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	ok := err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
	return u, ok
}

// patterns reads a list of [HOSTNAME/]NAMESPACE/TYPE, in which * stands for any part. Both Terraform
// and OpenTofu may read the same file.
func patterns(a *hcl.Attribute) (list []providerPattern, ok bool) {
	words, ok := stringList(a)
	for _, word := range words {
		parts := strings.Split(word, "/")
		hostnames := []string{string(address.TerraformHost), string(address.OpenTofuHost)}
		if len(parts) == 3 {
			hostnames, parts = parts[:1], parts[1:]
		}
		if len(parts) != 2 {
			return nil, false
		}
		for _, hostname := range hostnames {
			if hostname != "*" {
				parsed, err := address.ParseHostname(hostname)
				if err != nil {
					return nil, false
				}
				hostname = string(parsed)
			}
			list = append(list, providerPattern{hostname, strings.ToLower(parts[0]), strings.ToLower(parts[1])})
		}
	}
	return list, ok
}
