package wire

// A ProviderDetail is the API's description of a version of a provider.
type ProviderDetail struct {
	Listed

	// Versions, oldest first (checklist 116).
	Versions []string

	Docs []ProviderDoc
}

// A ProviderDoc is a page of a provider's documentation, without its content. The ID is
// unique among all pages of the registry.
type ProviderDoc struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Path        string `json:"path"`
	Slug        string `json:"slug"`
	Category    string `json:"category"`
	Subcategory string `json:"subcategory"`
	Language    string `json:"language"`
}

// EncodeProviderDetail returns the answer to {providers.v1}/NAMESPACE/TYPE, with or
// without /VERSION.
func EncodeProviderDetail(d *ProviderDetail) *Document {
	return documentOf(struct {
		providerHead
		Versions []string      `json:"versions"`
		Docs     []ProviderDoc `json:"docs"`
	}{d.providerHead(), emptied(d.Versions), emptied(d.Docs)})
}
