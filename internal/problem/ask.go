package problem

import "errors"

// CodeOf gives the stable code of an error, and "" for one that has none.
func CodeOf(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}

// EvidenceOf gives the lines of evidence of an error; the caller must not
// change them.
func EvidenceOf(err error) []string {
	var evident interface{ Evidence() []string }
	if errors.As(err, &evident) {
		return evident.Evidence()
	}
	return nil
}

// RemedyOf gives the one remedy of an error, and "" where it names none.
func RemedyOf(err error) string {
	var remedied interface{ Remedy() string }
	if errors.As(err, &remedied) {
		return remedied.Remedy()
	}
	return ""
}
