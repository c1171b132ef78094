package usage

import (
	"fmt"
	"strings"
	"testing"
)

func TestUsersAreBounded(t *testing.T) {
	var c counts
	for n := range maxBy + 10 {
		u := vpc
		u.By = fmt.Sprint("user ", n)
		c.add(1, u, 1)
	}
	var others uint64
	for _, count := range c.of(vpc.Address) {
		if count.By == Others {
			others = count.Count
		}
	}
	if others != 10 || c.uses != maxBy+1 {
		t.Errorf("%d uses, %d of others", c.uses, others)
	}
	if u := (Use{By: strings.Repeat("ü", 300)}).normal(); u.By != strings.Repeat("ü", maxName/2) {
		t.Errorf("a long name becomes %q", u.By)
	}
}

func TestUsesAreBounded(t *testing.T) {
	var c counts
	for n := range maxUses + 10 {
		u := vpc
		u.Version = fmt.Sprint(n)
		if _, ok := c.add(1, u, 1); ok != (n < maxUses) {
			t.Fatalf("%d is counted: %v", n, ok)
		}
	}
	if !c.refused {
		t.Error("it does not say so")
	}
	c.drop(func(Day) bool { return true })
	if c.uses != 0 || c.days != 0 || len(c.addresses) != 0 {
		t.Errorf("left: %d uses, %d days, %d addresses", c.uses, c.days, len(c.addresses))
	}
}

// Some storages limit values to half a megabyte.
func TestSegmentsAreBounded(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	mustSync(t, c)
	for minute := range maxMinutes + 5 {
		for n := range 30_000 {
			c.Add(Use{Address: vpc.Address.At("registry.example.com"), Version: fmt.Sprintf("1.%d.0", n), Platform: "linux_amd64"})
		}
		if minute%12 == 0 {
			mustSync(t, c)
		}
	}
	mustSync(t, c)
	all := 0
	for name, content := range s.values {
		if all += len(content); len(content) > maxSegment {
			t.Errorf("%s has %d bytes", name, len(content))
		}
	}
	if all > 10<<20 {
		t.Errorf("a day of a million downloads has %d bytes", all)
	}
	fresh := s.counter(at)
	mustSync(t, fresh)
	if n := fresh.Downloads(vpc.Address.At("registry.example.com")); n != (maxMinutes+5)*30_000 {
		t.Errorf("%d downloads are counted", n)
	}
}

func TestDamagedSegmentsCountNothing(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	c.Add(vpc)
	mustSync(t, c)
	for name := range s.values {
		s.values[name] = []byte("no segment")
	}
	s.values["1-20261126-minute-00"] = []byte("{}")
	s.values["2-20261126-minute-00"], s.values["1-20261301-day-00"], s.values["README"] = nil, nil, nil
	fresh := s.counter(at)
	fresh.Add(vpc)
	mustSync(t, fresh)
	mustSync(t, fresh)
	if n := fresh.Downloads(vpc.Address); n != 1 {
		t.Errorf("%d downloads", n)
	}
}

func FuzzSegment(f *testing.F) {
	f.Add("1-20261126-minute-00", []byte("{}"))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		n, ok := parseSegmentName(name)
		if !ok {
			return
		}
		if s, err := decodeSegment(nameSegment(n.day, n.kind, content), content); err == nil {
			s.sumInto(make(map[Use]uint64))
		}
	})
}
