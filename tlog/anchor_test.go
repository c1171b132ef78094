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
	silent string // an operation that gets no answer the first time
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

// An instance is suspended before it stores a checkpoint. Others have stored newer ones when it
// goes on.
func TestACheckpointThatIsStoredTooLate(t *testing.T) {
	for rule, before := range map[string]string{"in the anchor": "store", "in the store": "replace"} {
		for _, ends := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				a := &access{memory: m}
				suspended := openBy(t, a)
				other := open(t, m)
				defer other.Close()
				a.before = func(o operation) error {
					if o.does != before {
						return nil
					}
					a.before = nil
					mustAppend(t, other, leavesFrom(1, 9)...)
					if ends {
						o.do()
						a.before = func(operation) error { return errFault }
					}
					return nil
				}
				if err := suspended.Append(t.Context(), moduleLeaf(0)); err != nil && !ends {
					t.Error(err)
				}
				suspended.Close()
				if ends {
					if err := other.Refresh(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				where := m.anchor
				if before == "replace" {
					where = m.files[checkpointName]
					if !ends {
						return // the next refresh of any instance mends it
					}
				}
				if c, err := OpenCheckpoint(where, origin, testVerifier); err != nil || c.Size != 9 {
					t.Errorf("%s, ends %t: %d entries are kept, %v", rule, ends, c.Size, err)
				}
				checkMemory(t, m)
			})
		}
	}
}
