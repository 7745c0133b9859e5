package testkit

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// privateCA issues one server certificate for 127.0.0.1 and localhost and
// returns it with the PEM of the authority that vouches for it. The validity
// spans this century, because clients check it against the wall clock.
func privateCA() (server tls.Certificate, caPEM []byte, err error) {
	caKey, serverKey := Key("certificate authority"), Key("tls server")
	ca := certificate(1, "Packhof test authority")
	ca.IsCA = true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make the test authority: %w", err)
	}

	leaf := certificate(2, "localhost")
	leaf.DNSNames = []string{"localhost"}
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, serverKey.Public(), caKey)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make the test server's certificate: %w", err)
	}

	caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	return tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: serverKey}, caPEM, nil
}

func certificate(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          big.NewInt(serial),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2099, time.December, 31, 0, 0, 0, 0, time.UTC),
		BasicConstraintsValid: true,
	}
}
