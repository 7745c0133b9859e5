package inspect

import (
	"bytes"
	"errors"
	"slices"
)

// headSize is the beginning by which a format is told.
const headSize = 4 << 10

// look says what a source is and finds what is in it.
func (s *scan) look(f *source, at place) (Format, error) {
	if f.size == 0 {
		s.remark(Empty, at)
		return Empty, nil
	}
	head, err := f.head(headSize)
	if err != nil {
		// Even the beginning is not there, or may not be read any more.
		return Unknown, s.settle(at, Unknown, err)
	}
	format := sniff(f, head)
	checked, err := s.check(f, format, head, at)
	if err := s.settle(at, checked, err); err != nil {
		return checked, err
	}
	checked, err = s.lookAgain(f, checked, at)
	if err != nil {
		return checked, err
	}
	if err := s.settle(at, checked, s.asTemplate(f, checked, at)); err != nil {
		return checked, err
	}
	s.remark(checked, at)
	return checked, nil
}

// check looks into a format. It may come to another one than was thought.
func (s *scan) check(f *source, format Format, head []byte, at place) (Format, error) {
	switch format {
	case Safetensors:
		return format, s.safetensors(f)
	case GGUF:
		return format, s.gguf(f, at)
	case Pickle:
		return format, s.pickles(f, 0, at)
	case Npy:
		return format, s.npy(f, at)
	case HDF5:
		return format, s.hdf5(f, at)
	case ONNX:
		return format, s.onnx(f, at)
	case Zip:
		return s.zip(f, at)
	case Tar:
		return format, s.tar(f.stream(0), f, at)
	case JSON:
		return s.json(f, at)
	case Gzip, XZ, Zstd, Bzip2, Zlib:
		return format, s.packed(f, format, at)
	case LZ4, SevenZip, RAR, Deb, RPM:
		s.unread(at, CodeOpaque, "archives of the format %s cannot be looked into here", format)
	case Unknown:
		if f.have > int64(len(head)) && isText(head) {
			return Text, nil
		}
	}
	return format, nil
}

// lookAgain finds what a file is besides: loaders of pickles and of zip
// archives take files whose beginning or end suits them, whatever the rest.
func (s *scan) lookAgain(f *source, format Format, at place) (Format, error) {
	format, err := s.pickleBesides(f, format, at)
	if err != nil || f.have != f.size || slices.Contains([]Format{TorchZip, Npz, Keras, Zip}, format) {
		return format, err
	}
	there, err := s.endsInZip(f, at)
	if err != nil || !there {
		return format, s.settle(at, format, err)
	}
	inner, err := s.zip(f, at)
	if format == Unknown {
		format = inner
	}
	return format, s.settle(at, Zip, err)
}

func (s *scan) pickleBesides(f *source, format Format, at place) (Format, error) {
	if format == Pickle {
		return format, nil
	}
	w := s.walk(f, 0)
	if s.failed != nil {
		return format, s.failed
	}
	if !w.convincing(f.size) {
		bound := w.bound()
		if errors.Is(bound, errTooMany) && slices.Contains([]Format{Text, JSON, Script}, format) {
			format = Unknown // no text goes so far as a pickle
		}
		if bound != nil {
			return format, s.settle(at, format, bound)
		}
		return format, nil
	}
	if slices.Contains([]Format{Text, JSON, Unknown, Script}, format) {
		format = Pickle
	}
	return format, s.settle(at, Pickle, s.pickles(f, 0, at))
}

// remark adds the findings that follow from the format alone, and from the
// name.
func (s *scan) remark(format Format, at place) {
	switch format {
	case Pickle:
		s.find(at, CodePickle, "")
	case ELF, PE, MachO, JavaClass, Wasm, PythonCode:
		s.find(at, CodeExecutable, "%s", format)
	case Script:
		s.find(at, CodeScript, "")
	case LFSStub:
		s.find(at, CodeStub, "the content itself is not here")
	}
	s.remarkName(format, at)
}

func (s *scan) remarkName(format Format, at place) {
	says, mismatch := compare(at.name, format)
	if says == pythonSource && (format == Text || format == JSON) {
		s.find(at, CodePython, "")
	}
	if at.depth == 0 && s.report.AsTemplate != "" && isTemplate(at.name) {
		s.find(at, CodeTemplate, "%s", s.report.AsTemplate)
	}
	if mismatch {
		s.find(at, CodeMismatch, "the name says %s, the content is %s", says, format)
	}
}

func isArchive(f Format) bool {
	return slices.Contains([]Format{Zip, TorchZip, Npz, Keras, Tar, Gzip, XZ, Zstd, Bzip2, Zlib}, f)
}

// isText tells whether a beginning is text: UTF-8 without control characters,
// or UTF-16 by its mark. A character may be cut off at the end.
func isText(b []byte) bool {
	if bytes.HasPrefix(b, []byte{0xff, 0xfe}) || bytes.HasPrefix(b, []byte{0xfe, 0xff}) {
		return len(b)%2 == 0
	}
	for cut := 0; cut < 4 && cut <= len(b); cut++ {
		if validText(b[:len(b)-cut]) {
			return len(b) > cut
		}
		if len(b) < headSize {
			return false // the end of the file, where nothing is cut off
		}
	}
	return false
}
