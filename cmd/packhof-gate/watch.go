package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// watch tells cheaply that nothing can be new at some places: that nothing there
// has another name, size, time or number than it had.
type watch struct {
	names []string
	last  string
	known bool // last is what was there, and it could be read
}

// changed tells that the places have to be looked at. What comes while somebody
// looks is a change as well.
func (w *watch) changed() bool {
	now := placeMarks(w.names)
	same := w.known && now == w.last
	w.last, w.known = now, true
	return !same
}

// again has the places looked at once more, whatever they look like: what could
// not be read may be given another time.
func (w *watch) again() { w.known = false }

// mostMarks is how many files of a folder are told apart: the first in the order of
// the folder itself. One more than bundle.Find looks at, which refuses a larger
// folder whatever has changed in it.
const mostMarks = 10_001

// placeMarks describes what is at some places.
func placeMarks(names []string) string {
	var lines []string
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			lines = append(lines, name+": "+err.Error())
		case info.IsDir():
			lines = append(lines, folderMarks(name)...)
		default:
			lines = append(lines, markOf(name, info))
		}
	}
	return strings.Join(lines, "\n")
}

func folderMarks(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return []string{dir + ": " + err.Error()}
	}
	entries, err := d.ReadDir(mostMarks)
	if err == io.EOF {
		err = nil
	}
	lines := []string{dir}
	if err = errors.Join(err, d.Close()); err != nil {
		lines = append(lines, err.Error())
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			lines = append(lines, markOf(filepath.Join(dir, e.Name()), info))
		} else {
			lines = append(lines, fmt.Sprintf("%s: %v", e.Name(), err))
		}
	}
	slices.Sort(lines[1:])
	return lines
}
