// Package s3 speaks with S3 servers (MinIO, Ceph RGW and others): it writes,
// reads, lists, copies and deletes the objects of one bucket below one prefix.
// Both shores use it, and nothing else may import minio-go.
//
// It never believes an ETag, never sends a byte that it does not hold in
// memory to send it again, never makes an object of bytes other than those
// promised, never makes a bucket, and speaks plain HTTP only where it is told
// that it may.
package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/packhof/packhof/internal/download"
	"github.com/packhof/packhof/internal/problem"
)

// Config is how a Client reaches its bucket.
type Config struct {
	// Endpoint is "https://s3.example:9000"; without a scheme it means https.
	Endpoint string
	// Insecure allows an Endpoint with http.
	Insecure bool
	// CA is PEM, trusted beside the system's authorities; empty for none.
	CA []byte
	// Region is what requests are signed for; "" means us-east-1.
	Region string
	// VirtualHost puts the bucket into the host name, as Amazon wants it. MinIO
	// and Ceph take it from the path.
	VirtualHost bool

	Bucket string
	// Prefix is put before every key, with a slash between; "" for none.
	Prefix string

	AccessKey, SecretKey string

	// PartSize is how large the parts of a large object are, in bytes, at least
	// 5 MiB; 0 means 16 MiB. Larger objects are sent in more, then in larger
	// parts.
	PartSize int64
	// InFlight is how many parts one Put holds in memory; 0 means 3.
	InFlight int

	// UserAgent is the program and its version.
	UserAgent string
	// Sleep waits between attempts; nil means a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Stall is how long a transfer may make no progress in either direction; 0
	// means a minute.
	Stall time.Duration
}

// Client works on one bucket. It is safe for use by several goroutines.
type Client struct {
	config    Config
	host      string // for messages
	prefix    string // "" or ends with a slash
	api       minio.Core
	transport *http.Transport
	copyLimit int64 // objects above it are copied in parts of this size
}

const (
	defaultPartSize = 16 << 20
	minPartSize     = 5 << 20 // S3 takes smaller ones only at the end
	defaultInFlight = 3
	defaultRegion   = "us-east-1"
	maxServerCopy   = 5 << 30
)

// New makes a client and asks nothing of the server; Check does.
func New(config Config) (*Client, error) {
	config = withDefaults(config)
	endpoint, err := config.check()
	if err != nil {
		return nil, err
	}
	prefix, err := checkPrefix(config.Prefix)
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(config.CA, endpoint.Host)
	if err != nil {
		return nil, err
	}
	lookup := minio.BucketLookupPath
	if config.VirtualHost {
		lookup = minio.BucketLookupDNS
	}
	api, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(config.AccessKey, config.SecretKey, ""),
		Secure: endpoint.Scheme == "https",
		Transport: download.Bound(&watch{
			inner: transport, stall: config.Stall, userAgent: config.UserAgent,
		}, config.Stall),
		Region:       config.Region,
		BucketLookup: lookup,
		// Attempts are counted here, where it is known what may be sent again.
		MaxRetries: 1,
	})
	if err != nil {
		return nil, badConfig("the endpoint %q: %w", problem.Address(config.Endpoint), problem.Foreign(err))
	}
	return &Client{
		config: config, host: endpoint.Host, prefix: prefix, api: *api, transport: transport, copyLimit: maxServerCopy,
	}, nil
}

// CloseIdleConnections closes the connections that nothing uses.
func (c *Client) CloseIdleConnections() { c.transport.CloseIdleConnections() }

func withDefaults(config Config) Config {
	if config.Region == "" {
		config.Region = defaultRegion
	}
	if config.PartSize == 0 {
		config.PartSize = defaultPartSize
	}
	if config.InFlight == 0 {
		config.InFlight = defaultInFlight
	}
	if config.Sleep == nil {
		config.Sleep = download.Sleep
	}
	if config.Stall == 0 {
		config.Stall = time.Minute
	}
	return config
}

// check returns the endpoint, of which only scheme and host count.
func (c Config) check() (*url.URL, error) {
	text := c.Endpoint
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	endpoint, err := url.Parse(text)
	switch {
	case err != nil || endpoint.Host == "" || endpoint.User != nil,
		endpoint.Scheme != "https" && endpoint.Scheme != "http",
		strings.Trim(endpoint.Path, "/") != "" || endpoint.RawQuery != "" || endpoint.Fragment != "":
		return nil, badConfig("%.200q is no endpoint of an S3 server", problem.Address(c.Endpoint)).
			Hint("write scheme, host and port alone, such as https://s3.example:9000")
	case endpoint.Scheme == "http" && !c.Insecure:
		return nil, problem.New("s3/plain-http", "%s speaks HTTP without TLS, which is not allowed for it", endpoint.Host).
			Hint("use https, or allow plain HTTP for this server, if the network between is trusted")
	case c.AccessKey == "" || c.SecretKey == "":
		return nil, badConfig("no access key or no secret key for %s", endpoint.Host)
	case c.Bucket == "":
		return nil, badConfig("no bucket at %s", endpoint.Host)
	case c.PartSize < minPartSize || c.PartSize > maxPartSize:
		return nil, badConfig("a part size of %d bytes", c.PartSize).With("least: 5 MiB", "most:  5 GiB")
	case c.InFlight < 0 || c.Stall < 0:
		return nil, badConfig("%d parts at a time, a stall of %s", c.InFlight, c.Stall)
	}
	return endpoint, nil
}

func badConfig(format string, args ...any) *problem.Problem {
	return problem.New("s3/config", "settings of an S3 server: "+format, args...)
}

func newTransport(ca []byte, host string) (*http.Transport, error) {
	var pool *x509.CertPool
	if len(ca) > 0 {
		var err error
		if pool, err = x509.SystemCertPool(); err != nil {
			return nil, badConfig("the system's certificate authorities cannot be read: %w", err)
		}
		if !pool.AppendCertsFromPEM(ca) {
			return nil, badConfig("the authority for %s is no PEM certificate", host)
		}
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 15 * time.Second,
		// Parts are large; the default of 4 KiB would be thousands of calls each.
		WriteBufferSize: 256 << 10,
		ReadBufferSize:  64 << 10,
		// What is read is hashed: nobody on the way may unpack it.
		DisableCompression: true,
	}, nil
}
