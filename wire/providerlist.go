package wire

import "time"

// A ListedProvider describes one version of a provider, in lists, searches and the
// detail. Lists and searches describe the latest version.
type ListedProvider struct {
	Namespace, Type string
	Version         string
	Owner           string
	Description     string
	Source          string // where it is developed (checklist 115)
	Published       time.Time
	Downloads       uint64 // of all versions; 0 also if downloads are not counted
}

// providerHead is a ListedProvider as the public registry writes it.
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

func (p *ListedProvider) head() providerHead {
	return providerHead{
		ID:    p.Namespace + "/" + p.Type + "/" + p.Version,
		Owner: p.Owner, Namespace: p.Namespace, Name: p.Type, Version: p.Version,
		Tag:         "v" + p.Version, // the public registry's convention for releases
		Description: p.Description, Source: p.Source, PublishedAt: publishedAt(p.Published), Downloads: p.Downloads,
		Tier: "community", // claims nothing
	}
}

// EncodeProviderList returns the answer to {providers.v1}, and to searches there.
func EncodeProviderList(p Page, providers []ListedProvider) *Document {
	heads := make([]providerHead, len(providers))
	for i := range providers {
		heads[i] = providers[i].head()
	}
	return documentOf(struct {
		Meta      Page           `json:"meta"`
		Providers []providerHead `json:"providers"`
	}{p, heads})
}
