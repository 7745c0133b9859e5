package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWatch: places are looked at only when something there is another file than
// it was.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a.tar", "one")
	put("b.tar", "two")
	w := watch{names: []string{dir, in("single.tar")}}
	if !w.changed() {
		t.Error("nothing was known, and nothing is new")
	}
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"another file", func() error { put("c.tar", ""); return nil }},
		{"a longer one", func() error { put("c.tar", "more"); return nil }},
		{"a later one", func() error { return os.Chtimes(in("c.tar"), noon, noon) }},
		{"another one of the same looks", func() error {
			put("d.tar", "lore")
			if err := os.Chtimes(in("d.tar"), noon, noon); err != nil {
				return err
			}
			w.changed()
			return os.Rename(in("d.tar"), in("c.tar"))
		}},
		{"two that change names", func() error {
			return errors.Join(os.Rename(in("a.tar"), in("x.tar")), os.Rename(in("b.tar"), in("a.tar")), os.Rename(in("x.tar"), in("b.tar")))
		}},
		{"one is gone", func() error { return os.Remove(in("b.tar")) }},
		{"a place that was not there", func() error { put("single.tar", ""); return nil }},
		{"nothing is there", func() error { return os.RemoveAll(dir) }},
	} {
		if w.changed() {
			t.Errorf("before %s: something is new", c.name)
		}
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		if !w.changed() {
			t.Errorf("%s: nothing is new", c.name)
		}
	}
	w.again()
	if !w.changed() || w.changed() {
		t.Error("asked to look again, it does not do so once")
	}
}
