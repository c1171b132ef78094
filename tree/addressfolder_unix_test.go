//go:build unix

package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// A file in place of a folder is not opened, since a named pipe would wait for its writer,
// and has no versions. A dangling symlink may lead to the versions of its address, and of no
// other.
func TestFilesInPlaceOfFolders(t *testing.T) {
	for _, test := range []struct {
		rule    string
		make    func(root string) error
		address string
		unknown bool
	}{
		{"a named pipe in another spelling", pipe("providers/ACME"), "acme/demo", false},
		{"a file in another spelling", file("providers/ACME"), "acme/demo", false},
		{"a named pipe where the provider's folder would be", pipe("providers/acme/demo"), "acme/demo", false},
		{"a symlink to nothing in another spelling", link("nothing", "providers/ACME"), "acme/demo", true},
		{"a symlink to nothing of the very name", link("nothing", "providers/acme/demo"), "acme/demo", true},
		{"a symlink to nothing of the namespace", link("nothing", "providers/acme"), "acme/demo", true},
		{"a symlink out of the root", link("/", "providers/acme/demo"), "acme/demo", true},
		{"a symlink to nothing of another provider", link("nothing", "providers/acme/other"), "acme/demo", false},
		{"a symlink to nothing of another namespace", link("nothing", "providers/other"), "acme/demo", false},
		{"all providers in a symlink to nothing", link("nothing", "providers"), "acme/demo", true},
		{"a hostname in a symlink to nothing", link("nothing", "providers/a.example"), "a.example/acme/demo", true},
		{"another hostname in a symlink to nothing", link("nothing", "providers/b.example"), "a.example/acme/demo", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root := t.TempDir()
			if err := test.make(root); err != nil {
				t.Fatal(err)
			}
			files, err := source.Directories{Root: root}.Open()
			if err != nil {
				t.Fatal(err)
			}
			a, err := address.Parse(test.address)
			if err != nil {
				t.Fatal(err)
			}
			in, dir, err := files.Folder(a).Locate()
			if errors.Is(err, tree.ErrNotWritable) != test.unknown || err != nil && !test.unknown {
				t.Errorf("it is %s (%v)", dir, err)
			}
			if strings.Contains(test.rule, "where the provider's folder would be") {
				if _, err := in.Entries(dir); !errors.Is(err, tree.ErrNotWritable) {
					t.Errorf("reading it: %v", err)
				}
			}
		})
	}
}

func within(name string, do func(name string) error) func(root string) error {
	return func(root string) error {
		name := filepath.Join(root, filepath.FromSlash(name))
		return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), do(name))
	}
}

func pipe(name string) func(root string) error {
	return within(name, func(name string) error {
		return syscall.Mkfifo(name, 0o644)
	})
}

func file(name string) func(root string) error {
	return within(name, func(name string) error { return os.WriteFile(name, nil, 0o644) })
}

func link(target, name string) func(root string) error {
	return within(name, func(name string) error { return os.Symlink(target, name) })
}

// Documents behind a dangling symlink are not missing, such as withdrawals.
func TestMetadataBehindASymlinkToNothing(t *testing.T) {
	root := t.TempDir()
	if err := link("nothing", "modules/acme/vpc/aws/registry.hcl")(root); err != nil {
		t.Fatal(err)
	}
	files, err := source.Directories{Root: root}.Open()
	if err != nil {
		t.Fatal(err)
	}
	content, err := files.Folder(addressAt("", "acme/vpc/aws")).ReadMetadata()
	if !errors.Is(err, tree.ErrNotWritable) {
		t.Errorf("it has %q (%v)", content, err)
	}
	if content, err := files.Modules.ReadFile("acme/vpc/aws/registry.hcl", tree.MaxDocument); !errors.Is(err, tree.ErrNotWritable) {
		t.Errorf("it has %q (%v)", content, err)
	}
}
