package pull_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Temporary files of a killed instance are removed. Temporary files of running
// instances, and all other files, stay.
func TestLeftovers(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	root := t.TempDir()
	mine := indextest.OnDisk(t, root)
	left, alive := directory+"."+linuxZip+".LEFTLEFT22.part", directory+"."+linuxZip+".ALIVEALIVE.part"
	deep := directory + "1.0.0/." + linuxZip + ".LEFTLEFT22.part"
	old, young := directory+"."+sums+".OLDOLDOLD2.tmp", directory+"."+sums+".YOUNGYOUNG.tmp"
	oldKeys := "keys/" + host + "/.acme.asc.OLDOLDOLD2.tmp"
	others := []string{
		directory + "notes.part", directory + ".notes", directory + ".notes.part", directory + ".my.notes.part", directory + ".x.LEFTLEFT2.part", directory + ".x.leftleft22.part",
		directory + ".x.LEFTLEFT221.part", directory + "..LEFTLEFT22.part", directory + "x.LEFTLEFT22.tmp", directory + ".x.LEFTLEFT22.bak", "providers/acme/demo/." + linuxZip + ".LEFTLEFT22.part",
		"providers/other.example.com/acme/demo/." + linuxZip + ".LEFTLEFT22.part",
	}
	for _, name := range append([]string{left, alive, deep, old, young, oldKeys}, others...) {
		mine.Write(name, "half a package")
	}
	now := time.Now()
	if err := mine.Fs.Chtimes(young, now, now); err != nil {
		t.Fatal(err)
	}
	lock := flock.New(filepath.Join(root, alive))
	if taken, err := lock.TryLock(); !taken || err != nil {
		t.Fatal(err)
	}
	defer lock.Close()

	m := over(t, c, pull.Policy{}, treeRoot{dir: root})
	if n := m.RemoveLeftovers(background()); n != 4 {
		t.Errorf("removed %d files", n)
	}
	m.mustHave(t, append([]string{alive, young}, others...)...)
	if m.log.count("interrupted fills") != 1 {
		t.Error("it is not logged")
	}
}

// Without locks, leftovers are recognised by their age.
func TestLeftoversWithoutLocks(t *testing.T) {
	folders := indextest.New(t)
	left, alive := directory+"."+linuxZip+".LEFTLEFT22.part", directory+"."+linuxZip+".ALIVEALIVE.part"
	folders.Write(left, "").Write(alive, "")
	now := time.Now()
	if err := folders.Fs.Chtimes(alive, now, now); err != nil {
		t.Fatal(err)
	}
	m := inMemory(t, newAcme(t).Client(t, upstream.Origin{}), pull.Policy{}, folders)
	if n := m.RemoveLeftovers(background()); n != 1 {
		t.Errorf("removed %d files", n)
	}
	m.mustHave(t, alive)
}

// A fill under way is not a leftover, for any instance.
func TestFillsUnderWayAreNotLeftovers(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	begun, rest := make(chan struct{}), make(chan struct{})
	s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-rest
		s.Handler.ServeHTTP(w, r)
	})
	root := t.TempDir()
	m, other := over(t, c, pull.Policy{}, treeRoot{dir: root}), over(t, c, pull.Policy{}, treeRoot{dir: root})
	done := make(chan error)
	go func() {
		_, err := m.Fill(background(), demo, linuxZip)
		done <- err
	}()
	<-begun
	if n := other.RemoveLeftovers(background()); n != 0 {
		t.Errorf("removed %d files", n)
	}
	close(rest)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, directory, linuxZip)); err != nil {
		t.Error(err)
	}
}
