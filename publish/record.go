package publish

import (
	"context"
	"slices"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Record has on record what clients were offered, such as a transparency log.
type Record interface {
	// Replaces returns since when a package is on record with other bytes only; zero if it
	// may be published. The platform of a module is zero. h1 is the hash of the files.
	Replaces(a address.Address, version string, on address.Platform, h1 string, sum wire.SHA256) time.Time

	// Await waits until the package that is offered is on record, or for the end of ctx. The
	// zero platform is any.
	Await(ctx context.Context, a address.Address, version string, on address.Platform) (recorded bool)
}

// checkRecord refuses a package that is on record with other bytes: it would be withheld.
func (p *Publisher) checkRecord(f File, h1 string, sum wire.SHA256) error {
	if p.options.Record == nil {
		return nil
	}
	if since := p.options.Record.Replaces(f.Address, f.Version, f.Platform, h1, sum); !since.IsZero() {
		return conflict("version %s of %s is on record with another %s since %s: a version never changes, publish a new one", f.Version, f.Address, f.Name, since.UTC().Format(time.RFC3339))
	}
	return nil
}

// recordPatience is how long a request waits until the version that it has completed is on
// record.
const recordPatience = 5 * time.Second

// awaitsRecord reports whether a version is not offered before it is on record.
func (p *Publisher) awaitsRecord(s *index.Snapshot, f File) bool {
	return s != nil && slices.ContainsFunc(p.hostnames(), func(hostname svchost.Hostname) bool {
		releases, versions := s.Unrecorded(f.Address.WithHostname(hostname))
		return slices.ContainsFunc(releases, func(r *index.Release) bool { return r.Version == f.Version }) ||
			slices.ContainsFunc(versions, func(v *index.ModuleVersion) bool { return v.Version == f.Version })
	})
}

// awaitRequired waits until a version is offered that must be on record before, and returns
// what to say if it is not.
func (p *Publisher) awaitRequired(ctx context.Context, f File, sum string) (problem string) {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	last, _ := p.await(ctx, index.Selection{Address: f.Address, Version: f.Version}, func(now *index.Snapshot) bool {
		return p.offered(now, f, sum) || !p.awaitsRecord(now, f)
	})
	if p.offered(last, f, sum) {
		return ""
	}
	return "it is in the tree, and will be offered when it is in the transparency log, which this registry requires"
}

// awaitRecord waits until what a file has completed is on record, and returns what to say if
// it is not.
func (p *Publisher) awaitRecord(ctx context.Context, f File) (problem string) {
	if p.options.Record == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	if p.options.Record.Await(ctx, f.Address, f.Version, f.Platform) {
		return ""
	}
	return "it is offered, and not in the transparency log yet: it will be entered when that is possible"
}
