package remote

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// configurationFiles are the files of the CLI configuration that Terraform and OpenTofu may read.
// The first file that says something counts, so the order is the reverse of the clients': they
// read their main file and then the files of a folder, and a later file overrides an earlier one.
// Not all files need to exist.
func configurationFiles(system string, getenv func(string) string) (files []string, err error) {
	home, data := getenv("HOME"), getenv("XDG_CONFIG_HOME")
	if data == "" && home != "" {
		data = filepath.Join(home, ".config")
	}
	add := func(dir string, names ...string) {
		for _, name := range names {
			if dir != "" {
				files = append(files, filepath.Join(dir, filepath.FromSlash(name)))
			}
		}
	}
	main := cmp.Or(getenv("TF_CLI_CONFIG_FILE"), getenv("TERRAFORM_CONFIG"))
	if main != "" {
		files = []string{main} // clients read no folder then
	} else if files, err = folderFiles(system, getenv); err != nil {
		return nil, err
	}
	// A login is found in any case: its token is for its own host alone.
	if system == "windows" {
		if main == "" {
			add(getenv("APPDATA"), "terraform.rc", "tofu.rc")
		}
		add(getenv("APPDATA"), "terraform.d/credentials.tfrc.json")
		return files, nil
	}
	if main == "" {
		add(home, ".terraformrc", ".tofurc")
		add(data, "opentofu/tofurc")
	}
	add(home, ".terraform.d/credentials.tfrc.json")
	add(data, "opentofu/credentials.tfrc.json")
	return files, nil
}

// folderFiles returns the files in the clients' folder of configurations, the last by name first.
// OpenTofu has another folder where there is none of Terraform's.
func folderFiles(system string, getenv func(string) string) ([]string, error) {
	if system == "windows" {
		files, _, err := filesIn(getenv("APPDATA"), "terraform.d")
		return files, err
	}
	files, exists, err := filesIn(getenv("HOME"), ".terraform.d")
	if exists || err != nil {
		return files, err
	}
	files, _, err = filesIn(getenv("XDG_CONFIG_HOME"), "opentofu")
	return files, err
}

func filesIn(parent, name string) (files []string, exists bool, err error) {
	if parent == "" {
		return nil, false, nil
	}
	dir := filepath.Join(parent, name)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, e := range slices.Backward(entries) {
		if strings.HasSuffix(e.Name(), ".tfrc") || strings.HasSuffix(e.Name(), ".tfrc.json") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, true, nil
}
