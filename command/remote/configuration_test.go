package remote

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

// The files are those that clients read. A file that overrides another one comes before it.
func TestConfigurationFiles(t *testing.T) {
	for _, test := range []struct {
		rule        string
		system      string
		environment map[string]string // below the temporary folder
		exist       []string
		want        []string
	}{
		{"main files, and logins", "linux", map[string]string{"HOME": "a"}, nil, []string{
			"a/.terraformrc", "a/.tofurc", "a/.config/opentofu/tofurc", "a/.terraform.d/credentials.tfrc.json", "a/.config/opentofu/credentials.tfrc.json",
		}},
		{"a folder overrides the main files, and its last file the others", "linux", map[string]string{"HOME": "a"},
			[]string{"a/.terraform.d/company.tfrc", "a/.terraform.d/credentials.tfrc.json", "a/.terraform.d/terraform.rc", "a/.terraform.d/proxy.tfrc.json"}, []string{
				"a/.terraform.d/proxy.tfrc.json", "a/.terraform.d/credentials.tfrc.json", "a/.terraform.d/company.tfrc",
				"a/.terraformrc", "a/.tofurc", "a/.config/opentofu/tofurc", "a/.terraform.d/credentials.tfrc.json", "a/.config/opentofu/credentials.tfrc.json",
			}},
		{"OpenTofu's folder, where there is none of Terraform's", "linux", map[string]string{"HOME": "a", "XDG_CONFIG_HOME": "x"}, []string{"x/opentofu/company.tfrc"}, []string{
			"x/opentofu/company.tfrc", "a/.terraformrc", "a/.tofurc", "x/opentofu/tofurc", "a/.terraform.d/credentials.tfrc.json", "x/opentofu/credentials.tfrc.json",
		}},
		{"and not beside it", "linux", map[string]string{"HOME": "a", "XDG_CONFIG_HOME": "x"}, []string{"x/opentofu/company.tfrc", "a/.terraform.d/plugins"}, []string{
			"a/.terraformrc", "a/.tofurc", "x/opentofu/tofurc", "a/.terraform.d/credentials.tfrc.json", "x/opentofu/credentials.tfrc.json",
		}},
		{"a file that the environment names stands for all but logins", "darwin", map[string]string{"HOME": "a", "XDG_CONFIG_HOME": "x", "TF_CLI_CONFIG_FILE": "ci/rc", "TERRAFORM_CONFIG": "old"}, []string{"a/.terraform.d/company.tfrc"}, []string{
			"ci/rc", "a/.terraform.d/credentials.tfrc.json", "x/opentofu/credentials.tfrc.json",
		}},
		{"also by its former name", "darwin", map[string]string{"TERRAFORM_CONFIG": "ci/rc"}, nil, []string{"ci/rc"}},
		{"Windows has one folder", "windows", map[string]string{"APPDATA": "r", "HOME": "a"}, []string{"r/terraform.d/company.tfrc", "a/.terraform.d/company.tfrc"}, []string{
			"r/terraform.d/company.tfrc", "r/terraform.rc", "r/tofu.rc", "r/terraform.d/credentials.tfrc.json",
		}},
		{"none without a home", "linux", nil, nil, nil},
	} {
		dir := t.TempDir()
		for _, name := range test.exist {
			commandtest.Write(t, dir, name, "")
		}
		got, err := configurationFiles(test.system, func(name string) string {
			if value, ok := test.environment[name]; ok {
				return filepath.Join(dir, filepath.FromSlash(value))
			}
			return ""
		})
		if err != nil {
			t.Errorf("%s: %v", test.rule, err)
		}
		for i := range got {
			got[i] = strings.TrimPrefix(filepath.ToSlash(got[i]), filepath.ToSlash(dir)+"/")
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q", test.rule, got)
		}
	}
}

// A folder that cannot be read is no folder without files.
func TestConfigurationFolderThatCannotBeRead(t *testing.T) {
	home := t.TempDir()
	commandtest.Write(t, home, ".terraform.d", "")
	files, err := configurationFiles("linux", func(name string) string { return map[string]string{"HOME": home}[name] })
	if err == nil {
		t.Errorf("got %q", files)
	}
}
