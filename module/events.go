package module

import (
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// The events of the registry, for handlers in Caddy's `events` app.
const (
	// eventRescanned follows every scan of a whole tree, with root, offered,
	// withheld, pending and duration.
	eventRescanned = "terraform_registry_rescanned"

	// eventWithheld follows for each thing that was not withheld before, with
	// root, path, address, version, reason and detail; for a file that may still
	// be written, only when it stays as it is.
	eventWithheld = "terraform_registry_withheld"

	// eventKeyAdded follows when the registry of a hostname sends further keys for a
	// namespace of which some are kept, with hostname, namespace and keys.
	eventKeyAdded = "terraform_registry_key_added"

	// eventSignatureLost follows when a namespace of which keys are kept has a
	// release that none of them has signed, with hostname and namespace.
	eventSignatureLost = "terraform_registry_signature_lost"
)

func (a *App) provisionEvents() error {
	app, err := a.ctx.App("events")
	if err != nil {
		return fmt.Errorf("getting the events app: %w", err)
	}
	a.events = app.(*caddyevents.App)
	return nil
}

// warnOfRoot logs what to do about a root in which nothing of a tree is found,
// when that is so for the first time. What is filled from upstreams may begin
// with nothing.
func (a *App) warnOfRoot(t tree, before, now *index.Snapshot) {
	hint := now.Report.Hint
	if hint == "" || t.filled || before != nil && before.Report.Hint == hint {
		return
	}
	a.logger.Warn(hint, "root", t.directories.Root)
}

// emitScanned tells the configuration's event handlers of a scan. An index may
// still be scanning when the configuration it served has gone, whose handlers
// are then not to be called any more.
func (a *App) emitScanned(t tree, now *index.Snapshot, took time.Duration) {
	if a.ctx.Err() != nil || !a.events.ShouldEmit(eventRescanned) {
		return
	}
	a.events.Emit(a.ctx, eventRescanned, map[string]any{
		"root":     t.directories.Root,
		"offered":  len(now.Report.Offered),
		"withheld": len(now.Report.Withheld),
		"pending":  now.Report.Pending,
		"duration": took.Seconds(),
	})
}

// emitWithheld tells them of something that is withheld.
func (a *App) emitWithheld(t tree, p index.Problem) {
	if a.ctx.Err() != nil || !a.events.ShouldEmit(eventWithheld) {
		return
	}
	a.events.Emit(a.ctx, eventWithheld, map[string]any{
		"root":    t.directories.Root,
		"path":    p.Path,
		"address": p.Address,
		"version": p.Version,
		"reason":  string(p.Reason),
		"detail":  p.Detail,
	})
}

// emitUpstream tells the configuration's event handlers what an origin has done.
func (a *App) emitUpstream(e fill.Event) {
	data := map[string]any{"hostname": e.Hostname.ForDisplay(), "namespace": e.Namespace}
	name := eventSignatureLost
	if e.Kind == fill.KeyAdded {
		name, data["keys"] = eventKeyAdded, e.Keys
	}
	if a.ctx.Err() == nil && a.events.ShouldEmit(name) {
		a.events.Emit(a.ctx, name, data)
	}
}
