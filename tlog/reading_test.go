package tlog

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
)

// A log is read while its server is between two steps, or has been killed there.
func TestALogThatIsOnlyReadHasWhatIsNotSignedYet(t *testing.T) {
	for _, test := range []struct {
		rule   string
		signed int
		before string // the operation that the server does not come to
	}{
		{"a batch is stored", 5, "store anchor"},
		{"the checkpoint is not written", 5, "replace checkpoint"},
		{"the first batch is stored", 0, "store anchor"},
		{"the batch fills a bundle, whose tile is not written", 250, "create tile/0/000"},
		{"the bundle is not written", 250, "create tile/entries/000"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				a := &access{memory: m}
				l := openBy(t, a)
				mustAppend(t, l, leavesFrom(0, test.signed)...)
				a.before = func(o operation) error {
					if o.does+" "+o.name == test.before {
						a.before = func(operation) error { return errFault }
						return errFault
					}
					return nil
				}
				if err := l.Append(t.Context(), leavesFrom(test.signed, test.signed+6)...); err == nil {
					t.Fatal("the server goes on")
				}
				l.Close()
				files := maps.Clone(m.files)
				asked := 0
				reader, err := OpenToRead(t.Context(), optionsFor(&access{memory: m, before: func(o operation) error {
					if asked++; !strings.Contains("read list load stat", o.does) {
						t.Errorf("it does %s %s", o.does, o.name)
					}
					return nil
				}}))
				if err != nil {
					t.Fatal(err)
				}
				defer reader.Close()
				if news := reader.News(leavesFrom(0, test.signed+6)); len(news) > 0 {
					t.Errorf("%d leaves are not there", len(news))
				}
				if asked > 20 {
					t.Errorf("it needs %d operations", asked)
				}
				if err := reader.Append(context.Background(), moduleLeaf(9_000)); err == nil {
					t.Error("it is added to")
				}
				if !maps.EqualFunc(files, m.files, func(a, b []byte) bool { return string(a) == string(b) }) {
					t.Error("its files are changed")
				}
			})
		})
	}
}
