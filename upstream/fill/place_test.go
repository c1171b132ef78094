package fill

import "testing"

// A name that is taken is the one that would be made of what it says, so no
// other file can be meant by it.
func FuzzParsePackageName(f *testing.F) {
	for _, name := range []string{
		"terraform-provider-demo_1.0.0_linux_amd64.zip", "terraform-provider-demo_1.0.0-rc.1+build.5_darwin_arm64.zip",
		"terraform-provider-demo_1.0.0_../x_amd64.zip", "terraform-provider-demo_v1.0.0_linux_amd64.zip", "terraform-provider-demo__linux_amd64.zip",
	} {
		f.Add("demo", name)
	}
	f.Add("google-beta", "terraform-provider-google-beta_5.0.0_linux_amd64.zip")
	f.Fuzz(func(t *testing.T, typ, name string) {
		n, ok := parsePackageName(typ, name)
		if !ok {
			return
		}
		if again := "terraform-provider-" + typ + "_" + n.version + "_" + n.platform.String() + ".zip"; again != name {
			t.Fatalf("%q says %+v", name, n)
		}
	})
}
