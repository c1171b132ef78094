package pull

import (
	"slices"
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// treeRelease parses [HOSTNAME/]NAMESPACE/TYPE@VERSION, and adds a file.
func treeRelease(t *testing.T, s string, files ...string) StoredRelease {
	t.Helper()
	source, version, _ := strings.Cut(s, "@")
	parts := strings.Split(source, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	a, err := address.ParseProvider(parts[0], parts[1], parts[2])
	if err != nil {
		t.Fatal(err)
	}
	return StoredRelease{Address: a, Version: version, Files: append([]string{source + "/" + version + ".zip"}, files...)}
}

func lockOf(t *testing.T, releases ...string) []Lock {
	t.Helper()
	var locked []Lock
	for _, s := range releases {
		h := treeRelease(t, s)
		locked = append(locked, Lock{Address: h.Address, Version: h.Version})
	}
	return locked
}

func TestPruningRemovesReleasesInNoLockFile(t *testing.T) {
	releases := []StoredRelease{
		treeRelease(t, "b.example.com/acme/demo@1.10.0"),
		treeRelease(t, "b.example.com/acme/demo@1.9.0"),
		treeRelease(t, "b.example.com/acme/demo@1.9.0+build.5"),
		treeRelease(t, "a.example.com/acme/demo@1.0.0"),
		treeRelease(t, "own.example.com/acme/demo@1.0.0"),
		treeRelease(t, "acme/demo@1.0.0"),
		treeRelease(t, "acme/demo@2.0.0"),
	}
	own := []svchost.Hostname{"own.example.com", "www.example.com"}
	for _, test := range []struct {
		rule    string
		locks   [][]Lock
		options PruneOptions
		remove  string
		kept    int
	}{
		{"an address that no lock file names goes too",
			[][]Lock{lockOf(t, "b.example.com/acme/demo@1.10.0")}, PruneOptions{Own: own},
			"a.example.com/acme/demo@1.0.0 b.example.com/acme/demo@1.9.0 b.example.com/acme/demo@1.9.0+build.5", 4},
		{"one of the lock files is enough",
			[][]Lock{lockOf(t, "b.example.com/acme/demo@1.10.0"), nil, lockOf(t, "b.example.com/acme/demo@1.9.0", "a.example.com/acme/demo@1.0.0")}, PruneOptions{Own: own},
			"b.example.com/acme/demo@1.9.0+build.5", 6},
		{"a locked release that is not in the tree makes no difference",
			[][]Lock{lockOf(t, "c.example.com/acme/demo@1.0.0")}, PruneOptions{Own: own},
			"a.example.com/acme/demo@1.0.0 b.example.com/acme/demo@1.9.0 b.example.com/acme/demo@1.9.0+build.5 b.example.com/acme/demo@1.10.0", 3},
		{"a release of a hostname not given as the registry's own is mirrored",
			[][]Lock{lockOf(t, "b.example.com/acme/demo@1.10.0")}, PruneOptions{},
			"a.example.com/acme/demo@1.0.0 b.example.com/acme/demo@1.9.0 b.example.com/acme/demo@1.9.0+build.5 own.example.com/acme/demo@1.0.0", 3},
	} {
		t.Run(test.rule, func(t *testing.T) {
			plan, err := PlanPruning(releases, test.locks, test.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range plan.Remove {
				got = append(got, h.Address.String()+"@"+h.Version)
			}
			if strings.Join(got, " ") != test.remove || plan.Kept != test.kept {
				t.Errorf("%d are kept and %q removed", plan.Kept, got)
			}
			if len(plan.Files()) != len(got) {
				t.Errorf("the files are %q", plan.Files())
			}
		})
	}
}

func TestPruningWithoutLockFilesIsRefused(t *testing.T) {
	releases := []StoredRelease{treeRelease(t, "a.example.com/acme/demo@1.0.0")}
	for _, test := range []struct {
		rule, says string
		locks      [][]Lock
		options    PruneOptions
	}{
		{"none", "no lock file is given", nil, PruneOptions{}},
		{"empty ones", "everything would be removed", [][]Lock{nil, {}}, PruneOptions{}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			plan, err := PlanPruning(releases, test.locks, test.options)
			if err == nil || !strings.Contains(err.Error(), test.says) || len(plan.Remove) > 0 {
				t.Errorf("it is %+v, %v", plan, err)
			}
		})
	}
}

func TestAFileOfTwoReleasesStaysWithOne(t *testing.T) {
	releases := []StoredRelease{
		treeRelease(t, "a.example.com/acme/demo@1.0.0", "shared", "old"),
		treeRelease(t, "a.example.com/acme/demo@1.1.0", "old"),
		treeRelease(t, "a.example.com/acme/demo@2.0.0", "shared"),
	}
	plan, err := PlanPruning(releases, [][]Lock{lockOf(t, "a.example.com/acme/demo@2.0.0")}, PruneOptions{})
	if want := []string{"a.example.com/acme/demo/1.0.0.zip", "a.example.com/acme/demo/1.1.0.zip", "old"}; err != nil || !slices.Equal(plan.Files(), want) {
		t.Errorf("the files are %q, %v", plan.Files(), err)
	}
	if !slices.Contains(releases[0].Files, "shared") {
		t.Error("the argument has changed")
	}
}
