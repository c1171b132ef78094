package mirror

import (
	"context"
	"fmt"
	"sync"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// fillers fill a tree from the registries of providers and modules. Which registries modules
// need is known when they have been fetched. They can be used concurrently.
type fillers struct {
	origins *origins
	network upstream.Network
	options pull.Options // but for their sources

	mutex  sync.Mutex
	all    map[fillerID]*pull.Filler
	closed bool
}

// A fillerID is a hostname and a kind of address: modules may be fetched from another place
// than providers.
type fillerID struct {
	hostname svchost.Hostname
	modules  bool
}

// fillerOf returns the filler of a provider's or module's registry. A new filler removes files that
// killed runs have left behind.
func (f *fillers) fillerOf(ctx context.Context, a address.Address) (*pull.Filler, error) {
	id := fillerID{a.Hostname, a.IsModule()}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if filler := f.all[id]; filler != nil {
		return filler, nil
	}
	if f.closed {
		return nil, context.Canceled
	}
	client, err := upstream.NewClient(f.origins.origin(id), f.network)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id.hostname.ForDisplay(), err)
	}
	options := f.options
	options.Sources = map[svchost.Hostname]pull.Source{id.hostname: {Client: client, Policy: f.origins.policy(id)}}
	filler, err := pull.New(options)
	if err != nil {
		return nil, err
	}
	if !options.ReadOnly {
		filler.RemoveLeftovers(ctx)
	}
	if f.all == nil {
		f.all = make(map[fillerID]*pull.Filler)
	}
	f.all[id] = filler
	return filler, nil
}

// close ends all fetching. Interrupted fetches leave nothing behind.
func (f *fillers) close() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.closed = true
	for _, filler := range f.all {
		filler.Close()
	}
}
