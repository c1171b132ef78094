package wire

import "time"

// A ListedModule describes one version of a module, in lists, searches and the detail.
// Lists and searches describe the latest version.
type ListedModule struct {
	Namespace, Name, System string
	Version                 string
	Owner                   string
	Description             string
	Source                  string // where it is developed
	Published               time.Time
	Downloads               uint64 // of all versions; 0 also if downloads are not counted
}

// moduleHead is a ListedModule as the public registry writes it.
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

func (m *ListedModule) head() moduleHead {
	return moduleHead{
		ID:    m.Namespace + "/" + m.Name + "/" + m.System + "/" + m.Version,
		Owner: m.Owner, Namespace: m.Namespace, Name: m.Name, Version: m.Version, Provider: m.System,
		Description: m.Description, Source: m.Source, PublishedAt: publishedAt(m.Published), Downloads: m.Downloads,
		// The operator has put the module into the registry, which has read all of it.
		// Tools filter by this field for modules of known publishers.
		Verified: true,
	}
}

// EncodeModuleList returns the answer to {modules.v1}, and to searches there.
func EncodeModuleList(p Page, modules []ListedModule) *Document {
	heads := make([]moduleHead, len(modules))
	for i := range modules {
		heads[i] = modules[i].head()
	}
	return documentOf(struct {
		Meta    Page         `json:"meta"`
		Modules []moduleHead `json:"modules"`
	}{p, heads})
}
