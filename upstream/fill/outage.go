package fill

import (
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
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

// forget ends those that begin with prefix, without a word.
func (o *outages) forget(prefix string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	maps.DeleteFunc(o.present, func(of string, _ bool) bool { return strings.HasPrefix(of, prefix) })
}

// noteRefresh logs that a list could not be had: once for an origin that is down,
// whatever it is asked for, once for a provider that is known and that it fails
// at, and once for each way it fails at others. That it does not know a provider
// is no failure.
func (f *Filler) noteRefresh(a address.Address, known bool, err error) {
	origin, provider := a.Hostname.ForDisplay(), a.String()
	failing := origin + " " + Reason(err)
	switch {
	case err == nil:
		if f.outages.end(origin) {
			f.log(slog.LevelInfo, "the origin answers again", "origin", origin)
		}
		if f.outages.end(provider) {
			f.log(slog.LevelInfo, "the origin lists the provider again", "provider", provider)
		}
		f.outages.forget(origin + " ")
	case givenUp(err), errors.Is(err, upstream.ErrNotFound) && !known:
	case upstream.IsKind(err, upstream.ErrUnavailable, upstream.ErrTimeout):
		if f.outages.begin(origin) {
			f.log(slog.LevelWarn, "the origin does not answer, what is known of it is served", "origin", origin, "error", err.Error())
		}
	case known:
		if f.outages.begin(provider) {
			f.log(slog.LevelWarn, "the origin does not list the provider, what it listed before is served", "provider", provider, "error", err.Error())
		}
	case f.outages.begin(failing):
		// Anybody may ask for any provider: they are not told apart here.
		f.log(slog.LevelWarn, "the origin gives no list of a provider", "provider", provider, "error", err.Error())
	}
}

func (f *Filler) log(level slog.Level, message string, args ...any) {
	if f.options.Logger != nil {
		f.options.Logger.Log(f.ctx, level, message, args...)
	}
}
