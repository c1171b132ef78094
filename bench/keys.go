package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// A key signs releases, as their publisher's key or as the registry's own. Both cost
// the same.
type key struct {
	entity *openpgp.Entity
	public []byte // armored
	file   string // with the private key, armored
}

func newKey(file string) (key, error) {
	progress("generating a key")
	k := key{file: file}
	var err error
	created := func() time.Time { return time.Now().Add(-time.Hour) }
	config := &packet.Config{Algorithm: packet.PubKeyAlgoRSA, RSABits: 3072, Time: created}
	if k.entity, err = openpgp.NewEntity("bench", "", "", config); err != nil {
		return k, err
	}
	k.entity.Subkeys = nil // it is for encryption, and no registry's key has one
	if k.public, err = armored(openpgp.PublicKeyType, k.entity.Serialize); err != nil {
		return k, err
	}
	private, err := armored(openpgp.PrivateKeyType, func(w io.Writer) error { return k.entity.SerializePrivate(w, nil) })
	if err != nil {
		return k, err
	}
	return k, os.WriteFile(file, private, 0o600)
}

func armored(kind string, serialize func(io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	w, err := armor.Encode(&b, kind, nil)
	if err != nil {
		return nil, err
	}
	err = errors.Join(serialize(w), w.Close())
	return b.Bytes(), err
}

// sign returns a detached binary signature.
func (k key) sign(document []byte) ([]byte, error) {
	var signature bytes.Buffer
	err := openpgp.DetachSign(&signature, k.entity, bytes.NewReader(document), nil)
	return signature.Bytes(), err
}

// A certificate for host and 127.0.0.1, and its private key, are two files.
type certificate struct{ file, key string }

// newCertificate makes a self-signed one of the kind that Caddy gets by default,
// with the generator that comes with Go.
func newCertificate(ctx context.Context, dir string) (certificate, error) {
	c := certificate{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return c, err
	}
	generator := filepath.Join(strings.TrimSpace(string(root)), "src", "crypto", "tls", "generate_cert.go")
	generate := exec.CommandContext(ctx, "go", "run", generator, "-host", host+",127.0.0.1", "-ecdsa-curve", "P256")
	generate.Dir = dir
	if out, err := generate.CombinedOutput(); err != nil {
		return c, fmt.Errorf("%s: %w: %s", generator, err, out)
	}
	return c, nil
}
