package fill_test

import (
	"path"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

func TestWhatIsLockedIsChecked(t *testing.T) {
	s := newAcme(t)
	m := onDisk(t, s.Client(t, upstream.Origin{}), fill.Policy{})
	release, err := m.Release(background(), demo, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	filled := m.fill(t, linuxZip)
	h1, err := dirhash.HashZip(path.Join(m.root, held, linuxZip), dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	const wrong = "zh:0000000000000000000000000000000000000000000000000000000000000000"
	linuxSum, darwinSum := "zh:"+s.Sum(t, linuxZip), "zh:"+s.Sum(t, darwinZip)
	for _, test := range []struct {
		rule                   string
		hashes                 []string
		beforeSays, behindSays string // empty: it may come in
	}{
		{"no hash", nil, "", ""},
		{"the sha256", []string{wrong, linuxSum}, "", ""},
		{"another sha256 beside the right h1", []string{h1, wrong}, "somebody has replaced it", "was replaced, or never locked"},
		{"the sha256 of another platform only", []string{darwinSum}, "providers lock -platform=linux_amd64", "was replaced, or never locked"},
		{"the h1 only", []string{h1}, "", ""},
		{"another h1 only", []string{"h1:" + strings.Repeat("A", 43) + "="}, "", "-platform=linux_amd64"},
		{"a scheme of later clients", []string{"h9:x"}, "", ""},
	} {
		l := upstream.Locked{Address: demo, Version: "1.0.0", Hashes: test.hashes, From: "a/.terraform.lock.hcl:3"}
		mustSay(t, test.rule+", before", l.CheckRelease(release, linux), test.beforeSays)
		mustSay(t, test.rule+", behind", l.CheckPackage(filled.SHA256, filled.H1, linux), test.behindSays)
	}
	l := upstream.Locked{Address: demo, Version: "1.0.0", Hashes: []string{wrong}}
	mustSay(t, "a platform that there is not", l.CheckRelease(release, address.Platform{OS: "plan9", Arch: "arm"}), "")
}

func mustSay(t *testing.T, rule string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: got %v, want %q", rule, err, want)
	}
}
