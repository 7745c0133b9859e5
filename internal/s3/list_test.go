package s3_test

import (
	"bytes"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/s3"
	"github.com/packhof/packhof/internal/testkit"
)

func keys(list iter.Seq2[s3.Info, error]) ([]string, error) {
	var found []string
	for info, err := range list {
		if err != nil {
			return found, err
		}
		found = append(found, info.Key)
	}
	return found, nil
}

// A list of several pages is whole, in order and without repetition, also when
// a page has to be asked for again.
func TestListOfManyPages(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	var want []string
	for _, dir := range []string{"many", "other"} {
		if err := os.MkdirAll(filepath.Join(server.Files(), "plant/a", dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2100 {
		key := fmt.Sprintf("many/%04d", i)
		want = append(want, key)
		if err := os.WriteFile(filepath.Join(server.Files(), "plant/a", key), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(server.Files(), "plant/a/other/x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	seconds := testkit.FirstN(2, func(r *http.Request) bool { return r.URL.Query().Has("continuation-token") })
	server.SetFault(testkit.CutAfter(seconds, 1000))
	got, err := keys(c.List(t.Context(), "many/"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range c.List(t.Context(), "") {
		break // leaving early is no mistake
	}
	if got, err := keys(c.List(t.Context(), "nothing/")); err != nil || len(got) > 0 {
		t.Errorf("below nothing: %v, %v", got, err)
	}
}

// The prefix of one plant does not show the objects of another.
func TestPrefixes(t *testing.T) {
	server := testkit.NewS3(t)
	a := newClient(t, config(server))
	settings := config(server)
	settings.Prefix = "plant/ab"
	b := newClient(t, settings)
	put(t, a, "x", []byte("a"))
	put(t, b, "x", []byte("b"))
	for name, c := range map[string]*s3.Client{"a": a, "b": b} {
		got, err := keys(c.List(t.Context(), ""))
		if diff := cmp.Diff([]string{"x"}, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if content, _ := read(t, c, "x", 0); string(content) != name {
			t.Errorf("%q holds %q", name, content)
		}
	}
}

func TestDelete(t *testing.T) {
	c := newClient(t, config(testkit.NewS3(t)))
	put(t, c, "a/b", []byte("x"))
	for range 2 {
		if err := c.Delete(t.Context(), "a/b"); err != nil {
			t.Fatal(err)
		}
		wantNothing(t, c, "a/b")
	}
}

func TestCopy(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	content := testkit.Bytes("copy", 2*partSize+3)
	options := s3.Options{SHA256: cas.DigestOf(content), ContentType: "application/x-model", Metadata: map[string]string{"serial": "7"}}
	if err := c.Put(t.Context(), "from/ü +", stream(content), int64(len(content)), options); err != nil {
		t.Fatal(err)
	}
	parts := newClient(t, config(server))
	s3.CopyInParts(parts, partSize)
	for name, c := range map[string]*s3.Client{"whole": c, "in parts": parts} {
		t.Run(name, func(t *testing.T) {
			to := "to/" + name
			put(t, c, to, []byte("replaced"))
			if err := c.Copy(t.Context(), "from/ü +", to); err != nil {
				t.Fatal(err)
			}
			got, info := read(t, c, to, 0)
			if !bytes.Equal(got, content) || info.SHA256 != options.SHA256 || info.ContentType != options.ContentType || info.Metadata["serial"] != "7" {
				t.Errorf("%d bytes, %+v", len(got), info)
			}
			wantNoUploads(t, c)
		})
	}
	server.SetFault(testkit.Refuse(isPart, http.StatusForbidden, ""))
	wantCode(t, parts.Copy(t.Context(), "from/ü +", "to/nowhere"), "s3/denied")
	server.SetFault(nil)
	wantNothing(t, c, "to/nowhere")
	wantCode(t, c.Copy(t.Context(), "absent", "to/nowhere"), s3.CodeNotFound)
	wantNothing(t, c, "to/nowhere")
}

func sorted(uploads []s3.Upload) []string {
	var names []string
	for _, u := range uploads {
		names = append(names, u.Key)
	}
	slices.Sort(names)
	return names
}
