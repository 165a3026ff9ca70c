// Package pki makes the keys, certificates and kubeconfig files of one cluster.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// lifetime of every certificate: longer than a retained cluster is of use to anyone.
const lifetime = 365 * 24 * time.Hour

// Authority is the cluster's certificate authority, which writes into one folder.
type Authority struct {
	dir         string
	certificate *x509.Certificate
	pem         []byte
	key         *ecdsa.PrivateKey
}

// Certificate is what a certificate is issued for.
type Certificate struct {
	// CommonName is the user or host name.
	CommonName string
	// Organization are the groups of a user.
	Organization []string
	// DNSNames and Addresses are what a server is reached as.
	DNSNames  []string
	Addresses []net.IP
}

// New makes a certificate authority and writes ca.crt and ca.key into dir.
func New(dir string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the certificate authority: %w", err)
	}
	template, err := newTemplate("embedded-cluster-ca")
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign
	template.ExtKeyUsage = nil
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	a := &Authority{dir: dir, certificate: certificate, pem: certificatePEM(der), key: key}
	keyText, err := keyPEM(key)
	if err != nil {
		return nil, err
	}
	return a, a.write("ca", a.pem, keyText)
}

// Issue writes name.crt and name.key and returns their content.
func (a *Authority) Issue(name string, c Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of %s: %w", name, err)
	}
	template, err := newTemplate(c.CommonName)
	if err != nil {
		return nil, nil, err
	}
	template.Subject.Organization = c.Organization
	template.DNSNames = c.DNSNames
	template.IPAddresses = c.Addresses
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("issue the certificate of %s: %w", name, err)
	}
	if key, err = keyPEM(private); err != nil {
		return nil, nil, err
	}
	certificate = certificatePEM(der)
	return certificate, key, a.write(name, certificate, key)
}

// Kubeconfig issues a client certificate and writes a kubeconfig for it to path, readable
// by its owner only.
func (a *Authority) Kubeconfig(path, name, server string, c Certificate) error {
	certificate, key, err := a.Issue(name, c)
	if err != nil {
		return err
	}
	const cluster = "embedded"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.pem}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name}
	config.CurrentContext = cluster
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	return nil
}

// SigningKey writes name.key, a key without a certificate, for service account tokens.
func (a *Authority) SigningKey(name string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of %s: %w", name, err)
	}
	text, err := keyPEM(private)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(a.dir, name+".key"), text)
}

func (a *Authority) write(name string, certificate, key []byte) error {
	if err := writeFile(filepath.Join(a.dir, name+".crt"), certificate); err != nil {
		return err
	}
	return writeFile(filepath.Join(a.dir, name+".key"), key)
}

func writeFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write a certificate or key: %w", err)
	}
	return nil
}

func newTemplate(commonName string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, nil
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
