package wire

import "time"

// A Listed describes one version of a provider or a module, in lists, searches and the
// detail. Lists and searches describe the latest version.
type Listed struct {
	Namespace, Name string
	System          string // of a module
	Version         string
	Owner           string
	Description     string
	Source          string // where it is developed (checklist 115)
	Published       time.Time
	Downloads       uint64 // of all versions; 0 also if downloads are not counted
}

// moduleHead is a Listed module as the public registry writes it.
type moduleHead struct {
	ID          string `json:"id"`
	Owner       string `json:"owner"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Version     string `json:"version"`
	Provider    string `json:"provider"`
	Description string `json:"description"`
	Source      string `json:"source"`
	PublishedAt string `json:"published_at"`
	Downloads   uint64 `json:"downloads"`
	Verified    bool   `json:"verified"`
}

func (l *Listed) moduleHead() moduleHead {
	return moduleHead{
		ID:    l.Namespace + "/" + l.Name + "/" + l.System + "/" + l.Version,
		Owner: l.Owner, Namespace: l.Namespace, Name: l.Name, Version: l.Version, Provider: l.System,
		Description: l.Description, Source: l.Source, PublishedAt: publishedAt(l.Published), Downloads: l.Downloads,
		// The operator has put the module into the registry, which has read all of it.
		// Tools filter by this field for modules of known publishers.
		Verified: true,
	}
}

// providerHead is a Listed provider as the public registry writes it.
type providerHead struct {
	ID          string `json:"id"`
	Owner       string `json:"owner"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Alias       string `json:"alias"`
	Version     string `json:"version"`
	Tag         string `json:"tag"`
	Description string `json:"description"`
	Source      string `json:"source"`
	PublishedAt string `json:"published_at"`
	Downloads   uint64 `json:"downloads"`
	Tier        string `json:"tier"`
	LogoURL     string `json:"logo_url"`
}

func (l *Listed) providerHead() providerHead {
	return providerHead{
		ID:    l.Namespace + "/" + l.Name + "/" + l.Version,
		Owner: l.Owner, Namespace: l.Namespace, Name: l.Name, Version: l.Version,
		Tag:         "v" + l.Version, // the public registry's convention for releases
		Description: l.Description, Source: l.Source, PublishedAt: publishedAt(l.Published), Downloads: l.Downloads,
		Tier: "community", // claims nothing
	}
}

// EncodeModuleList returns the answer to {modules.v1}, and to searches there.
func EncodeModuleList(p Page, modules []Listed) *Document {
	return documentOf(struct {
		Meta    Page         `json:"meta"`
		Modules []moduleHead `json:"modules"`
	}{p, heads(modules, (*Listed).moduleHead)})
}

// EncodeProviderList returns the answer to {providers.v1}, and to searches there.
func EncodeProviderList(p Page, providers []Listed) *Document {
	return documentOf(struct {
		Meta      Page           `json:"meta"`
		Providers []providerHead `json:"providers"`
	}{p, heads(providers, (*Listed).providerHead)})
}

func heads[H any](list []Listed, head func(*Listed) H) []H {
	heads := make([]H, len(list))
	for i := range list {
		heads[i] = head(&list[i])
	}
	return heads
}
