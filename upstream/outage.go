package upstream

import (
	"log/slog"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// Outages are what is logged once, however often it is noticed.
type outages struct {
	mutex   sync.Mutex
	present map[string]bool
}

// begin tells whether an outage is a new one.
func (o *outages) begin(of string) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.present[of] {
		return false
	}
	if o.present == nil {
		o.present = make(map[string]bool)
	}
	o.present[of] = true
	return true
}

// end tells whether there was one.
func (o *outages) end(of string) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	there := o.present[of]
	delete(o.present, of)
	return there
}

// noteRefresh logs that a list could not be renewed that clients are given all
// the same: once for an origin that is down, whatever it is asked for, and once
// for a provider that it fails at.
func (f *Filler) noteRefresh(a index.ProviderAddress, err error) {
	origin, provider := a.Hostname.ForDisplay(), a.String()
	switch {
	case err == nil:
		if f.outages.end(origin) {
			f.log(slog.LevelInfo, "the origin answers again", "origin", origin)
		}
		if f.outages.end(provider) {
			f.log(slog.LevelInfo, "the origin lists the provider again", "provider", provider)
		}
	case givenUp(err):
	case isKind(err, ErrUnavailable, ErrTimeout):
		if f.outages.begin(origin) {
			f.log(slog.LevelWarn, "the origin does not answer, what it listed before is served", "origin", origin, "error", err.Error())
		}
	case f.outages.begin(provider):
		f.log(slog.LevelWarn, "the origin does not list the provider, what it listed before is served", "provider", provider, "error", err.Error())
	}
}

func (f *Filler) log(level slog.Level, message string, args ...any) {
	if f.options.Logger != nil {
		f.options.Logger.Log(f.ctx, level, message, args...)
	}
}
