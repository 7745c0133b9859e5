package inspect

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// pythonSource is only ever what a name says: the content is text, or JSON
// with the cells of a notebook, which can also call a shell.
const pythonSource Format = "python"

// claim is what an ending of a name says, and what content it goes with.
type claim struct {
	says   Format
	allows []Format
}

// claims never changes; it is made when it is first asked for.
var claims = sync.OnceValue(makeClaims)

// makeClaims has the endings that say something. Not in it is what every tool
// uses for something else, such as ".bin".
func makeClaims() map[string]claim {
	all := map[string]claim{}
	add := func(says Format, allows []Format, endings ...string) {
		for _, e := range endings {
			all[e] = claim{says, append([]Format{says}, allows...)}
		}
	}
	packed := []Format{Gzip, XZ, Zstd, Bzip2, Zlib, LZ4, Unknown}
	zips := []Format{TorchZip, Npz, Keras}
	for _, f := range []Format{Safetensors, GGUF, Npy, Npz, Keras, ONNX, Tar, LZ4, Deb, RPM, PNG, GIF, PDF, Parquet} {
		add(f, nil, "."+string(f))
	}
	add(Pickle, packed, ".pkl", ".pickle", ".joblib")
	add(TorchZip, []Format{Pickle, Tar, Zip}, ".pt", ".pth", ".ckpt")
	add(HDF5, nil, ".h5", ".hdf5")
	add(JSON, []Format{Text}, ".json")
	add(Zip, zips, ".zip", ".whl", ".jar")
	add(Gzip, nil, ".gz", ".tgz")
	add(XZ, nil, ".xz", ".txz")
	add(Zstd, nil, ".zst")
	add(Bzip2, nil, ".bz2")
	add(SevenZip, nil, ".7z")
	add(ELF, nil, ".so")
	add(PE, nil, ".exe", ".dll")
	add(JPEG, nil, ".jpg", ".jpeg")
	add(pythonSource, []Format{Text, Script, JSON, Empty}, ".py", ".pyw", ".ipynb")
	add(Script, []Format{Text}, ".sh")
	add(Text, []Format{JSON, Script, Empty}, ".txt", ".md", ".csv", ".tsv", ".yaml", ".yml", ".toml", ".jsonl", ".jinja", ".jinja2", ".j2", ".html", ".xml")
	return all
}

// compare says what a name suggests and whether the content is something
// else. That something is unknown contradicts every name that says something.
func compare(name string, is Format) (says Format, mismatch bool) {
	c, known := claims()[strings.ToLower(path.Ext(name))]
	if !known {
		return "", false
	}
	return c.says, !slices.Contains(c.allows, is)
}
