package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/packhof/packhof/internal/problem"
)

// socketName is the socket of a running serve, in the data directory.
const socketName = "gate.sock"

func (s *site) socketPath() string { return filepath.Join(s.dir, socketName) }

// peerKey is the context key of the peer's user name.
type peerKey struct{}

func withPeer(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, peerKey{}, name)
}

// peerOf names the user of the operating system who sent a request over the
// console, as the kernel says.
func peerOf(r *http.Request) string {
	name, _ := r.Context().Value(peerKey{}).(string)
	return name
}

// onlyPeers refuses requests of which nobody knows whose they are.
func onlyPeers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peerOf(r) == "" {
			http.Error(w, "nobody knows who asks", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// peerContext asks the kernel who is at the other end of a connection. Where
// it does not say, the context names nobody, and onlyPeers refuses.
func peerContext(ctx context.Context, c net.Conn) context.Context {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return ctx
	}
	var peer *unix.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		peer, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || asked != nil {
		return ctx
	}
	return withPeer(ctx, userName(peer.Uid))
}

// userName is the name of a user, or the number where it has none.
func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil && u.Username != "" {
		return u.Username
	}
	return id
}

// maxSocketPath is what the address of a socket has room for, in bytes.
const maxSocketPath = 107

// listenSocket makes the socket. Whoever calls it holds the gate's lock, so
// that a socket which is there already belongs to a serve that was killed.
func (s *site) listenSocket() (net.Listener, error) {
	path := s.socketPath()
	if len(path) > maxSocketPath {
		return nil, problem.New("serve/socket", "the path of the socket is longer than the system takes: %s", path).
			With(fmt.Sprintf("most:  %d bytes", maxSocketPath)).Hint("move the data directory to a shorter path, or name it from a folder near it, with --data")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// The mode is that of the folder's owner alone from the first moment on:
	// nobody else can come into the data directory.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make the socket %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// dialSocket connects to a running serve. A socket that nobody serves refuses.
func (s *site) dialSocket(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", s.socketPath())
}
