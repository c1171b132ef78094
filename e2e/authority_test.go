package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// An authority is a certificate authority, in the form in which Caddy stores its own.
// All Caddys that the browser visits share one, because the browser is told at its
// start, before any of them runs, which authority to trust.
type authority struct {
	files map[string][]byte // by name in the folder of the authority

	// pin is the hash of the intermediate's public key, in the form of the
	// browser's flag. The intermediate is in every chain that Caddy sends.
	pin string
}

var browserAuthority = sync.OnceValues(newAuthority)

// shareAuthority puts the authority into the storage of a Caddy that has not run
// yet.
func shareAuthority(t *testing.T, storage string) {
	t.Helper()
	a, err := browserAuthority()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range a.files {
		writeFile(t, filepath.Join(storage, "pki", "authorities", "local", name), string(content))
	}
}

func newAuthority() (*authority, error) {
	a := &authority{files: map[string][]byte{}}
	root, rootKey, err := a.issue("root", 365*24*time.Hour, nil, nil)
	if err != nil {
		return nil, err
	}
	intermediate, _, err := a.issue("intermediate", 30*24*time.Hour, root, rootKey)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(intermediate.RawSubjectPublicKeyInfo)
	a.pin = base64.StdEncoding.EncodeToString(hash[:])
	return a, nil
}

// issue makes a certificate with its key and keeps both. Without a parent it is
// self-signed.
func (a *authority) issue(name string, lifetime time.Duration, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "the tests' " + name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	private, keyErr := x509.MarshalECPrivateKey(key)
	if err := errors.Join(err, keyErr); err != nil {
		return nil, nil, err
	}
	a.files[name+".crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	a.files[name+".key"] = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})
	certificate, err := x509.ParseCertificate(der)
	return certificate, key, err
}
