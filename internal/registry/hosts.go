package registry

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/packhof/packhof/internal/problem"
)

// hosts is the innermost transport: it sends a request with the authorities
// of the host that it goes to, wherever it came from.
type hosts struct {
	plainHTTP map[string]bool
	private   map[string]*http.Transport // hosts with an authority of their own
	public    *http.Transport
}

// tuning is what a Config says about every connection.
type tuning struct {
	patience time.Duration
	bulk     bool
}

func newHosts(config map[string]Host, tuned tuning) (*hosts, error) {
	h := &hosts{plainHTTP: map[string]bool{}, private: map[string]*http.Transport{}, public: newTransport(nil, tuned)}
	for host, special := range config {
		key := hostKey(host)
		if !hostForm.MatchString(key) {
			return nil, problem.New("registry/config", "%.100q is no host", host).Hint("write hosts as references do, such as registry.example:5000")
		}
		h.plainHTTP[key] = special.PlainHTTP
		if len(special.CA) == 0 {
			continue
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, problem.New("registry/config", "the system's certificate authorities cannot be read: %w", err)
		}
		if !pool.AppendCertsFromPEM(special.CA) {
			return nil, problem.New("registry/config", "the ca of host %s holds no PEM certificate", host)
		}
		h.private[key] = newTransport(pool, tuned)
	}
	return h, nil
}

func newTransport(pool *x509.CertPool, tuned tuning) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!tuned.bulk)
	return &http.Transport{
		Protocols:             protocols,
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: tuned.patience,
		// A blob is hashed as it is stored: nobody on the way may unpack it.
		DisableCompression: true,
	}
}

func hostKey(host string) string {
	host = strings.ToLower(host)
	if host == dockerHub {
		return dockerHubAPI
	}
	return host
}

func (h *hosts) plain(host string) bool { return h.plainHTTP[hostKey(host)] }

func (h *hosts) RoundTrip(req *http.Request) (*http.Response, error) {
	if t, ok := h.private[hostKey(req.URL.Host)]; ok {
		return t.RoundTrip(req)
	}
	return h.public.RoundTrip(req)
}

func (h *hosts) closeIdle() {
	h.public.CloseIdleConnections()
	for _, t := range h.private {
		t.CloseIdleConnections()
	}
}
