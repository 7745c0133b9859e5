package main

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// small is an image of about 100 KiB whose second layer is a payload.
func small(seed string) testkit.ImageSpec {
	return testkit.ImageSpec{Seed: seed, PayloadSize: 100_000}
}

// push puts an image into a registry of the kit.
func (l *lab) push(r *testkit.Registry, name string, spec testkit.ImageSpec) v1.Hash {
	l.T.Helper()
	image, err := testkit.Image(spec)
	if err != nil {
		l.T.Fatal(err)
	}
	digest, err := r.PushImage(l.T.Context(), name, image)
	if err != nil {
		l.T.Fatal(err)
	}
	return digest
}

// pushIndex puts an image for amd64 and arm64 there.
func (l *lab) pushIndex(r *testkit.Registry, name string, spec testkit.ImageSpec, archs ...string) v1.Hash {
	l.T.Helper()
	index, err := testkit.MultiArch(spec, archs...)
	if err != nil {
		l.T.Fatal(err)
	}
	digest, err := r.PushIndex(l.T.Context(), name, index)
	if err != nil {
		l.T.Fatal(err)
	}
	return digest
}

// wants makes packhof.yaml carry one image of a registry, which it may speak
// to as the registry needs it.
func (l *lab) wants(r *testkit.Registry, reference string, more ...string) {
	l.T.Helper()
	host := l.host(r.Host(), r.CAPEM())
	if r.CAPEM() == nil {
		host = l.host(r.Host(), nil, "plainHTTP: true")
	}
	lines := fmt.Sprintf("  - image: %s/%s\n", r.Host(), reference)
	for _, line := range more {
		lines += "    " + line + "\n"
	}
	l.artifacts(lines, host)
}

// fromRegistry gives a lab whose one artifact is the image team/app:1.0 of a
// registry, and lets then spoil it.
func fromRegistry(then func(*lab, *testkit.Registry), opts ...testkit.Option) func(*lab) {
	return func(l *lab) {
		r := testkit.NewRegistry(l.T, opts...)
		l.push(r, "team/app:1.0", small("app"))
		l.wants(r, "team/app:1.0")
		then(l, r)
	}
}

func withFault(f testkit.Fault) func(*lab, *testkit.Registry) {
	return func(_ *lab, r *testkit.Registry) { r.SetFault(f) }
}

// planned plans before anything is spoilt.
func planned(then func(*lab, *testkit.Registry)) func(*lab, *testkit.Registry) {
	return func(l *lab, r *testkit.Registry) { l.mustRun("plan"); then(l, r) }
}

func registryFailures() []failure {
	bad := func(name string, given func(*lab), exit int, code string, run ...string) failure {
		return failure{name: "registry: " + name, given: given, run: run, exit: exit, code: code}
	}
	refuse := func(status int) func(*lab, *testkit.Registry) {
		return withFault(testkit.Refuse(testkit.Manifests, status, ""))
	}
	return []failure{
		bad("unreachable", func(l *lab) { l.artifacts("  - image: " + closedPort(l) + "/team/app:1.0") }, 20, "registry/unreachable", "plan"),
		bad("unreachable, to export", fromRegistry(planned(func(l *lab, r *testkit.Registry) { l.closeServer(r) })), 20, "registry/unreachable"),
		bad("no such tag", fromRegistry(func(l *lab, r *testkit.Registry) { l.wants(r, "team/app:2.0") }), 1, "registry/not-found", "plan"),
		bad("no such repository", fromRegistry(func(l *lab, r *testkit.Registry) { l.wants(r, "team/other:1.0") }), 1, "registry/not-found", "plan"),
		bad("no such digest", fromRegistry(func(l *lab, r *testkit.Registry) {
			l.wants(r, "team/app@"+cas.DigestOf([]byte("nothing")).String())
		}), 1, "registry/not-found", "plan"),
		bad("wants a log-in", fromRegistry(func(*lab, *testkit.Registry) {}, testkit.WithBasicAuth("user", "secret")), 4, "registry/auth-required", "plan"),
		bad("does not take the log-in", fromRegistry(func(l *lab, r *testkit.Registry) {
			l.dockerLogin(r.Host(), "user", "wrong")
		}, testkit.WithBasicAuth("user", "secret")), 4, "registry/auth-required", "plan"),
		bad("forbids", fromRegistry(refuse(http.StatusForbidden)), 4, "registry/forbidden", "plan"),
		bad("is broken", fromRegistry(refuse(http.StatusServiceUnavailable)), 20, "registry/failed", "plan"),
		bad("has had enough", fromRegistry(refuse(http.StatusTooManyRequests)), 20, "registry/rate-limited", "plan"),
		bad("docker's file is broken", fromRegistry(func(l *lab, _ *testkit.Registry) {
			l.Write("docker/config.json", "{")
		}), 4, "registry/credentials", "plan"),
		bad("unknown authority", fromRegistry(func(l *lab, r *testkit.Registry) {
			l.artifacts("  - image: " + r.Host() + "/team/app:1.0")
		}, testkit.WithTLS()), 20, "registry/tls-unknown-authority", "plan"),
		bad("without tls", fromRegistry(func(l *lab, r *testkit.Registry) {
			l.artifacts("  - image: " + r.Host() + "/team/app:1.0")
		}), 2, "registry/plain-http", "plan"),
		bad("other manifest than its digest", fromRegistry(func(l *lab, r *testkit.Registry) {
			digest := l.push(r, "team/app:1.0", small("app"))
			l.wants(r, "team/app@"+digest.String())
			r.SetFault(testkit.Corrupt(testkit.Manifests))
		}), 11, "content/corrupt", "plan"),
		bad("wrong bytes of the right size", fromRegistry(planned(withFault(testkit.Corrupt(testkit.Blobs)))), 11, "content/corrupt"),
		bad("download breaks off", fromRegistry(planned(withFault(testkit.CutAfter(testkit.Blobs, 100)))), 20, "registry/interrupted"),
		bad("tag has moved", fromRegistry(planned(func(l *lab, r *testkit.Registry) {
			l.push(r, "team/app:1.0", small("another"))
		})), 1, "source/moved"),
		bad("image has gone", fromRegistry(planned(withFault(testkit.Refuse(testkit.Everything, http.StatusNotFound, "")))), 1, "registry/not-found"),
		bad("page instead of a manifest", fromRegistry(withFault(testkit.Answer(webPage))), 11, "oci/malformed", "plan"),
	}
}

func webPage(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Type", "text/html")
	_, err := w.Write([]byte("<html>please accept our terms</html>"))
	return err == nil
}

func platformFailures() []failure {
	two := func(platforms string) func(*lab) {
		return func(l *lab) {
			r := testkit.NewRegistry(l.T)
			l.pushIndex(r, "team/app:1.0", small("app"))
			l.wants(r, "team/app:1.0", "platforms: "+platforms)
		}
	}
	return []failure{
		{name: "platform: not there", given: two("[linux/s390x]"), run: planArgs, exit: 1, code: "source/platform-missing"},
		{name: "platform: one of two not there", given: two("[linux/amd64, linux/s390x]"), run: planArgs, exit: 1, code: "source/platform-missing"},
		{name: "platform: of the one image", run: planArgs, exit: 1, code: "source/platform-missing", given: fromRegistry(func(l *lab, r *testkit.Registry) {
			l.wants(r, "team/app:1.0", "platforms: [linux/arm64]")
		})},
	}
}

// file is what the web server of fromWeb holds.
var file = testkit.Bytes("file", 100_000)

// fromWeb gives a lab whose one artifact is a file behind https, and lets
// then spoil it.
func fromWeb(then func(*lab, *testkit.FileServer), opts ...testkit.Option) func(*lab) {
	return func(l *lab) {
		s := testkit.NewFileServer(l.T, fstest.MapFS{"license-server.run": {Data: file}}, opts...)
		l.wantsFile(s, s.URL()+"/license-server.run", cas.DigestOf(file))
		then(l, s)
	}
}

func (l *lab) wantsFile(s *testkit.FileServer, url string, digest cas.Digest) {
	l.T.Helper()
	l.artifacts(fmt.Sprintf("  - name: license-server\n    version: \"1\"\n    url: %s\n    sha256: %s", url, digest.Hex()), l.host(s.Host(), s.CAPEM()))
}

func webFailures() []failure {
	bad := func(name string, given func(*lab), exit int, code string, run ...string) failure {
		return failure{name: "https: " + name, given: given, run: run, exit: exit, code: code}
	}
	fault := func(f testkit.Fault) func(*lab, *testkit.FileServer) {
		return func(_ *lab, s *testkit.FileServer) { s.SetFault(f) }
	}
	planned := func(then func(*lab, *testkit.FileServer)) func(*lab, *testkit.FileServer) {
		return func(l *lab, s *testkit.FileServer) { l.mustRun("plan"); then(l, s) }
	}
	everything := func(status int) testkit.Fault { return testkit.Refuse(testkit.Everything, status, "") }
	return []failure{
		bad("unreachable", fromWeb(func(l *lab, s *testkit.FileServer) { l.closeServer(s) }), 20, "source/unreachable", "plan"),
		bad("not there", fromWeb(func(l *lab, s *testkit.FileServer) {
			l.wantsFile(s, s.URL()+"/other.run", cas.DigestOf(file))
		}), 1, "source/not-found", "plan"),
		bad("wants a log-in", fromWeb(func(*lab, *testkit.FileServer) {}, testkit.WithBasicAuth("user", "secret")), 4, "auth/required", "plan"),
		bad("is broken", fromWeb(fault(everything(http.StatusInternalServerError))), 20, "source/failed", "plan"),
		bad("has had enough", fromWeb(fault(everything(http.StatusTooManyRequests))), 20, "source/rate-limited", "plan"),
		bad("unknown authority", fromWeb(func(l *lab, s *testkit.FileServer) {
			l.replace("packhof.yaml", "hosts:", "note: none\nhosts:\n  other.example: {}\n#")
			l.replace("packhof.yaml", "  "+s.Host(), "#")
			l.replace("packhof.yaml", "    ca:", "#")
		}), 20, "source/tls-unknown-authority", "plan"),
		bad("without tls", fromWeb(func(l *lab, s *testkit.FileServer) {
			l.replace("packhof.yaml", "https://", "http://")
		}), 2, "source/plain-http", "plan"),
		bad("sent on to http", fromWeb(func(_ *lab, s *testkit.FileServer) {
			s.SetFault(testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, "http://"+s.Host()+"/license-server.run", http.StatusFound)
				return true
			}))
		}), 2, "source/plain-http", "plan"),
		bad("another file", fromWeb(func(l *lab, s *testkit.FileServer) {
			l.wantsFile(s, s.URL()+"/license-server.run", cas.DigestOf([]byte("another")))
			l.mustRun("plan")
		}), 11, "source/wrong-content"),
		bad("wrong bytes of the right size", fromWeb(planned(fault(testkit.Corrupt(testkit.Everything)))), 11, "source/wrong-content"),
		bad("download breaks off", fromWeb(planned(fault(testkit.CutAfter(testkit.Everything, 1000)))), 20, "source/unreachable"),
		bad("not there any more", fromWeb(planned(fault(everything(http.StatusGone)))), 1, "source/not-found"),
	}
}

// dockerLogin writes what "docker login" does.
func (l *lab) dockerLogin(host, user, password string) {
	l.T.Helper()
	if err := writeDockerConfig(l.Path("docker"), host, user, password); err != nil {
		l.T.Fatal(err)
	}
}

func writeDockerConfig(dir, host, user, password string) error {
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, host, auth), 0o600)
}

// closedPort gives an address at which nobody listens.
func closedPort(l *lab) string {
	return fmt.Sprintf("127.0.0.1:%d", l.holdPort(0))
}

// holdPort takes a port without listening at it, so that connections are
// refused and no other test gets it meanwhile.
func (l *lab) holdPort(port int) int {
	l.T.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		l.T.Fatal(err)
	}
	l.T.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		l.T.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		l.T.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		l.T.Fatal(err)
	}
	return name.(*syscall.SockaddrInet4).Port
}

// closeServer ends a server, and keeps its port from others.
func (l *lab) closeServer(s interface {
	Close() error
	Host() string
}) {
	l.T.Helper()
	_, text, err := net.SplitHostPort(s.Host())
	if err != nil {
		l.T.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		l.T.Fatal(err)
	}
	if err := s.Close(); err != nil {
		l.T.Fatal(err)
	}
	l.holdPort(port)
}
