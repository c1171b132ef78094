package module

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

func TestSigningKeyIsGeneratedOnceForACluster(t *testing.T) {
	const instances = 4
	storage, root := t.TempDir(), sampleTree(t)
	var generated atomic.Int32
	var done sync.WaitGroup
	handlers := make([]*Handler, instances)
	for i := range instances {
		c := newConfigurationIn(t, storage)
		c.generate = func() (*signing.Key, error) {
			generated.Add(1)
			return shortKey(t), nil
		}
		handlers[i] = c.mustHandle(Handler{Root: root})
		done.Go(func() {
			if err := c.start(); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if n := generated.Load(); n != 1 {
		t.Errorf("%d keys were generated, want 1", n)
	}
	for _, h := range handlers {
		if h.source.index.Load() != handlers[0].source.index.Load() {
			t.Error("the instances sign with different keys")
		}
	}
	o := snapshot(t, handlers[0]).Report().Offered[0]
	if !strings.HasPrefix(o.Signature, "registry ") {
		t.Errorf("the release is signed by %q, want the registry", o.Signature)
	}
}

func TestDamagedSigningKeyIsNotReplaced(t *testing.T) {
	for _, damaged := range []string{"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlost\n", ""} {
		c := newConfiguration(t)
		c.mustHandle(Handler{Root: sampleTree(t)})
		if err := c.ctx.Storage().Store(c.ctx, signingKeyName, []byte(damaged)); err != nil {
			t.Fatal(err)
		}
		c.generate = func() (*signing.Key, error) {
			t.Error("a key was generated")
			return shortKey(t), nil
		}
		err := c.start()
		if err == nil || !strings.Contains(err.Error(), signingKeyName) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("got error %v", err)
		}
		if kept, err := c.ctx.Storage().Load(c.ctx, signingKeyName); err != nil || string(kept) != damaged {
			t.Errorf("the stored key was replaced by %q (%v)", kept, err)
		}
	}
}

// A late clock is not a reason to delete a key.
func TestSigningKeyWithALateClock(t *testing.T) {
	tomorrow := time.Now().Add(24 * time.Hour)
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return tomorrow }}
	entity, err := openpgp.NewEntity("Registry", "", "", config)
	if err != nil {
		t.Fatal(err)
	}
	key := armored(t, entity, config)
	late := func(t *testing.T, err error, where string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), signing.ErrClock.Error()) || !strings.Contains(err.Error(), where) {
			t.Fatalf("got error %v", err)
		}
		if strings.Contains(err.Error(), "delete") || strings.Contains(err.Error(), "damaged") {
			t.Errorf("error %q blames the key", err)
		}
	}
	t.Run("in the storage", func(t *testing.T) {
		c := newConfiguration(t)
		c.mustHandle(Handler{Root: sampleTree(t)})
		if err := c.ctx.Storage().Store(c.ctx, signingKeyName, []byte(key)); err != nil {
			t.Fatal(err)
		}
		late(t, c.start(), signingKeyName)
		if kept, err := c.ctx.Storage().Load(c.ctx, signingKeyName); err != nil || string(kept) != key {
			t.Errorf("the stored key was replaced by %q (%v)", kept, err)
		}
	})
	t.Run("in a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "key.asc")
		if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := newConfiguration(t).handle(Handler{Root: sampleTree(t), SigningKey: &SigningKey{File: file}})
		late(t, err, file)
	})
}

// A failingStorage is empty, and its loads fail from the nth on.
type failingStorage struct {
	certmagic.Storage
	loads, failFrom int
}

func (s *failingStorage) Load(ctx context.Context, key string) ([]byte, error) {
	if s.loads++; s.loads >= s.failFrom {
		return nil, errors.New("no route to host")
	}
	return nil, fs.ErrNotExist
}

func callsTo(s certmagic.Storage) storage.Calls {
	return storage.NewCalls(func() (certmagic.Storage, error) { return s, nil }, 1)
}

// An error of the storage is not the absence of a key, neither before the lock that
// instances share is held nor after.
func TestNoSigningKeyIsGeneratedIfTheStorageFails(t *testing.T) {
	for failFrom := 1; failFrom <= 2; failFrom++ {
		c := newConfiguration(t)
		app := c.app()
		app.generate = func() (*signing.Key, error) {
			t.Error("a key was generated")
			return shortKey(t), nil
		}
		_, err := app.loadOrGenerateKey(c.ctx, callsTo(&failingStorage{Storage: c.ctx.Storage(), failFrom: failFrom}))
		if err == nil || !strings.Contains(err.Error(), "no route to host") {
			t.Errorf("load %d fails: got error %v", failFrom, err)
		}
	}
}

// A storage may hang in any call and whatever its context, as a network disk does whose server is away.
func TestSigningKeyInAStorageThatHangs(t *testing.T) {
	for _, test := range []struct {
		call string
		took time.Duration
		err  error
	}{
		{"Load", signingKeyTimeout, context.DeadlineExceeded},
		{"Lock", signingKeyTimeout, context.DeadlineExceeded},
		{"Store", signingKeyTimeout, context.DeadlineExceeded},
		{"Unlock", 5 * time.Second, nil},
	} {
		t.Run(test.call, func(t *testing.T) {
			c := newConfigurationWith(t, closingIn(t.TempDir()))
			app, key := c.app(), shortKey(t)
			app.generate = func() (*signing.Key, error) { return key, nil }
			synctest.Test(t, func(t *testing.T) {
				app.ctx.Context = t.Context()
				returns := make(chan struct{})
				defer time.Sleep(time.Minute) // the storage ends its work on a lock
				defer close(returns)
				before(app, func(method, _ string) error {
					if method == test.call {
						<-returns
					}
					return nil
				})
				began := time.Now()
				_, err := app.signingKey()
				if took := time.Since(began); took != test.took || !errors.Is(err, test.err) {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}

func TestNoSigningKeyIsGeneratedIfNotNeeded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.asc")
	if err := os.WriteFile(file, []byte(indextest.NewPublisher(t).PrivateKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newConfiguration(t)
	c.generate = func() (*signing.Key, error) { return nil, errors.New("generated") }
	signed := c.mustHandle(Handler{Root: sampleTree(t), SigningKey: &SigningKey{File: file}})
	unsigned := c.mustHandle(Handler{Root: sampleTree(t), SigningKey: &SigningKey{Off: true}})
	c.mustStart()
	if c.ctx.Storage().Exists(c.ctx, signingKeyName) {
		t.Error("there is a key in the storage")
	}
	if o := snapshot(t, signed).Report().Offered[0]; !strings.HasPrefix(o.Signature, "registry ") {
		t.Errorf("with a file, the release is signed by %q", o.Signature)
	}
	if o := snapshot(t, unsigned).Report().Offered[0]; o.Signature != "none" {
		t.Errorf("off, the release is signed by %q", o.Signature)
	}
}

func TestSigningKeyFile(t *testing.T) {
	dir, root := t.TempDir(), sampleTree(t)
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	plain := write("plain.asc", indextest.NewPublisher(t).PrivateKey())
	locked := write("locked.asc", lockedKey(t, "correct horse"))
	public := write("public.asc", indextest.NewPublisher(t).PublicKey())
	passphrase := write("passphrase", "correct horse\n")
	t.Setenv("REGISTRY_KEY", locked)
	t.Setenv("REGISTRY_PASSPHRASE", "correct horse")

	tests := []struct {
		rule string
		key  SigningKey
		want string // a part of the error, empty without
	}{
		{"a key without passphrase", SigningKey{File: plain}, ""},
		{"an unneeded passphrase", SigningKey{File: plain, Passphrase: "any"}, ""},
		{"a key with its passphrase", SigningKey{File: locked, Passphrase: "correct horse"}, ""},
		{"placeholders of the environment", SigningKey{File: "{env.REGISTRY_KEY}", Passphrase: "{env.REGISTRY_PASSPHRASE}"}, ""},
		{"a placeholder of a file", SigningKey{File: locked, Passphrase: "{file." + passphrase + "}"}, ""},
		{"a wrong passphrase", SigningKey{File: locked, Passphrase: "battery staple"}, "passphrase"},
		{"no passphrase", SigningKey{File: locked}, "passphrase"},
		{"a passphrase of an unset variable", SigningKey{File: locked, Passphrase: "{env.REGISTRY_UNSET}"}, "signing_key: passphrase:"},
		{"a placeholder of requests", SigningKey{File: "{http.request.host}"}, "signing_key: file:"},
		{"a public key", SigningKey{File: public}, public},
		{"a missing file", SigningKey{File: filepath.Join(dir, "missing")}, "missing"},
		{"no file", SigningKey{}, "it has no file"},
		{"a passphrase without file", SigningKey{Passphrase: "any"}, "it has no file"},
		{"a file and off", SigningKey{File: plain, Off: true}, "choose one"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			c := newConfiguration(t)
			_, err := c.handle(Handler{Root: root, SigningKey: &test.key})
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if strings.Contains(err.Error(), "battery") {
				t.Errorf("error %q has the passphrase in it", err)
			}
		})
	}
}

// lockedKey returns an armored private key with a passphrase.
func lockedKey(t *testing.T, passphrase string) string {
	t.Helper()
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA}
	entity, err := openpgp.NewEntity("Registry", "", "registry@example.com", config)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.EncryptPrivateKeys([]byte(passphrase), config); err != nil {
		t.Fatal(err)
	}
	return armored(t, entity, config)
}

// armored returns a private key in ASCII armor.
func armored(t *testing.T, entity *openpgp.Entity, config *packet.Config) string {
	t.Helper()
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PrivateKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.SerializePrivateWithoutSigning(w, config); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return b.String() + "\n"
}

func TestLinkKeysInCaddysStorage(t *testing.T) {
	c := newConfiguration(t)
	store := storage.NewLinkKeys(c.app().storage, c.app().lock)
	load := func() (*access.RotatingLinkKeys, error) {
		keys := access.NewRotatingLinkKeys(t.Context(), store, c.ctx.Slogger(), time.Now)
		t.Cleanup(keys.Close)
		return keys, keys.Load()
	}
	var queries []string
	for range 2 {
		keys, err := load()
		if err != nil {
			t.Fatal(err)
		}
		links := access.Links{Keys: keys.Keys}
		query, err := links.AppendQuery(nil, "tree", "file", 1<<40)
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, string(query))
	}
	if queries[0] != queries[1] {
		t.Error("the links differ after a restart")
	}
	if !c.ctx.Storage().Exists(t.Context(), storage.LinkKeysName) {
		t.Errorf("there is no %s", storage.LinkKeysName)
	}
}

// The configuration starts with new keys in place of damaged ones.
func TestDamagedLinkKeysAreMadeAgain(t *testing.T) {
	c := newConfiguration(t)
	auth, _ := tokensProvider(t, "ci")
	store, damaged := storage.NewLinkKeys(c.app().storage, c.app().lock), []byte("{")
	if err := store.Store(t.Context(), damaged); err != nil {
		t.Fatal(err)
	}
	c.mustHandle(Handler{Root: sampleTree(t), AuthRaw: []json.RawMessage{auth}, Access: &Access{Rules: []AccessRule{allow("ci", "acme")}}})
	c.mustStart()
	if kept, err := store.Load(t.Context()); err != nil || bytes.Equal(kept, damaged) {
		t.Errorf("the storage has %q (%v)", kept, err)
	}
}

// A link is valid wherever its tree is served: by another handler, after a restart, by
// another instance that shares Caddy's storage. It is not valid for another tree, even
// though that has the same keys.
func TestLinksAreBoundToTheTree(t *testing.T) {
	root, other, storage := sampleTree(t), sampleTree(t), t.TempDir()
	auth, tokens := tokensProvider(t, "ci")
	handlerOf := func(root string) Handler {
		return Handler{Root: root, AuthRaw: []json.RawMessage{auth}, Access: &Access{Rules: []AccessRule{allow("ci", "acme")}}}
	}
	c := newConfigurationIn(t, storage)
	h, named, elsewhere := c.mustHandle(handlerOf(root)), handlerOf(root), c.mustHandle(handlerOf(other))
	named.Hostnames = []string{"other.example.com"}
	alias := c.mustHandle(named)
	c.mustStart()
	for _, h := range []*Handler{h, elsewhere} {
		snapshot(t, h)
	}
	link := ask(t, h, "/v1/modules/acme/vpc/aws/1.0.0/download", tokens["ci"], nil).Header().Get("X-Terraform-Get")

	again := newConfigurationIn(t, storage)
	restarted := again.mustHandle(handlerOf(root))
	again.mustStart()
	snapshot(t, restarted)
	for _, test := range []struct {
		rule string
		h    *Handler
		want int
	}{
		{"the same handler", h, http.StatusOK},
		{"the same tree under another hostname", alias, http.StatusOK},
		{"after a restart", restarted, http.StatusOK},
		{"another tree", elsewhere, http.StatusForbidden},
	} {
		if w := ask(t, test.h, link, "", nil); w.Code != test.want {
			t.Errorf("%s: got %d %s, want %d", test.rule, w.Code, w.Body, test.want)
		}
	}
}
