package problem

import "errors"

// FieldError says which field of a configuration file is wrong. Path is as in
// YAML, such as artifacts[2].platforms[0]; whoever has the file adds the line.
type FieldError struct {
	Path, What, Fix string
}

// Field makes a FieldError: which field, what is wrong with it, and what to
// write instead.
func Field(path, what, fix string) *FieldError { return &FieldError{Path: path, What: what, Fix: fix} }

func (e *FieldError) Error() string { return e.Path + ": " + e.What }

// Code is the stable code of this error.
func (e *FieldError) Code() string { return "config/invalid" }

// Remedy says what to write instead.
func (e *FieldError) Remedy() string { return e.Fix }

// maxFields is how many wrong fields are kept: more than anybody reads.
const maxFields = 100

// Fields collects the wrong fields of a file, so that all of them can be
// mended at once. The zero value is none.
type Fields struct{ wrong []error }

// Add adds one.
func (f *Fields) Add(path, what, fix string) { f.Join(Field(path, what, fix)) }

// Join adds an error, if it is one.
func (f *Fields) Join(err error) {
	if err != nil && len(f.wrong) < maxFields {
		f.wrong = append(f.wrong, err)
	}
}

// Err is nil if there are none, the error itself if there is one, and else
// all of them joined.
func (f *Fields) Err() error {
	if len(f.wrong) == 1 {
		return f.wrong[0]
	}
	return errors.Join(f.wrong...)
}
