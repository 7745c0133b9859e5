package files_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/mirror/files"
)

// meddler is a Progress that does something at every read.
type meddler struct {
	mu sync.Mutex
	do func()
}

func (m *meddler) Start(string, int64) mirror.Item { return m }
func (m *meddler) Done(error)                      {}
func (m *meddler) Advance(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > 0 && m.do != nil {
		m.do()
	}
}

// TestSourceFileChangesWhileRead: a file that grows without end, is cut, or is
// written to between two reads gives neither a lock nor a blob, and the store
// keeps nothing of it.
func TestSourceFileChangesWhileRead(t *testing.T) {
	content := testkit.Bytes("log", 3<<20)
	for what, meddle := range map[string]func(path string) error{
		"grows": func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Write(content[:512<<10])
			return err
		},
		"shrinks": func(path string) error { return os.Truncate(path, 100) },
		"is emptied and written anew": func(path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte("x"), len(content)), 0o644)
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "tree", "grows.log")
			m := &meddler{}
			s, err := files.New(dir, nil, m)
			if err != nil {
				t.Fatal(err)
			}
			store := newStore(t)
			put(t, path, content)
			pinned, err := s.Resolve(t.Context(), request("tree"), store)
			if err != nil {
				t.Fatal(err)
			}
			m.do = func() {
				if err := meddle(path); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Resolve(t.Context(), request("tree"), store); problem.CodeOf(err) != "source/changing" {
				t.Errorf("while it was planned: %v", err)
			}
			put(t, path, content)
			// What grows behind the end that is locked is another file by then.
			if err := s.Fetch(t.Context(), pinned, store); problem.CodeOf(err) != "source/moved" {
				t.Errorf("while it was packed: %v", err)
			}
			if there, err := store.Has(cas.DigestOf(content), int64(len(content))); there || err != nil {
				t.Errorf("the store has it: %v, %v", there, err)
			}
			m.do = nil
			put(t, path, content)
			if err := s.Fetch(t.Context(), pinned, store); err != nil {
				t.Errorf("with its own bytes again: %v", err)
			}
		})
	}
}
