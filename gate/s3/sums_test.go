package s3

import (
	"slices"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/cas"
)

func TestSums(t *testing.T) {
	line := func(path string) string { return cas.DigestOf([]byte(path)).Hex() + "  " + path + "\n" }
	for name, c := range map[string]struct {
		text string
		good bool
	}{
		"none":           {"", true},
		"two":            {line("a") + line("b/c d"), true},
		"a star":         {line("*a"), true},
		"out of order":   {line("b") + line("a"), false},
		"twice":          {line("a") + line("a"), false},
		"climbing":       {line("../a"), false},
		"absolute":       {line("/a"), false},
		"no path":        {line(""), false},
		"no end":         {strings.TrimSuffix(line("a"), "\n"), false},
		"one space":      {strings.Replace(line("a"), "  ", " ", 1), false},
		"binary":         {strings.Replace(line("a"), "  ", " *", 1), false},
		"escaped":        {`\` + line(`a`), false},
		"upper case":     {strings.ToUpper(line("a")), false},
		"a short digest": {line("a")[1:], false},
		"an empty line":  {line("a") + "\n", false},
		"a page of XML":  {"<?xml version='1.0'?>\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseSums([]byte(c.text)); (err == nil) != c.good {
				t.Errorf("%v", err)
			}
		})
	}
}

func FuzzSums(f *testing.F) {
	f.Add([]byte(cas.DigestOf(nil).Hex() + "  a/b\n"))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseSums(b)
		if err != nil {
			return
		}
		var objects []object
		for path, digest := range list {
			objects = append(objects, object{path: path, digest: digest})
		}
		slices.SortFunc(objects, func(a, b object) int { return strings.Compare(a.path, b.path) })
		if again := formatSums(objects); string(again) != string(b) {
			t.Errorf("%q was read as %q", b, again)
		}
	})
}
