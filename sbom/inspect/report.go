package inspect

import "strings"

// Format is what a file is.
type Format string

const (
	Empty       Format = "empty"
	Unknown     Format = "unknown"
	Safetensors Format = "safetensors"
	GGUF        Format = "gguf"
	Pickle      Format = "pickle"    // bare, of any protocol; also the older form of torch files
	TorchZip    Format = "torch-zip" // a zip archive with a data.pkl
	Npy         Format = "npy"
	Npz         Format = "npz"
	HDF5        Format = "hdf5"
	Keras       Format = "keras" // the zip archive of Keras 3
	ONNX        Format = "onnx"
	Zip         Format = "zip"
	Tar         Format = "tar"
	Gzip        Format = "gzip"
	XZ          Format = "xz"
	Zstd        Format = "zstd"
	Bzip2       Format = "bzip2"
	Zlib        Format = "zlib"
	LZ4         Format = "lz4"
	SevenZip    Format = "7z"
	RAR         Format = "rar"
	Deb         Format = "deb" // or another archive of ar
	RPM         Format = "rpm"
	ELF         Format = "elf"
	PE          Format = "pe"
	MachO       Format = "macho"
	JavaClass   Format = "java-class"
	Wasm        Format = "wasm"
	PythonCode  Format = "python-bytecode"
	Script      Format = "script" // begins with #!
	JSON        Format = "json"
	Text        Format = "text"
	LFSStub     Format = "git-lfs-stub" // a pointer to content that is not here
	PNG         Format = "png"
	JPEG        Format = "jpeg"
	GIF         Format = "gif"
	RIFF        Format = "riff" // WebP, WAV, AVI
	PDF         Format = "pdf"
	Parquet     Format = "parquet"
	Arrow       Format = "arrow"
	SQLite      Format = "sqlite"
)

// Codes of findings. "<format>.malformed" comes beside these, for what claims
// to be of a format and breaks its rules; it makes a file unreadable.
const (
	CodePickle         = "pickle.content"      // there is a pickle: loading it can run code
	CodeGlobal         = "pickle.global"       // a name that the pickle imports; "?" for a part computed at load
	CodeExtension      = "pickle.extension"    // a name by number, from a table of the loading program
	CodePickleTrailing = "pickle.trailing"     // bytes after the last pickle
	CodeZipPrefix      = "zip.prefix"          // bytes before the archive: it is something else as well
	CodeZipTrailing    = "zip.trailing"        // bytes after the archive
	CodeZipMismatch    = "zip.mismatch"        // the directories contradict each other
	CodeZipHidden      = "zip.hidden"          // bytes that no entry lists
	CodeZipDuplicate   = "zip.duplicate"       // one name twice
	CodeZipEncrypted   = "zip.encrypted"       // an entry says that it is encrypted
	CodeZipCRC         = "zip.crc"             // an entry has another checksum than announced
	CodeArchiveLimit   = "archive.limit"       // not all of an archive was looked into
	CodeFileLimit      = "file.limit"          // not all of a file was looked into
	CodeArchivePath    = "archive.path"        // an entry whose name leads out of the archive's folder
	CodeArchiveSpecial = "archive.special"     // an entry that is a device, a pipe or a link that leads out
	CodeTrailing       = "archive.trailing"    // bytes after the end of a tar archive or of the last array of npy
	CodeOpaque         = "content.opaque"      // a format that cannot be looked into here
	CodeShort          = "content.short"       // fewer bytes than announced
	CodeExecutable     = "executable.content"  // machine code or byte code
	CodeScript         = "script.content"      // begins with #!
	CodePython         = "python.source"       // text whose name says that it is Python, or a notebook
	CodeStub           = "lfs.stub"            // a pointer of Git LFS instead of the content
	CodeMismatch       = "name.mismatch"       // the name suggests another format than the content has
	CodeLambda         = "keras.lambda"        // a layer or function that is Python code
	CodeTorchScript    = "torch.code"          // code in a torch archive
	CodeRemoteCode     = "model.remote-code"   // auto_map: the model wants code of its repository run
	CodeTemplate       = "template.suspicious" // a chat template that reaches for Python's inner parts
	CodeExternalPath   = "onnx.external-path"  // external data outside the model's folder
	CodeCustomDomain   = "onnx.custom-domain"  // operators that need a library of somebody
	codeMalformed      = ".malformed"
)

// Finding is something noteworthy in a file. One finding is listed once.
type Finding struct {
	Code   string `json:"code"`
	Detail string `json:"detail"` // quotes the file where needed, at most 300 bytes
	Path   string `json:"path"`   // of the member within the file; "" for the file itself
}

// Report is what a file is. Findings are in the order of their discovery.
type Report struct {
	Format     Format    `json:"format"`
	NameSays   Format    `json:"nameSays"` // what the name suggests; "" if nothing
	Mismatch   bool      `json:"mismatch"` // name and content contradict each other
	Findings   []Finding `json:"findings"` // never nil
	Unreadable bool      `json:"unreadable"`
	Reason     string    `json:"reason"`     // the first thing that could not be looked into, and why
	AsTemplate string    `json:"asTemplate"` // what would be suspicious if the name said that it is a template; "" if nothing
}

// Has tells whether there is a finding of a code, at whatever depth.
func (r Report) Has(code string) bool {
	for _, f := range r.Findings {
		if f.Code == code {
			return true
		}
	}
	return false
}

// Named is the report as it would be under another name: one content can be
// in a bundle under several. It changes nothing in r.
func (r Report) Named(name string) Report {
	s := &scan{limits: Limits{Findings: len(r.Findings) + 3}, seen: map[Finding]bool{}, report: r}
	s.report.Findings = []Finding{}
	for _, f := range r.Findings {
		byName := f.Code == CodeMismatch || f.Code == CodePython || f.Code == CodeTemplate && f.Detail == r.AsTemplate
		if f.Path != "" || !byName {
			s.report.Findings = append(s.report.Findings, f)
		}
	}
	s.remarkName(r.Format, place{name: name})
	s.report.NameSays, s.report.Mismatch = compare(name, r.Format)
	return s.report
}

// Hinders tells whether a finding of a code makes its file unreadable.
func Hinders(code string) bool {
	switch code {
	case CodeArchiveLimit, CodeFileLimit, CodeOpaque, CodeShort, CodeZipEncrypted:
		return true
	}
	return strings.HasSuffix(code, codeMalformed)
}
