package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/packhof/packhof/internal/child"
)

// What every S3 server of the kit knows.
const (
	S3Bucket    = "packhof"
	S3Region    = "us-east-1"
	S3AccessKey = "packhof-test"
	S3SecretKey = "not a secret at all"
)

const (
	s3Memory   = 4 << 30 // bytes, before the kernel refuses
	s3Output   = 64 << 20
	s3Lifetime = time.Hour
	s3Start    = 30 * time.Second
	s3Look     = 5 * time.Millisecond
)

// S3 is versitygw, a real S3 server, which keeps objects as files. It listens
// on a unix socket; in front of it stands a server of the kit on 127.0.0.1,
// with HTTPS and the faults. It has one empty bucket, S3Bucket.
type S3 struct {
	*server
	dir   string // all that it keeps
	stop  context.CancelFunc
	ended chan error // has one, the reason
}

// StartS3 starts a server that runs until Close, or until this process ends in
// whatever way. program is the path of versitygw.
func StartS3(program string, opts ...Option) (*S3, error) {
	o := collect(opts)
	o.tls = true
	dir, err := os.MkdirTemp("", "testkit-s3-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the S3 server: %w", err)
	}
	s := &S3{dir: dir}
	if err := s.launch(program); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if s.server, err = serve(s.proxy(), o); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// NewS3 starts a server that runs until the end of the test.
func NewS3(t testing.TB, opts ...Option) *S3 {
	t.Helper()
	s, err := StartS3(Tool(t, "versitygw"), opts...)
	if err != nil {
		t.Fatalf("start S3 server: %v", err)
	}
	closeAtEnd(t, s.Close)
	return s
}

func (s *S3) socket() string { return filepath.Join(s.dir, "socket") }

// Files is the directory with the bucket's objects, each a file at the path
// that is its key. The server's own directories begin with ".sgwtmp".
func (s *S3) Files() string { return filepath.Join(s.dir, "objects", S3Bucket) }

func (s *S3) launch(program string) error {
	path, err := filepath.Abs(program)
	if err != nil {
		return fmt.Errorf("find %s: %w", program, err)
	}
	metadata, work := filepath.Join(s.dir, "metadata"), filepath.Join(s.dir, "work")
	for _, dir := range []string{s.Files(), metadata, work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make a directory for the S3 server: %w", err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.ended = stop, make(chan error, 1)
	go func() {
		_, err := child.Run(ctx, child.Spec{
			Path: path,
			// A file system without extended attributes will do: metadata have
			// their own directory.
			Args:      []string{"--quiet", "--port", s.socket(), "--region", S3Region, "posix", "--sidecar", metadata, filepath.Dir(s.Files())},
			Dir:       work,
			Env:       []string{"ROOT_ACCESS_KEY=" + S3AccessKey, "ROOT_SECRET_KEY=" + S3SecretKey},
			MaxOutput: s3Output,
			MaxData:   s3Memory,
			Timeout:   s3Lifetime,
		})
		if err == nil {
			err = errors.New("the S3 server ended by itself")
		}
		s.ended <- err
	}()
	if err := s.wait(ctx); err != nil {
		return errors.Join(err, s.end())
	}
	return nil
}

// wait returns when the server takes connections.
func (s *S3) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s3Start)
	defer cancel()
	look := time.NewTicker(s3Look)
	defer look.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", s.socket())
		if err == nil {
			return conn.Close()
		}
		select {
		case ended := <-s.ended:
			s.ended <- ended
			return fmt.Errorf("the S3 server does not start: %w", ended)
		case <-ctx.Done():
			return fmt.Errorf("the S3 server does not listen: %w", err)
		case <-look.C:
		}
	}
}

// proxy hands requests on as they are: the signature covers host, path and
// query.
func (s *S3) proxy() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "s3"
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", s.socket())
			},
			DisableCompression: true,
			DisableKeepAlives:  true, // nothing is left open when the server is stopped
		},
		ErrorLog: log.New(io.Discard, "", 0), // about clients that a test cuts off
	}
}

// Close ends the server; what it held is gone. It may be called again.
func (s *S3) Close() error {
	return errors.Join(s.server.Close(), s.end())
}

// end stops the server. That it ran until it was stopped is how it should be.
func (s *S3) end() error {
	s.stop()
	err := <-s.ended
	s.ended <- err
	if failure, ok := errors.AsType[*child.Error](err); ok && failure.Reason == child.Cancelled {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
