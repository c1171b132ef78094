package module

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

// The log and events report who has published or withdrawn something, and who was
// refused, with the client's address. Each publication is reported. Not all refusals
// are: anyone can cause any number of them, without credentials.

// How often refusals of a subject are reported. The first ones may follow one another.
// All senders without valid credentials are one subject, so that refusals of known
// subjects stay visible among them.
const (
	refusalsInARow  = 10
	refusalInterval = 10 * time.Second
	maxRefused      = 1000 // subjects with a known number of refusals
)

// refusedSubjects count the refusals of each subject. The mutex is for what the rates hold.
type refusedSubjects struct {
	mutex sync.Mutex
	rates cache.Cache[string, *refusedRate]
}

type refusedRate struct {
	limiter *rate.Limiter
	untold  int // since the last reported one
}

func newRefusedSubjects() *refusedSubjects {
	return &refusedSubjects{rates: cache.Cache[string, *refusedRate]{MaxEntries: maxRefused}}
}

// note reports whether to report a refusal, and how many of the subject have not been
// reported since the last reported one.
func (s *refusedSubjects) note(subject string, now time.Time) (told bool, untold int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	known, ok := s.rates.Get(subject)
	if !ok {
		known = &refusedRate{limiter: rate.NewLimiter(rate.Every(refusalInterval), refusalsInARow)}
		s.rates.Put(subject, known, cache.UntilEvicted)
	}
	if !known.limiter.AllowN(now, 1) {
		known.untold++
		return false, 0
	}
	untold, known.untold = known.untold, 0
	return true, untold
}

// audit reports the result of an uploaded file.
func (h *Handler) audit(r *http.Request, e *handlers.Exchange) {
	client := clientAddress(r)
	u := e.Upload
	switch u.Outcome {
	case handlers.UploadPublished:
		h.tell(r, e, slog.LevelInfo, "published", append([]any{"files", u.Files}, noticeFields(u.Notices)...)...)
		h.app.emitPublished(h.source.tree, e, client)
		if u.Notices.Any() {
			h.app.emitNoticesChanged(h.source.tree, e, client)
		}
	case handlers.UploadStaged:
		h.tell(r, e, slog.LevelInfo, "staged", "file", u.File)
	case handlers.UploadConflict, handlers.UploadRefused, handlers.UploadDenied, handlers.UploadTooLarge:
		told, untold := h.refused.note(u.Subject, time.Now())
		if !told {
			return
		}
		fields := []any{"file", u.File, "outcome", u.Outcome.String(), "status", e.Status, "reason", u.Reason}
		if untold > 0 {
			fields = append(fields, "more_like_it", untold)
		}
		h.tell(r, e, slog.LevelWarn, "publication refused", fields...)
		h.app.emitRefused(h.source.tree, e, client, untold)
	}
}

// tell logs the result of an uploaded file, with its address and its sender.
func (h *Handler) tell(r *http.Request, e *handlers.Exchange, level slog.Level, message string, fields ...any) {
	fields = append([]any{"address", e.Address(), "version", e.Version, "kind", e.Upload.Kind.String()}, fields...)
	fields = append(fields, "subject", e.Upload.Subject, "client", clientAddress(r))
	h.logger.Log(r.Context(), level, message, fields...)
}

// noticeFields returns the changes of a registry.hcl as fields of a log.
func noticeFields(n publish.NoticeChanges) (fields []any) {
	for _, list := range []struct {
		name     string
		versions []string
	}{{"withdrawn", n.Withdrawn}, {"deprecated", n.Deprecated}, {"restored", n.Restored}} {
		if len(list.versions) > 0 {
			fields = append(fields, list.name, list.versions)
		}
	}
	return fields
}
