package tlog

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A silent anchor and store do not answer one call, as where a connection is lost. The call
// ends with its context.
type silent struct {
	*access
	silent string // what is not answered; it is answered the next time
}

func (s *silent) answers(ctx context.Context, does string) error {
	if s.silent != does {
		return nil
	}
	s.silent = ""
	<-ctx.Done()
	return context.Cause(ctx)
}

func (s *silent) Create(ctx context.Context, name string, content []byte) error {
	if err := s.answers(ctx, "create"); err != nil {
		return err
	}
	return s.access.Create(ctx, name, content)
}

type silentAnchor struct{ *silent }

func (s silentAnchor) Load(ctx context.Context) ([]byte, error) {
	if err := s.answers(ctx, "load"); err != nil {
		return nil, err
	}
	return anchorAccess{s.access}.Load(ctx)
}

func (s silentAnchor) Store(ctx context.Context, checkpoint []byte) error {
	if err := s.answers(ctx, "store"); err != nil {
		return err
	}
	return anchorAccess{s.access}.Store(ctx, checkpoint)
}

func TestALostAnswerDelaysALogByAMinute(t *testing.T) {
	for _, does := range []string{"load", "store", "create"} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			s := &silent{access: &access{memory: m}}
			o := optionsFor(s.access)
			o.Store, o.Anchor = s, silentAnchor{s}
			l, err := Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			s.silent = does
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err = l.Append(ctx, moduleLeaf(1))
			if err == nil && does != "create" || err != nil && !errors.Is(err, errNoAnswer) {
				t.Errorf("%s: the call without an answer says %v", does, err)
			}
			if err := l.Append(ctx, moduleLeaf(1)); err != nil {
				t.Errorf("%s: the next call says %v", does, err)
			}
			checkMemory(t, m)
		})
	}
}
