package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// trees is a gate that has released the tree "many", of files with a blob of
// their own, and the tree "packed", of as many in a pack.
func trees(t *testing.T, many int) (*lab, *testkit.Forged) {
	t.Helper()
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	content := testkit.Bytes("content", 40)
	digest := f.Content.Add(content)
	list, inPack := []bundle.File{}, map[string][]byte{}
	for i := range many {
		path := fmt.Sprintf("folder/file-%07d", i)
		list = append(list, bundle.File{Path: path, Size: int64(len(content)), Digest: digest})
		inPack[path] = fmt.Append(nil, i)
	}
	f.AddTree(t, bundle.Dataset, "many", list)
	pack, x := testkit.PackOf(t, inPack)
	f.Content.Add(pack)
	f.AddPacked(t, bundle.Dataset, "packed", nil, pack, x.Encode())
	id := l.mustReceive(f).ID
	l.approve(id)
	l.mustRelease(id)
	return l, f
}

// TestFilesOfATreeArePaged lists trees a page at a time, of several sizes, and
// asks for files at the edges of what is proven together.
func TestFilesOfATreeArePaged(t *testing.T) {
	const many = 1000
	l, _ := trees(t, many)
	depot := l.gate.Depot()
	for _, name := range []string{"many", "packed"} {
		tree, err := depot.Tag(t.Context(), name, "1.0")
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range []int{1, 63, 64, 65, 300, many, many + 1} {
			if page == 1 && testing.Short() {
				continue
			}
			count, after := 0, ""
			for {
				files, err := depot.Files(t.Context(), tree, after, page)
				if err != nil || len(files) > page {
					t.Fatalf("%d files, %v", len(files), err)
				}
				for _, f := range files {
					if want := fmt.Sprintf("folder/file-%07d", count); f.Path != want {
						t.Fatalf("%s, pages of %d: %+v, want %s", name, page, f, want)
					}
					count++
				}
				if len(files) < page {
					break
				}
				after = files[len(files)-1].Path
			}
			if count != many {
				t.Errorf("%s, pages of %d: %d files", name, page, count)
			}
		}
		for _, i := range []int{0, 1, 63, 64, 127, 128, many - 1} {
			path := fmt.Sprintf("folder/file-%07d", i)
			if f, err := depot.File(t.Context(), name, "1.0", path); err != nil || f.Path != path {
				t.Errorf("%s: %+v, %v", path, f, err)
			}
		}
		for _, path := range []string{"a", "folder/file-0000063x", "z"} {
			if _, err := depot.File(t.Context(), name, "1.0", path); problem.CodeOf(err) != "depot/not-found" {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	tree, err := depot.Tag(t.Context(), "notes", "1.0")
	if err != nil {
		t.Fatal(err)
	}
	tree.Digest = bundle.Digest{1}
	if _, err := depot.Files(t.Context(), tree, "", 10); problem.CodeOf(err) != "depot/not-found" {
		t.Errorf("no tree: %v", err)
	}
}

// everythingShown is all that the depot shows under the names of trees.
func everythingShown(ctx context.Context, l *lab, f *testkit.Forged) (shown string, err error) {
	var b strings.Builder
	depot := l.gate.Depot()
	for _, name := range []string{"many", "notes", "packed"} {
		tree, tagErr := depot.Tag(ctx, name, "1.0")
		files, filesErr := depot.Files(ctx, tree, "", 1000)
		err = errors.Join(err, tagErr, filesErr)
		for _, listed := range files {
			got, fileErr := depot.File(ctx, name, "1.0", listed.Path)
			err = errors.Join(err, fileErr)
			fmt.Fprintf(&b, "%s %+v %v\n", name, got, got == listed)
		}
		for _, blob := range f.Manifest.Blobs {
			got, blobErr := depot.Blob(ctx, name, blob.Digest)
			fmt.Fprintf(&b, "%s %+v %v\n", name, got, problem.CodeOf(blobErr))
		}
	}
	return b.String(), err
}

// TestTheIndexOfTheDepot edits rows of the index while the gate runs: nothing
// else is served for it, doctor says so, and the next start brings the rows back.
func TestTheIndexOfTheDepot(t *testing.T) {
	l, f := trees(t, 150)
	held := cas.DigestOf([]byte("held")).String()
	root := func(name string) string {
		tag, err := l.gate.Depot().Tag(t.Context(), name, "1.0")
		if err != nil {
			t.Fatal(err)
		}
		return tag.Digest.String()
	}
	many, packed := root("many"), root("packed")
	right, err := everythingShown(t.Context(), l, f)
	if err != nil || strings.Count(right, "true\n") != 302 {
		t.Fatalf("%v\n%s", err, right)
	}
	for name, c := range map[string]struct {
		edit, repository, path, code string
	}{
		"another blob":           {`UPDATE depot_file SET blob = (SELECT blob FROM depot_file WHERE path = 'README.md') WHERE path = 'data/values.csv'`, "notes", "data/values.csv", "audit/contradiction"},
		"another size":           {`UPDATE depot_file SET size = 1 WHERE digest = '` + many + `' AND path LIKE '%0000070'`, "many", "folder/file-0000070", "audit/contradiction"},
		"another place":          {`UPDATE depot_file SET at = at + 512 WHERE digest = '` + packed + `' AND path LIKE '%0000149'`, "packed", "folder/file-0000149", "audit/contradiction"},
		"another pack":           {`UPDATE depot_file SET pack = '` + held + `' WHERE digest = '` + packed + `' AND path LIKE '%0000000'`, "packed", "folder/file-0000000", "audit/contradiction"},
		"no digest":              {`UPDATE depot_file SET blob = 'zz' WHERE digest = '` + packed + `' AND path LIKE '%0000001'`, "packed", "folder/file-0000001", "gate/row-damaged"},
		"a file less":            {`DELETE FROM depot_file WHERE path = 'README.md'`, "notes", "README.md", "audit/contradiction"},
		"a file at the front":    {`INSERT INTO depot_file SELECT digest, 'a.bin', size, blob, pack, at FROM depot_file WHERE digest = '` + many + `' LIMIT 1`, "many", "a.bin", "audit/contradiction"},
		"a file at the end":      {`INSERT INTO depot_file SELECT digest, 'z.bin', size, blob, pack, at FROM depot_file WHERE digest = '` + many + `' LIMIT 1`, "many", "z.bin", "audit/contradiction"},
		"a file in between":      {`INSERT INTO depot_file SELECT digest, 'folder/file-0000063x', size, blob, pack, at FROM depot_file WHERE digest = '` + many + `' LIMIT 1`, "many", "folder/file-0000063x", "audit/contradiction"},
		"another path":           {`UPDATE depot_file SET path = 'data/values2.csv' WHERE path = 'data/values.csv'`, "notes", "data/values2.csv", "audit/contradiction"},
		"no files":               {`DELETE FROM depot_file`, "many", "folder/file-0000000", "audit/contradiction"},
		"a tree of nobody":       {`INSERT INTO depot_file SELECT '` + held + `', path, size, blob, pack, at FROM depot_file WHERE path = 'README.md'`, "", "", ""},
		"no blobs":               {`DELETE FROM depot_blob`, "", "", ""},
		"a blob less":            {`DELETE FROM depot_blob WHERE digest = '` + packed + `'`, "", "", ""},
		"a manifest that is not": {`UPDATE depot_blob SET manifest = 0 WHERE digest = '` + packed + `'`, "", "", ""},
		"a blob of nobody":       {`INSERT INTO depot_blob SELECT 'other', digest, root, media_type, size, manifest, subject, artifact_type, annotations, case_id FROM depot_blob LIMIT 1`, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l.edit(c.edit)
			for _, when := range []string{"while the gate runs", "after a restart"} {
				if c.path != "" {
					got, err := l.gate.Depot().File(t.Context(), c.repository, "1.0", c.path)
					if problem.CodeOf(err) != c.code {
						t.Errorf("%s: %+v, %v", when, got, err)
					}
					tree, err := l.gate.Depot().Tag(t.Context(), c.repository, "1.0")
					if err != nil {
						t.Fatal(err)
					}
					if _, err := l.gate.Depot().Files(t.Context(), tree, "", 1000); problem.CodeOf(err) != c.code {
						t.Errorf("%s, listed: %v", when, err)
					}
				}
				l.clock.Advance(2 * time.Minute)
				if check := l.auditLog(); check.Result != gate.CheckBad || check.Code != "gate/depot-index" && check.Code != c.code || check.Remedy == "" {
					t.Errorf("%s, doctor: %+v", when, check)
				}
				l.restart()
			}
			entries := l.leaves("depot.indexed")
			for range 2 { // the second finds nothing to do
				if err := l.gate.MendDepot(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if now := l.leaves("depot.indexed"); now == entries || now > entries+3 {
				t.Errorf("%d entries of the audit log, and %d before", now, entries)
			}
			if check := l.auditLog(); check.Result != gate.CheckOK {
				t.Errorf("mended: %+v", check)
			}
			shown, err := everythingShown(t.Context(), l, f)
			if diff := cmp.Diff(right, shown); err != nil || diff != "" {
				t.Errorf("mended: %v\n%s", err, diff)
			}
		})
	}
}
