package upstreamtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/http/httptest"
	"sync"
	"time"
)

// StartTLS starts a server with a certificate for Host and names beside it, unless it has another
// one. Handshakes with its key take less time than with the RSA key of httptest.
func StartTLS(s *httptest.Server) {
	if s.TLS == nil {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate()}}
	}
	s.StartTLS()
}

var certificate = sync.OnceValue(func() tls.Certificate { return NewCertificate("example.com", "*.example.com") })

// NewCertificate makes a certificate that is valid for the names, and its own authority.
func NewCertificate(names ...string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Unix(0, 0), // the clock of synctest begins in the year 2000
		NotAfter:              time.Unix(0, 0).AddDate(100, 0, 0),
		DNSNames:              names,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
