package e2e_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// The tree cannot be written to: clients get an error of the mirror, the log
// tells operators what to do, and once they have done it, packages are fetched
// again.
func TestTreeCannotBeWritten(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	published := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	outside := newOutside(t, published)
	front := outside.Front(t, "origin.example.com")
	obeys := withoutOverride(t)

	for name, files := range map[string]struct {
		spoil, mend func(t *testing.T, files *Tree)
		reason      string
		tells       string
	}{
		"because the disk is full": {
			func(t *testing.T, files *Tree) {
				if runtime.GOOS != "linux" || os.Getuid() != 0 {
					t.Skip("not run, because only root on Linux can mount a small disk")
				}
				small := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs", files.Dir)
				if out, err := small.CombinedOutput(); err != nil {
					t.Skipf("not run, because nothing can be mounted here: %v %s", err, out)
				}
				t.Cleanup(func() {
					if out, err := exec.Command("umount", "--lazy", files.Dir).CombinedOutput(); err != nil {
						t.Errorf("umount: %v %s", err, out)
					}
				})
			},
			func(t *testing.T, files *Tree) {
				grown := exec.Command("mount", "-o", "remount,size=64m", files.Dir)
				if out, err := grown.CombinedOutput(); err != nil {
					t.Fatalf("%v %s", err, out)
				}
			},
			"disk_full", "the disk is full: make room for the tree",
		},
		"because of its permissions": {
			func(t *testing.T, files *Tree) {
				if runtime.GOOS == "windows" {
					t.Skip("not run, because permissions of folders have no effect on Windows")
				}
				permit(t, files.Dir, 0o555)
				t.Cleanup(func() { permit(t, files.Dir, 0o755) })
			},
			func(t *testing.T, files *Tree) { permit(t, files.Dir, 0o755) },
			"not_writable", "give the server the right to",
		},
	} {
		t.Run(name, func(t *testing.T) {
			filled := newTree(t)
			files.spoil(t, filled)
			mirror := outside.newMirror(t)
			joins := mirror.run
			mirror.run = func(cmd *exec.Cmd) { joins(cmd); obeys(cmd) }
			mirror.start(t, []Site{mirrorOf("origin.example.com", filled)})

			zip := zipOfDemo("1.0.0", thisPlatform)
			asked := times(front.Asked("origin.example.com", ".zip"))
			for range 3 {
				answer := mirror.Get(t, mirrored("origin.example.com", zip))
				if answer.Status != 503 || answer.Header.Get("Retry-After") == "" || !strings.Contains(answer.Body, "tell its operator") || strings.Contains(answer.Body, filled.Dir) {
					t.Errorf("%d %v %s", answer.Status, answer.Header, answer.Body)
				}
			}
			if n := times(front.Asked("origin.example.com", ".zip")) - asked; n > 1 {
				t.Errorf("the origin has sent the package %d times", n)
			}
			mirror.Log.waitAnswers(t, 0, 3, mirrored("origin.example.com", zip))
			lines := mirror.Log.Find(0, func(e Entry) bool {
				return !e.access() && strings.Contains(e.Line, zip) && strings.Contains(e.Line, files.tells)
			})
			if len(lines) != 1 {
				t.Errorf("the log has %d lines: %v", len(lines), lines)
			}
			if errors := mirror.Log.Find(0, func(e Entry) bool { return e.Level == "error" && !e.access() }); len(errors) > 0 {
				t.Errorf("the log has errors: %v", errors)
			}
			if counted := mirror.failures(t, "origin.example.com"); len(counted) != 1 || counted[0] != files.reason {
				t.Errorf("the metrics have the reasons %v, want %s", counted, files.reason)
			}
			if unfinished := filled.unfinished(); len(unfinished) > 0 {
				t.Errorf("left behind: %v", unfinished)
			}
			if size(filled.Path("providers/"+demoOfOrigin+"/"+zip)) > 0 {
				t.Error("the package is present nevertheless")
			}

			files.mend(t, filled)
			other := zipOfDemo("1.0.0", threePlatforms()[1]) // another one, as the failure is remembered for a while
			if answer := mirror.Get(t, mirrored("origin.example.com", other)); answer.Status != 200 || size(filled.Path("providers/"+demoOfOrigin+"/"+other)) == 0 {
				t.Errorf("after the repair: %d %s", answer.Status, answer.Body)
			}
		})
	}
}

func permit(t *testing.T, folder string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(folder, mode); err != nil {
		t.Fatal(err)
	}
}
