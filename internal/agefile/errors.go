package agefile

import "fmt"

// DamagedError says where a stream is not what its writer made.
type DamagedError struct {
	Offset int64 // byte of the stream
	What   string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the age stream is damaged at byte %d: %s", e.Offset, e.What)
}

// ForOthersError says that no identity fits a stream.
type ForOthersError struct {
	Recipients int // of the stream
}

func (e *ForOthersError) Error() string {
	return fmt.Sprintf("the age stream is for %d others", e.Recipients)
}

// KeyError says that text is no recipient or no identity. It never repeats the
// text, which may be secret.
type KeyError struct{ What string }

func (e *KeyError) Error() string { return e.What }
