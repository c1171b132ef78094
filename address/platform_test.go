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
