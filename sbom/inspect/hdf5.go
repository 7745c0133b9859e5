package inspect

import (
	"bytes"
	"errors"
	"io"
)

// hdf5 searches a file of HDF5 for a layer of Keras that is Python code: its
// configuration is JSON in an attribute, somewhere in the file. A full reader
// is not needed to see that the word is there.
func (s *scan) hdf5(f *source, at place) error {
	const overlap = 64 // more than the word takes with every letter escaped
	window := make([]byte, 0, 256<<10)
	for r := f.stream(0); ; {
		n, err := io.ReadFull(r, window[len(window):cap(window)])
		window = window[:len(window)+n]
		if hasLambda(window) {
			s.find(at, CodeLambda, "")
			return nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		window = append(window[:0], window[len(window)-overlap:]...)
	}
}

// hasLambda searches the JSON strings "Lambda" and "__lambda__", also behind
// the name of a package, each letter plain or escaped.
func hasLambda(b []byte) bool {
	for {
		i := bytes.IndexAny(b, `">`)
		if i < 0 {
			return false
		}
		b = b[i+1:]
		if beginsWithWord(b, `Lambda"`) || beginsWithWord(b, `__lambda__"`) {
			return true
		}
	}
}

func beginsWithWord(b []byte, word string) bool {
	for i := range len(word) {
		escaped := []byte{'\\', 'u', '0', '0', "0123456789abcdef"[word[i]>>4], "0123456789abcdef"[word[i]&15]}
		switch {
		case len(b) > 0 && b[0] == word[i]:
			b = b[1:]
		case len(b) >= 6 && word[i] != '"' && bytes.EqualFold(b[:6], escaped):
			b = b[6:]
		default:
			return false
		}
	}
	return true
}
