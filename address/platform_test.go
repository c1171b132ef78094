package address

import "testing"

func TestParsePlatforms(t *testing.T) {
	got, err := ParsePlatforms([]string{"linux_amd64", "darwin_arm64", "linux_amd64"})
	if err != nil || len(got) != 2 || got[0].String() != "darwin_arm64" || got[1].String() != "linux_amd64" {
		t.Errorf("they are %v, %v", got, err)
	}
	for _, bad := range []string{"", "linux", "linux_", "_amd64", "linux_amd64_v1", "Linux_amd64", "linux-amd64", "linux_../x"} {
		if got, err := ParsePlatforms([]string{"linux_amd64", bad}); err == nil || got != nil {
			t.Errorf("%q is %v, %v", bad, got, err)
		}
	}
}

func TestKnownPlatforms(t *testing.T) {
	for _, test := range []struct {
		os, arch string
		known    bool
	}{
		{"linux", "amd64", true},
		{"windows", "386", true},
		{"linux", "riscv64", true},
		{"linux", "armv6", false}, // GoReleaser's name with GOARM
		{"linux", "x86", false},
		{"macos", "arm64", false},
		{"amd64", "linux", false},
	} {
		if got := (Platform{test.os, test.arch}).Known(); got != test.known {
			t.Errorf("%s_%s: %v", test.os, test.arch, got)
		}
	}
}
