package module

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
)

// The events of the registry, for handlers in Caddy's `events` app.
const (
	// eventRescanned is emitted after each scan of a whole tree, with root, offered,
	// withheld, pending and duration, in seconds.
	eventRescanned = "terraform_registry_rescanned"

	// eventWithheld is emitted for each release that was not withheld before, with
	// root, path, address, version, reason and detail. For a file that may still be
	// written it is emitted only when the file no longer changes.
	eventWithheld = "terraform_registry_withheld"

	// eventKeysChanged is emitted for each keys file that has appeared, disappeared or
	// got other keys since the previous scan, with root, hostname, namespace, before
	// and keys, the IDs of its keys then and now, and missing, whether the file is
	// gone. The hostname of a hosted namespace is empty.
	eventKeysChanged = "terraform_registry_keys_changed"

	// eventBytesChanged is emitted for each file that is offered with other bytes than
	// at first, once in the life of a process, with root, path, address, version,
	// platform, and the hashes was and is. The platform of a module is empty.
	eventBytesChanged = "terraform_registry_bytes_changed"

	// eventKeyAdded is emitted when the registry of a hostname sends new keys for a
	// namespace whose previous keys are stored, with hostname, namespace and keys.
	eventKeyAdded = "terraform_registry_key_added"

	// eventSignatureLost is emitted when a namespace whose keys are stored has a
	// release that none of them has signed, with hostname and namespace.
	eventSignatureLost = "terraform_registry_signature_lost"

	// eventTagMoved is emitted when the tag of a version of a hosted module, which was fetched
	// from its repository, has been moved or deleted, or is back where it was, with address,
	// version, tag, the commit of the version, and tag_commit, the commit of the tag now, or
	// gone. The version stays as it was.
	eventTagMoved = "terraform_registry_tag_moved"

	// eventPublished is emitted when a file that a client has sent was added to the
	// tree, with all files staged with it. It has root, address, version, kind, such as
	// package, module, docs or metadata, files, subject, the user, and client, their IP
	// address. The version of metadata and the subject of an anonymous request are
	// empty. The kind of a release is the kind of its last file.
	eventPublished = "terraform_registry_published"

	// eventNoticesChanged is emitted when a registry.hcl that a client has sent changes
	// the notices of versions, with root, address, withdrawn, deprecated and restored,
	// the constraints of the affected versions, subject and client.
	eventNoticesChanged = "terraform_registry_notices_changed"

	// eventRefused is emitted when a file that a client has sent is refused: for lack
	// of valid credentials or a right, because the version has other bytes, or because
	// the file cannot be published. It has root, address, version, kind, file, outcome,
	// status, reason, subject and client, and more_like_it, the number of refusals of
	// the subject without an event since the last event.
	eventRefused = "terraform_registry_refused"
)

func (a *App) provisionEvents() error {
	app, err := a.ctx.App("events")
	if err != nil {
		return fmt.Errorf("getting the events app: %w", err)
	}
	a.events.ctx, a.events.app = a.ctx, app.(*caddyevents.App)
	return a.events.app.On("started", &a.events)
}

// events are the events of a configuration. Caddy starts apps in any order, and its `events` app takes
// over its handlers, without a lock, when it is started. So events from before wait until all apps
// have been started, which Caddy tells by an event of its own.
type events struct {
	ctx caddy.Context
	app *caddyevents.App

	mutex   sync.Mutex
	begun   bool
	waiting []event // until they have begun
}

type event struct {
	name string
	data map[string]any
}

// emit emits an event, or has it wait.
func (s *events) emit(name string, data map[string]any) {
	e := event{name, data}
	if !s.wait(e) {
		s.send(e)
	}
}

// wait has an event wait, and reports whether it has to.
func (s *events) wait(e event) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.begun {
		s.waiting = append(s.waiting, e)
	}
	return !s.begun
}

// send calls the handlers of an event. Indexes may outlive the configuration, whose handlers must
// then not be called any more.
func (s *events) send(e event) {
	if s.ctx.Err() == nil && s.app.ShouldEmit(e.name) {
		s.app.Emit(s.ctx, e.name, e.data)
	}
}

// Handle implements caddyevents.Handler for the event that all apps have been started. Handlers of
// events may take their time, and Caddy waits for this one.
func (s *events) Handle(context.Context, caddy.Event) error {
	go s.begin()
	return nil
}

// begin emits the events that wait, in their order.
func (s *events) begin() {
	for {
		s.mutex.Lock()
		waiting := s.waiting
		s.waiting, s.begun = nil, len(waiting) == 0
		s.mutex.Unlock()
		if len(waiting) == 0 {
			return
		}
		for _, e := range waiting {
			s.send(e)
		}
	}
}

// warnOfRoot logs a hint about a root without any folder of a tree, once. A tree that
// is filled from upstreams may start empty.
func (a *App) warnOfRoot(t servedTree, before, now *index.Snapshot) {
	hint := now.Hint
	if hint == "" || t.filled || before != nil && before.Hint == hint {
		return
	}
	a.logger.Warn(hint, "root", t.root())
}

// emitScanned emits an event for a scan.
func (a *App) emitScanned(t servedTree, now *index.Snapshot, took time.Duration) {
	a.events.emit(eventRescanned, map[string]any{
		"root":     t.root(),
		"offered":  now.Totals.Versions(),
		"withheld": now.Totals.Problems(),
		"pending":  now.Totals.Pending,
		"duration": took.Seconds(),
	})
}

// emitWithheld emits an event for a file that is withheld.
func (a *App) emitWithheld(t servedTree, p index.Problem) {
	a.events.emit(eventWithheld, map[string]any{
		"root":    t.root(),
		"path":    p.Path,
		"address": p.Address,
		"version": p.Version,
		"reason":  string(p.Reason),
		"detail":  p.Detail,
	})
}

// emitKeysChanged emits an event for a keys file that has changed.
func (a *App) emitKeysChanged(t servedTree, c keys.Change) {
	a.events.emit(eventKeysChanged, map[string]any{
		"root":      t.root(),
		"hostname":  c.Hostname.ForDisplay(),
		"namespace": c.Namespace,
		"before":    c.Before,
		"keys":      c.Now,
		"missing":   c.Missing,
	})
}

// emitRewritten emits an event for a file that is offered with other bytes than at first.
func (a *App) emitRewritten(t servedTree, c index.ChangedVersion) {
	a.events.emit(eventBytesChanged, map[string]any{
		"root":     t.root(),
		"path":     c.Path,
		"address":  c.Address.String(),
		"version":  c.Version,
		"platform": c.Platform,
		"was":      c.Was,
		"is":       c.Is,
	})
}

// emitUpstream emits an event about the keys or signatures of an upstream.
func (a *App) emitUpstream(e pull.Event) {
	data := map[string]any{"hostname": e.Hostname.ForDisplay(), "namespace": e.Namespace}
	name := eventSignatureLost
	if e.Kind == pull.KeyAdded {
		name, data["keys"] = eventKeyAdded, e.Keys
	}
	a.events.emit(name, data)
}

// emitTagMoved emits an event about the tag of a version.
func (a *App) emitTagMoved(e pull.Event) {
	a.events.emit(eventTagMoved, map[string]any{
		"address": e.Address.String(), "version": e.Version, "tag": e.Tag, "commit": e.Commit, "tag_commit": e.TagCommit,
	})
}

// emitPublished emits an event for the files that a request has published.
func (a *App) emitPublished(t servedTree, e *handlers.Exchange, client string) {
	a.emitUpload(eventPublished, t, e, client, map[string]any{
		"version": e.Version,
		"kind":    e.Upload.Kind.String(),
		"files":   e.Upload.Files,
	})
}

// emitNoticesChanged emits an event for the versions that a request has withdrawn,
// deprecated or restored.
func (a *App) emitNoticesChanged(t servedTree, e *handlers.Exchange, client string) {
	a.emitUpload(eventNoticesChanged, t, e, client, map[string]any{
		"withdrawn":  e.Upload.Notices.Withdrawn,
		"deprecated": e.Upload.Notices.Deprecated,
		"restored":   e.Upload.Notices.Restored,
	})
}

// emitRefused emits an event for a file that a request has sent and that was refused.
func (a *App) emitRefused(t servedTree, e *handlers.Exchange, client string, untold int) {
	a.emitUpload(eventRefused, t, e, client, map[string]any{
		"version":      e.Version,
		"kind":         e.Upload.Kind.String(),
		"file":         e.Upload.File,
		"outcome":      e.Upload.Outcome.String(),
		"status":       e.Status,
		"reason":       e.Upload.Reason,
		"more_like_it": untold,
	})
}

// emitUpload emits an event for a file that a request has sent, and adds where it was sent to, and by whom.
func (a *App) emitUpload(name string, t servedTree, e *handlers.Exchange, client string, data map[string]any) {
	data["root"], data["address"], data["subject"], data["client"] = t.root(), e.Address(), e.Upload.Subject, client
	a.usable().events.emit(name, data)
}
