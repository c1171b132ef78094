package prometheus_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// series has the series that Prometheus has scraped every minute for the last two
// hours, by selector.
type series map[string]shape

// A shape returns the value that was scraped some time ago; ok is false if there was
// none.
type shape func(ago time.Duration) (value float64, ok bool)

// always is a value that does not change.
func always(value float64) shape {
	return func(time.Duration) (float64, bool) { return value, true }
}

// from is a value that changed some time ago.
func from(ago time.Duration, before, after float64) shape {
	return func(at time.Duration) (float64, bool) {
		if at > ago {
			return before, true
		}
		return after, true
	}
}

// since is a value that appeared some time ago.
func since(ago time.Duration, value float64) shape {
	return func(at time.Duration) (float64, bool) { return value, at <= ago }
}

// rising is a counter that counts so many events a minute.
func rising(perMinute float64) shape {
	return func(ago time.Duration) (float64, bool) { return perMinute * (600 - ago.Minutes()), true }
}

// now is the time at which queries are evaluated.
var now = time.Unix(1_800_000_000, 0)

// evaluate returns the result of a query.
func (s series) evaluate(t *testing.T, query string) promql.Vector {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: 1_000_000, Timeout: time.Minute, Parser: promQL,
	})
	q, err := engine.NewInstantQuery(t.Context(), s.storage(t), nil, query, now)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	result := q.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatal(err)
	}
	return vector
}

func (s series) storage(t *testing.T) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for selector, value := range s {
		metric, err := promQL.ParseMetric(selector)
		if err != nil {
			t.Fatal(err)
		}
		one := promql.Series{Metric: metric}
		for ago := 2 * time.Hour; ago >= 0; ago -= time.Minute {
			if v, ok := value(ago); ok {
				one.Floats = append(one.Floats, promql.FPoint{T: now.Add(-ago).UnixMilli(), F: v})
			}
		}
		all = append(all, promql.NewStorageSeries(one))
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			selected := new(seriesSet)
			for _, one := range all {
				if matches(one.Labels(), matchers) {
					selected.rest = append(selected.rest, one)
				}
			}
			return selected
		},
	}}
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// A seriesSet iterates over series.
type seriesSet struct {
	current storage.Series
	rest    []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.current, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *seriesSet) At() storage.Series              { return s.current }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }
