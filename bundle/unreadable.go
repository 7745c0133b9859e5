package bundle

import (
	"fmt"
	"io"
	"strings"
)

// UnreadableError says where a medium does not give the bytes of a volume.
// Nothing is known of them: they may be read another time, or from a copy.
type UnreadableError struct {
	Volume string // file name
	Entry  string // entry name; empty when it is not within one
	Offset int64  // byte of the volume
	Err    error  // what the system says
}

func (e *UnreadableError) Error() string {
	where := fmt.Sprintf("at byte %d", e.Offset)
	if e.Entry != "" {
		where = fmt.Sprintf("entry %.120q at byte %d", e.Entry, e.Offset)
	}
	return fmt.Sprintf("%s cannot be read: %s: %v", e.Volume, where, e.Err)
}

// Unwrap gives what the system says.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Code is the stable code of this error.
func (e *UnreadableError) Code() string { return "volume/unreadable" }

// Remedy says what helps.
func (e *UnreadableError) Remedy() string {
	return "put the medium in again and try once more; else copy the volume from its original again"
}

// named is a volume's file whose errors say which volume it is, and where.
type named struct {
	io.ReaderAt
	volume *volume
}

func (n *named) ReadAt(p []byte, at int64) (int, error) {
	read, err := n.ReaderAt.ReadAt(p, at)
	if err == nil || err == io.EOF || isStreamDamage(err) {
		return read, err
	}
	failed := &UnreadableError{Volume: n.volume.name, Offset: at + int64(read), Err: err}
	for _, e := range n.volume.entries {
		if e.offset-blockSize <= failed.Offset && failed.Offset < e.offset+e.size+padding(e.size) {
			failed.Entry = strings.ToValidUTF8(e.name, "?")
		}
	}
	return read, failed
}
