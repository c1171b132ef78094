package module

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

// traffic counts the requests of a configuration, by kind and status, without
// a lock or an allocation on their way.
type traffic struct {
	requests [handlers.Kinds][len(statuses)]atomic.Uint64
	bytes    [handlers.Kinds]atomic.Uint64
}

// statuses are all the registry answers with.
var statuses = [...]int{
	http.StatusOK, http.StatusNoContent, http.StatusPartialContent, http.StatusNotModified,
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable,
	http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

func (t *traffic) count(e *handlers.Exchange) {
	for i, status := range statuses {
		if status == e.Status {
			t.requests[e.Kind][i].Add(1)
			break
		}
	}
	t.bytes[e.Kind].Add(uint64(e.Bytes))
}

var (
	metricRequests = prometheus.NewDesc("caddy_terraform_registry_requests_total",
		"Requests to the registry, by what they ask for and the status of the answer.", []string{"kind", "code"}, nil)
	metricBytes = prometheus.NewDesc("caddy_terraform_registry_response_bytes_total",
		"Bytes of the bodies of answers, by what they answer.", []string{"kind"}, nil)
)

func (t *traffic) collect(to chan<- prometheus.Metric) {
	for kind := range handlers.Kinds {
		for i, status := range statuses {
			if n := t.requests[kind][i].Load(); n > 0 {
				to <- prometheus.MustNewConstMetric(metricRequests, prometheus.CounterValue, float64(n), kind.String(), strconv.Itoa(status))
			}
		}
		if n := t.bytes[kind].Load(); n > 0 {
			to <- prometheus.MustNewConstMetric(metricBytes, prometheus.CounterValue, float64(n), kind.String())
		}
	}
}

// answered counts a request and says in its access log, and to whatever else
// looks at the request, what it was about.
func (h *Handler) answered(r *http.Request, e *handlers.Exchange) {
	h.traffic.count(e)
	if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Add(zap.Object("terraform_registry", loggable{e}))
	}
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(func(key string) (any, bool) { return placeholder(e, key) })
	}
}

// loggable writes an exchange to a log, if it is written at all.
type loggable struct{ *handlers.Exchange }

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (l loggable) MarshalLogObject(to zapcore.ObjectEncoder) error {
	to.AddString("kind", l.Kind.String())
	for _, field := range []struct{ name, value string }{
		{"address", l.Address()},
		{"version", l.Version},
		{"platform", l.Platform},
	} {
		if field.value != "" {
			to.AddString(field.name, field.value)
		}
	}
	return nil
}

func placeholder(e *handlers.Exchange, key string) (any, bool) {
	switch key {
	case "http.terraform_registry.kind":
		return e.Kind.String(), true
	case "http.terraform_registry.address":
		return e.Address(), true
	case "http.terraform_registry.version":
		return e.Version, true
	case "http.terraform_registry.platform":
		return e.Platform, true
	}
	return nil, false
}
