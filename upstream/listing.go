package upstream

import "github.com/caddy-terraform/caddy-terraform-registry/wire"

// A Listing is all versions of a provider, newest first, each once. Nothing of
// it is verified.
type Listing struct {
	Versions []wire.ProviderVersion
}
