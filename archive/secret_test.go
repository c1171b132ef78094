package archive

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"golang.org/x/crypto/ssh"
)

func testdata(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// must returns the value of a call that must not fail.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// privateKeys returns keys in the formats of different tools.
func privateKeys(t testing.TB) map[string]string {
	t.Helper()
	bytesOf := must[[]byte](t)
	block := func(kind string, content []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
	}
	ec := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	rsaKey := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	open := func(k crypto.PrivateKey) string {
		return string(pem.EncodeToMemory(must[*pem.Block](t)(ssh.MarshalPrivateKey(k, "me@example.com"))))
	}
	pkcs8 := block("PRIVATE KEY", bytesOf(x509.MarshalPKCS8PrivateKey(ed)))
	sec1 := block("EC PRIVATE KEY", bytesOf(x509.MarshalECPrivateKey(ec)))

	entity := must[*openpgp.Entity](t)(openpgp.NewEntity("Acme", "", "a@example.com", nil))
	var pgp bytes.Buffer
	w, err := armor.Encode(&pgp, openpgp.PrivateKeyType, map[string]string{"Comment": "a key"})
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.SerializePrivate(w, nil); err != nil {
		t.Fatal(err)
	}
	w.Close()
	account := bytesOf(json.MarshalIndent(map[string]string{"type": "service_account", "private_key": pkcs8}, "", "  "))
	return map[string]string{
		"PKCS#8":                      pkcs8,
		"PKCS#1":                      block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)),
		"SEC 1":                       sec1,
		"SEC 1 behind its parameters": "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + sec1,
		"OpenSSL, encrypted":          "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AA770495D07C818F8DD1DEAC4A081CCE\n\n" + strings.SplitN(sec1, "\n", 2)[1],
		"PKCS#8, encrypted":           strings.ReplaceAll(pkcs8, "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"),
		"OpenSSH":                     open(ed),
		"OpenPGP":                     pgp.String(),
		"with Windows line ends":      strings.ReplaceAll(pkcs8, "\n", "\r\n"),
		"behind certificates":         block("CERTIFICATE", make([]byte, 3000)) + block("CERTIFICATE", make([]byte, 3000)) + pkcs8,
		"of a service account":        string(account),
		"in a configuration":          "locals {\n  key = <<-EOT\n    " + strings.ReplaceAll(pkcs8, "\n", "\n    ") + "\n  EOT\n}\n",
		"in a string":                 `key = "` + strings.ReplaceAll(pkcs8, "\n", `\n`) + `"`,
		"PuTTY":                       "PuTTY-User-Key-File-3: ssh-ed25519\r\nEncryption: none\r\n",
		"age":                         "# created: 2026-01-02\nAGE-SECRET-KEY-1" + strings.Repeat("QX7", 19) + "Q\n",
		"PKCS#8 in DER":               string(bytesOf(x509.MarshalPKCS8PrivateKey(rsaKey))),
		"PKCS#8 in DER, a short one":  string(bytesOf(x509.MarshalPKCS8PrivateKey(ed))),
		"PKCS#1 in DER":               string(x509.MarshalPKCS1PrivateKey(rsaKey)),
		"SEC 1 in DER":                string(bytesOf(x509.MarshalECPrivateKey(ec))),
		"PKCS#12":                     testdata(t, "store.p12"),
	}
}

func TestSecretByContent(t *testing.T) {
	for rule, content := range privateKeys(t) {
		if got := secretByContent([]byte(content), int64(len(content))); got != privateKey {
			t.Errorf("%s is %q: %.100q", rule, got, content)
		}
	}
	for rule, content := range map[string]string{
		"of Terraform 1.11":  testdata(t, "saved-plan"),
		"of Terraform 0.11":  "tfplan\x02binary",
		"called by its name": zipText("tfplan", "x", "tfstate", "{}"),
	} {
		if got := secretByContent([]byte(content), int64(len(content))); got != savedPlan {
			t.Errorf("a plan %s is %q", rule, got)
		}
	}
}

// Content that only mentions keys is not a secret.
func TestContentThatIsNotSecret(t *testing.T) {
	bytesOf := must[[]byte](t)
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	public := bytesOf(x509.MarshalPKIXPublicKey(&key.PublicKey))
	sshPublic := must[ssh.PublicKey](t)(ssh.NewPublicKey(&key.PublicKey))
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate := bytesOf(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	for rule, content := range map[string]string{
		"nothing":                    "",
		"a certificate":              string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		"a certificate in DER":       string(certificate),
		"a public key":               string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		"a public key in DER":        string(public),
		"a public key for ssh":       string(ssh.MarshalAuthorizedKey(sshPublic)),
		"documentation":              "Paste the key, with `-----BEGIN PRIVATE KEY-----` and `-----END PRIVATE KEY-----`, into the field.\n",
		"documentation with an idea": "```\n-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA...\n-----END RSA PRIVATE KEY-----\n```\n",
		"a condition":                `condition = startswith(var.key, "-----BEGIN OPENSSH PRIVATE KEY-----")` + "\n",
		"a check in a script":        "grep -q 'PRIVATE KEY-----' \"$1\"",
		"documentation of age":       "age-keygen prints AGE-SECRET-KEY-1… once.\n",
		"a configuration":            "resource \"tls_private_key\" \"a\" {\n  algorithm = \"ED25519\"\n}\n",
		"a zip of a function":        zipText("index.js", "x", "tfplan", "x"),
		"a zip of another plan":      zipText("tfplan.json", "{}"),
		"a text about plans":         "tfplan is what we call it\n",
		"a file called so inside":    "tfplan\n",
		"a number in DER":            "\x30\x03\x02\x01\x00",
		"part of a key in DER":       "\x30\x82\x04\xa4\x02\x01\x00\x02\x82\x01\x01\x00",
		"noise":                      noise(100_000),
		"base64":                     base64.StdEncoding.EncodeToString([]byte(noise(3000))),
	} {
		start := content[:min(len(content), inspectSize)]
		if got := secretByContent([]byte(start), int64(len(content))); got != "" {
			t.Errorf("%s is %s", rule, got)
		}
	}
}

func zipText(files ...string) string { return string(zipOf(files...)) }

func FuzzSecretByContent(f *testing.F) {
	for _, content := range privateKeys(f) {
		f.Add([]byte(content))
	}
	f.Add([]byte(testdata(f, "saved-plan")))
	f.Fuzz(func(t *testing.T, content []byte) {
		found := secretByContent(content, int64(len(content)))
		if found == "" && bytes.Contains(content, []byte("-----BEGIN PRIVATE KEY-----\n"+strings.Repeat("M", 40))) {
			t.Error("a key is missed")
		}
	})
}
