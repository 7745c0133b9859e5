package depot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// shelf is a DepotStore whose rows are in memory and whose content is in a
// store on disk, as a gate's is.
type shelf struct {
	t     testing.TB
	store *cas.Store

	tags      []gate.DepotTag
	blobs     map[string]map[bundle.Digest]gate.DepotBlob // by repository
	referrers map[string]map[bundle.Digest][]gate.DepotReferrer
	trees     map[bundle.Digest][]gate.DepotFile
	withdrawn map[bundle.Digest]string
	made      int // files that every tree has, made as they are asked for; 0: its own

	opened atomic.Int64
	failed error // what every question is answered with, if anything
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	store, err := cas.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{
		t: t, store: store, blobs: map[string]map[bundle.Digest]gate.DepotBlob{}, referrers: map[string]map[bundle.Digest][]gate.DepotReferrer{},
		trees: map[bundle.Digest][]gate.DepotFile{}, withdrawn: map[bundle.Digest]string{},
	}
}

// put stores bytes, which no repository shows yet.
func (s *shelf) put(b []byte) bundle.Digest {
	s.t.Helper()
	d, err := s.store.PutBytes(context.Background(), b)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// show makes a blob visible in a repository.
func (s *shelf) show(repository string, b gate.DepotBlob) {
	if s.blobs[repository] == nil {
		s.blobs[repository] = map[bundle.Digest]gate.DepotBlob{}
	}
	s.blobs[repository][b.Digest] = b
}

// showGraph makes everything visible that is reachable from a manifest.
func (s *shelf) showGraph(repository string, root bundle.OCIDescriptor) {
	s.t.Helper()
	read := func(d bundle.OCIDescriptor) ([]byte, error) {
		return s.store.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
	}
	err := bundle.Walk(root, read, func(d bundle.OCIDescriptor, _ bundle.Role) error {
		s.show(repository, gate.DepotBlob{Digest: d.Digest, MediaType: d.MediaType, Size: d.Size, Manifest: bundle.IsManifest(d.MediaType)})
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// tag names a manifest.
func (s *shelf) tag(repository, tag string, kind bundle.Kind, root bundle.OCIDescriptor) {
	s.t.Helper()
	s.showGraph(repository, root)
	s.tags = append(s.tags, gate.DepotTag{Repository: repository, Tag: tag, Kind: kind, Digest: root.Digest, MediaType: root.MediaType, Size: root.Size, Since: testkit.Noon()})
	slices.SortFunc(s.tags, func(a, b gate.DepotTag) int {
		return cmp.Or(strings.Compare(a.Repository, b.Repository), strings.Compare(a.Tag, b.Tag))
	})
}

// addImage stores and tags an image.
func (s *shelf) addImage(repository, tag string, image v1.Image) bundle.OCIDescriptor {
	s.t.Helper()
	root := s.putImage(image)
	s.tag(repository, tag, bundle.Image, root)
	return root
}

func (s *shelf) putImage(image v1.Image) bundle.OCIDescriptor {
	s.t.Helper()
	layers := must(image.Layers())
	for _, layer := range layers {
		r := must(layer.Compressed())
		d := must(cas.ParseDigest(must(layer.Digest()).String()))
		if err := s.store.Put(context.Background(), r, d, must(layer.Size()), "layer"); err != nil {
			s.t.Fatal(err)
		}
	}
	s.put(must(image.RawConfigFile()))
	manifest := must(image.RawManifest())
	return bundle.OCIDescriptor{MediaType: string(must(image.MediaType())), Digest: s.put(manifest), Size: int64(len(manifest))}
}

// addIndex stores and tags an index of images.
func (s *shelf) addIndex(repository, tag string, index v1.ImageIndex) bundle.OCIDescriptor {
	s.t.Helper()
	for _, d := range must(index.IndexManifest()).Manifests {
		s.putImage(must(index.Image(d.Digest)))
	}
	b := must(index.RawManifest())
	root := bundle.OCIDescriptor{MediaType: string(must(index.MediaType())), Digest: s.put(b), Size: int64(len(b))}
	s.tag(repository, tag, bundle.Image, root)
	return root
}

// addTree stores and tags a tree of files.
func (s *shelf) addTree(repository, tag string, kind bundle.Kind, files map[string]string) bundle.OCIDescriptor {
	s.t.Helper()
	var list []bundle.File
	for path, content := range files {
		list = append(list, bundle.File{Path: path, Size: int64(len(content)), Digest: s.put([]byte(content))})
	}
	tree := must(bundle.BuildTree(kind, repository, tag, list))
	for _, document := range tree.Documents {
		s.put(document)
	}
	root := bundle.OCIDescriptor{MediaType: tree.Root.MediaType, Digest: tree.Root.Digest, Size: tree.Root.Size}
	s.tag(repository, tag, kind, root)
	for _, f := range list {
		s.trees[root.Digest] = append(s.trees[root.Digest], gate.DepotFile{Path: f.Path, Size: f.Size, Digest: f.Digest})
	}
	slices.SortFunc(s.trees[root.Digest], func(a, b gate.DepotFile) int { return strings.Compare(a.Path, b.Path) })
	return root
}

// addReferrer attaches a document to a subject.
func (s *shelf) addReferrer(repository, artifactType, document string, subject bundle.OCIDescriptor, annotations map[string]string) bundle.Digest {
	s.t.Helper()
	manifest, config, err := bundle.BuildReferrer(artifactType, s.put([]byte(document)), int64(len(document)),
		bundle.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size})
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(config)
	d := s.put(manifest)
	s.showGraph(repository, bundle.OCIDescriptor{MediaType: bundle.TypeOCIManifest, Digest: d, Size: int64(len(manifest))})
	s.refer(repository, subject.Digest, gate.DepotReferrer{Digest: d, MediaType: bundle.TypeOCIManifest, Size: int64(len(manifest)), ArtifactType: artifactType, Annotations: annotations})
	return d
}

// refer lists a referrer.
func (s *shelf) refer(repository string, subject bundle.Digest, r gate.DepotReferrer) {
	if s.referrers[repository] == nil {
		s.referrers[repository] = map[bundle.Digest][]gate.DepotReferrer{}
	}
	list := append(s.referrers[repository][subject], r)
	slices.SortFunc(list, func(a, b gate.DepotReferrer) int { return a.Digest.Compare(b.Digest) })
	s.referrers[repository][subject] = list
}

func (s *shelf) Repositories(_ context.Context, after string, limit int) (names []string, err error) {
	for _, t := range s.tags {
		if t.Repository > after && !slices.Contains(names, t.Repository) && len(names) < limit {
			names = append(names, t.Repository)
		}
	}
	return names, s.failed
}

func (s *shelf) Tags(_ context.Context, repository, after string, limit int) (tags []gate.DepotTag, err error) {
	known := false
	for _, t := range s.tags {
		known = known || t.Repository == repository
		if t.Repository == repository && t.Tag > after && len(tags) < limit {
			tags = append(tags, t)
		}
	}
	if !known {
		return nil, &gate.NotReleasedError{What: "the repository " + repository}
	}
	return tags, s.failed
}

func (s *shelf) Tag(_ context.Context, repository, tag string) (gate.DepotTag, error) {
	for _, t := range s.tags {
		if t.Repository == repository && t.Tag == tag {
			return t, errors.Join(s.failed, s.denied(t.Digest))
		}
	}
	return gate.DepotTag{}, &gate.NotReleasedError{What: repository + ":" + tag}
}

func (s *shelf) Blob(_ context.Context, repository string, d bundle.Digest) (gate.DepotBlob, error) {
	b, ok := s.blobs[repository][d]
	if !ok {
		return b, &gate.NotReleasedError{What: repository + "@" + d.String()}
	}
	return b, errors.Join(s.failed, s.denied(d))
}

func (s *shelf) denied(d bundle.Digest) error {
	if reason, ok := s.withdrawn[d]; ok {
		return &gate.DeniedError{Digest: d, Reason: reason}
	}
	return nil
}

func (s *shelf) Referrers(_ context.Context, repository string, d bundle.Digest) ([]gate.DepotReferrer, error) {
	return s.referrers[repository][d], s.failed
}

func (s *shelf) Files(_ context.Context, tree gate.DepotTag, after string, limit int) ([]gate.DepotFile, error) {
	if s.made > 0 {
		return s.makeFiles(after, limit), nil
	}
	files := s.trees[tree.Digest]
	i, _ := slices.BinarySearchFunc(files, after, func(f gate.DepotFile, path string) int {
		return cmp.Or(strings.Compare(f.Path, path), -1) // the one behind it
	})
	return files[i:min(i+limit, len(files))], nil
}

// makeFiles makes a page of a tree whose files nobody holds.
func (s *shelf) makeFiles(after string, limit int) []gate.DepotFile {
	next := 0
	if after != "" {
		next = must(strconv.Atoi(strings.TrimPrefix(after, "some/folder/part-"))) + 1
	}
	page := []gate.DepotFile{}
	for ; next < s.made && len(page) < limit; next++ {
		page = append(page, gate.DepotFile{Path: fmt.Sprintf("some/folder/part-%07d", next), Size: 1, Digest: bundle.Digest{1}})
	}
	return page
}

func (s *shelf) File(ctx context.Context, repository, tag, path string) (gate.DepotFile, error) {
	t, err := s.Tag(ctx, repository, tag)
	if err != nil {
		return gate.DepotFile{}, err
	}
	for _, f := range s.trees[t.Digest] {
		if f.Path == path {
			return f, s.denied(f.Digest)
		}
	}
	return gate.DepotFile{}, &gate.NotReleasedError{What: path}
}

func (s *shelf) Open(_ context.Context, d bundle.Digest) (io.ReadSeekCloser, error) {
	s.opened.Add(1)
	if err := s.denied(d); err != nil {
		return nil, err
	}
	return s.store.OpenUnsafe(d)
}

// serve starts a server on the shelf, with a clock that stands still.
func (s *shelf) serve(o Options) *httptest.Server {
	s.t.Helper()
	if o.Clock == nil {
		o.Clock = testkit.NewClock(testkit.Noon()).Now
	}
	server := httptest.NewServer(Handler(s, o))
	s.t.Cleanup(server.Close)
	return server
}

// serveTLS is serve with TLS, and HTTP/2 for those who can.
func (s *shelf) serveTLS() *httptest.Server {
	s.t.Helper()
	server := httptest.NewUnstartedServer(Handler(s, Options{Clock: testkit.NewClock(testkit.Noon()).Now}))
	server.EnableHTTP2 = true
	server.StartTLS()
	s.t.Cleanup(server.Close)
	return server
}

// answer is what a client got.
type answer struct {
	*http.Response
	body string
}

// ask sends a request; header is "Name: value".
func ask(t testing.TB, method, url string, header ...string) answer {
	t.Helper()
	got, err := tryAsk(t, method, url, header...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// tryAsk is ask for a connection that may be cut.
func tryAsk(t testing.TB, method, url string, header ...string) (answer, error) {
	t.Helper()
	request := must(http.NewRequestWithContext(t.Context(), method, url, nil))
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Add(name, value)
	}
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(response.Body)
	return answer{response, string(body)}, errors.Join(err, response.Body.Close())
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// httptestServer serves a handler and gives its URL.
func httptestServer(t testing.TB, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// ReadPacked implements gate.DepotStore.
func (s *shelf) ReadPacked(_ context.Context, f gate.DepotFile) ([]byte, error) {
	return bundle.ReadTreeFile(bundle.StoreContent(s.store), bundle.TreeFile{
		File: bundle.File{Path: f.Path, Size: f.Size, Digest: f.Digest}, Pack: f.Pack, Offset: f.Offset,
	})
}
