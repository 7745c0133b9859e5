package scan

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anchore/syft/syft/source"
	"github.com/anchore/syft/syft/source/directorysource"

	"github.com/packhof/packhof/sbom"
)

func openTree(request sbom.Request) (source.Source, error) {
	if err := checkTree(request.Dir, request.Files); err != nil {
		return nil, err
	}
	return directorysource.New(directorysource.Config{
		Path: request.Dir,
		Base: request.Dir, // paths in the document begin here
		// Without a name of its own syft derives identifiers from the path.
		Alias: source.Alias{Name: request.Subject.Name, Version: request.Subject.Digest},
	})
}

// checkTree makes sure that the directory holds the files of the request and
// nothing else. A symbolic link would lead syft out of it.
func checkTree(dir string, files []sbom.File) error {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return unlike(err, "%s is not a directory", dir)
	}
	missing := make(map[string]int64, len(files))
	for _, f := range files {
		missing[f.Path] = f.Size
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		size, wanted := missing[name]
		switch {
		case !info.Mode().IsRegular():
			return fmt.Errorf("%q is not a regular file", name)
		case !wanted:
			return fmt.Errorf("%q is not in the request", name)
		case info.Size() != size:
			return fmt.Errorf("%q has %d bytes, the request says %d", name, info.Size(), size)
		}
		delete(missing, name)
		return nil
	})
	if err != nil {
		return unlike(err, "tree")
	}
	for name := range missing {
		return unlike(nil, "tree: %q and %d more files of the request are missing", name, len(missing)-1)
	}
	return nil
}
