package module

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

func TestLinkKeysAreGeneratedOnceForACluster(t *testing.T) {
	var storage sharedStorage
	instances := make([]*linkInstance, 8)
	var done sync.WaitGroup
	for i := range instances {
		instances[i] = newLinkInstance(t, &storage)
		done.Go(func() {
			if err := instances[i].keys.Load(); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if storage.stores != 1 {
		t.Errorf("keys were stored %d times", storage.stores)
	}
	query := instances[0].sign(t)
	for _, i := range instances {
		i.wantVerified(t, query, nil)
	}
}

func TestLinkKeysInCaddysStorage(t *testing.T) {
	c := newConfiguration(t)
	var queries []string
	for range 2 {
		i := newLinkInstance(t, c.ctx.Storage())
		if i.keys.Keys() != nil {
			t.Error("there are keys before they were loaded")
		}
		i.mustLoad(t)
		queries = append(queries, i.sign(t))
	}
	if queries[0] != queries[1] {
		t.Error("after a restart the links are others")
	}
	if !c.ctx.Storage().Exists(t.Context(), linkKeysName) {
		t.Errorf("there is no %s", linkKeysName)
	}
}

func TestLinkKeysRotate(t *testing.T) {
	var storage sharedStorage
	a, b := newLinkInstance(t, &storage), newLinkInstance(t, &storage)
	a.mustLoad(t)
	b.mustLoad(t)
	before := a.sign(t)

	first := a.keys.Keys()

	a.clock = a.clock.Add(linkKeyLife - time.Second)
	a.keys.Keys()
	a.settle()
	a.wantKey(t, first) // it is not old enough
	a.clock = a.clock.Add(time.Second)
	if a.keys.Keys() != first {
		t.Error("a request has waited for the next key")
	}
	a.settle()
	after := a.sign(t)
	if before == after {
		t.Fatal("the key was not rotated")
	}
	a.wantVerified(t, before, nil)
	b.wantVerified(t, after, nil) // at once: it asks for the key it does not know
	b.wantVerified(t, before, nil)
	b.wantKey(t, a.keys.Keys())

	b.clock = a.clock
	b.keys.Keys()
	b.settle()
	if storage.stores != 2 {
		t.Errorf("keys were stored %d times, want once at first and once for the cluster", storage.stores)
	}
}

// Of two instances that find the key old, one rotates it and the other takes it
// over.
func TestLinkKeysAreRotatedOnceForACluster(t *testing.T) {
	var storage sharedStorage
	instances := make([]*linkInstance, 8)
	for n := range instances {
		instances[n] = newLinkInstance(t, &storage)
		instances[n].mustLoad(t)
	}
	for _, i := range instances {
		i.clock = i.clock.Add(linkKeyLife)
		i.keys.Keys()
	}
	for _, i := range instances {
		i.settle()
		i.wantKey(t, instances[0].keys.Keys())
	}
	if storage.stores != 2 {
		t.Errorf("keys were stored %d times", storage.stores)
	}
}

// An instance that has slept while others rotated twice has keys that nobody
// else knows.
func TestLinkKeysThatAreTooOldSignNothing(t *testing.T) {
	var storage sharedStorage
	asleep, awake := newLinkInstance(t, &storage), newLinkInstance(t, &storage)
	asleep.mustLoad(t)
	awake.mustLoad(t)
	for range 2 {
		awake.clock = awake.clock.Add(linkKeyLife)
		awake.keys.Keys()
		awake.settle()
	}
	asleep.clock = awake.clock
	awake.wantVerified(t, asleep.sign(t), nil)
	if storage.stores != 3 {
		t.Errorf("keys were stored %d times", storage.stores)
	}
	// And no link outlives its key, however it was rounded.
	if linkKeyTooOld+maxLinkLife+maxLinkLife/16 >= 2*linkKeyLife {
		t.Error("links may live longer than the keys that signed them")
	}
}

func TestUnknownLinkKeysAreReloadedOnceASecond(t *testing.T) {
	var storage sharedStorage
	i := newLinkInstance(t, &storage)
	i.mustLoad(t)
	forged := "exp=9999999999&sig=" + strings.Repeat("A", 48)
	loaded := storage.loads
	for range 100 {
		i.wantVerified(t, forged, access.ErrLinkInvalid)
	}
	if n := storage.loads - loaded; n != 1 {
		t.Errorf("the keys were loaded %d times", n)
	}
	i.clock = i.clock.Add(time.Second)
	i.wantVerified(t, forged, access.ErrLinkInvalid)
	if n := storage.loads - loaded; n != 2 {
		t.Errorf("a second later the keys were loaded %d times", n)
	}
}

// A reload that has read the storage before a rotation ends after it.
func TestOvertakenReloadDoesNotBringOldLinkKeysBack(t *testing.T) {
	var storage sharedStorage
	i := newLinkInstance(t, &storage)
	i.mustLoad(t)
	i.clock = i.clock.Add(linkKeyLife)
	storage.loaded = func() { // once the reload has read
		storage.loaded = nil
		if err := i.keys.rotateNow(t.Context()); err != nil {
			t.Error(err)
		}
	}
	i.keys.Unknown()
	stored, err := access.DecodeLinkKeys(storage.document)
	if err != nil || storage.stores != 2 {
		t.Fatalf("stored %d times, %v", storage.stores, err)
	}
	i.wantKey(t, stored)
}

func TestDamagedLinkKeysAreNotReplaced(t *testing.T) {
	var storage sharedStorage
	i := newLinkInstance(t, &storage)
	i.mustLoad(t)
	query := i.sign(t)
	damaged := storage.document[:len(storage.document)-10]
	storage.document = damaged

	err := newLinkInstance(t, &storage).keys.Load()
	if err == nil || !strings.Contains(err.Error(), linkKeysName) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("at the start: %v", err)
	}
	i.clock = i.clock.Add(linkKeyLife)
	i.keys.Keys()
	i.keys.Unknown()
	i.settle()
	i.wantVerified(t, query, nil)
	if n := i.logged("level=ERROR"); n != 2 || i.logged("damaged") != 2 {
		t.Errorf("the log is:\n%s", i.log.String())
	}
	if !bytes.Equal(storage.document, damaged) {
		t.Error("the document was replaced")
	}
}

func TestLinkKeysOutliveAStorageThatFails(t *testing.T) {
	var storage sharedStorage
	i := newLinkInstance(t, &storage)
	i.mustLoad(t)
	known, query := i.keys.Keys(), i.sign(t)

	for _, failing := range []string{"load", "lock", "store"} {
		storage.fail(failing, errors.New("no route to host"))
		for range 5 {
			i.clock = i.clock.Add(linkKeyLife)
			i.keys.Keys()
			i.keys.Unknown()
			i.settle()
			i.wantKey(t, known)
			i.wantVerified(t, query, nil)
		}
		if failing == "load" {
			if n := i.logged("level=ERROR"); n != 2 || i.logged("no route to host") != 2 {
				t.Errorf("it is to be logged once a task, the log is:\n%s", i.log.String())
			}
		}
	}
	storage.fail("", nil)
	i.clock = i.clock.Add(linkKeyLife)
	i.keys.Keys()
	i.settle()
	if i.keys.Keys() == known {
		t.Error("once the storage is back, the key is not rotated")
	}
	if i.logged("rotating the keys of signed links works again") != 1 || i.logged("reloading the keys of signed links works again") != 1 {
		t.Errorf("the log is:\n%s", i.log.String())
	}
}

func TestLinkKeysAreNotGeneratedWhenTheStorageFails(t *testing.T) {
	for _, failing := range []string{"load", "lock", "store"} {
		t.Run(failing, func(t *testing.T) {
			var storage sharedStorage
			storage.fail(failing, errors.New("no route to host"))
			i := newLinkInstance(t, &storage)
			err := i.keys.Load()
			if err == nil || !strings.Contains(err.Error(), "no route to host") || !strings.Contains(err.Error(), linkKeysName) {
				t.Errorf("got %v", err)
			}
			if i.keys.Keys() != nil || storage.document != nil {
				t.Error("there are keys")
			}
		})
	}
}
