package s3_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/s3"
	"github.com/packhof/packhof/internal/testkit"
)

const (
	mib      = 1 << 20
	partSize = 5 * mib
)

// pauses stands in for waiting.
type pauses struct {
	mu    sync.Mutex
	count int
}

func (p *pauses) sleep(ctx context.Context, _ time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	return ctx.Err()
}

func config(server *testkit.S3) s3.Config {
	return s3.Config{
		Endpoint: server.URL(), CA: server.CAPEM(), Region: testkit.S3Region,
		Bucket: testkit.S3Bucket, Prefix: "plant/a",
		AccessKey: testkit.S3AccessKey, SecretKey: testkit.S3SecretKey,
		PartSize: partSize, InFlight: 2, UserAgent: "packhof-test/1",
		Sleep: new(pauses).sleep,
	}
}

func newClient(t *testing.T, c s3.Config) *s3.Client {
	t.Helper()
	client, err := s3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func put(t *testing.T, c *s3.Client, key string, content []byte) {
	t.Helper()
	if err := c.Put(t.Context(), key, stream(content), int64(len(content)), s3.Options{SHA256: cas.DigestOf(content)}); err != nil {
		t.Fatal(err)
	}
}

// stream hides what a bytes.Reader can do besides reading.
func stream(content []byte) io.Reader { return io.MultiReader(bytes.NewReader(content)) }

func read(t *testing.T, c *s3.Client, key string, offset int64) ([]byte, s3.Info) {
	t.Helper()
	r, info, err := c.Open(t.Context(), key, offset)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return content, info
}

func wantCode(t *testing.T, err error, want string) {
	t.Helper()
	if got := problem.CodeOf(err); err == nil || got != want {
		t.Errorf("error %v has code %q, want %q", err, got, want)
	}
}

// wantNothing makes sure that neither an object nor an upload is left.
func wantNothing(t *testing.T, c *s3.Client, key string) {
	t.Helper()
	_, err := c.Head(context.WithoutCancel(t.Context()), key)
	wantCode(t, err, s3.CodeNotFound)
	wantNoUploads(t, c)
}

func wantNoUploads(t *testing.T, c *s3.Client) {
	t.Helper()
	uploads, err := c.Unfinished(context.WithoutCancel(t.Context()), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(uploads) > 0 {
		t.Errorf("uploads left: %v", uploads)
	}
}

func isPart(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Query().Has("partNumber")
}

func isPut(r *http.Request) bool { return r.Method == http.MethodPut }

func isCompletion(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}

func method(name string) testkit.Match {
	return func(r *http.Request) bool { return r.Method == name }
}

func TestRoundTrip(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	if err := c.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{
		"empty": 0, "one byte": 1, "a whole part": partSize, "a part and a byte": partSize + 1, "eight parts": 40 * mib,
	} {
		t.Run(name, func(t *testing.T) {
			key := "models/" + name
			content := testkit.Bytes(name, size)
			digest := cas.DigestOf(content)
			err := c.Put(t.Context(), key, stream(content), int64(size), s3.Options{
				SHA256: digest, ContentType: "application/x-model", Metadata: map[string]string{"case": "a b", "serial": "7"},
			})
			if err != nil {
				t.Fatal(err)
			}
			info, err := c.Head(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if info.Modified.IsZero() || info.Checksum == "" {
				t.Errorf("no time or no checksum: %+v", info)
			}
			want := s3.Info{
				Key: key, Size: int64(size), SHA256: digest, ContentType: "application/x-model",
				Metadata: map[string]string{"case": "a b", "serial": "7"},
				Modified: info.Modified, Checksum: info.Checksum,
			}
			if diff := cmp.Diff(want, info); diff != "" {
				t.Errorf("head (-want +got):\n%s", diff)
			}
			if got, _ := read(t, c, key, 0); cas.DigestOf(got) != digest {
				t.Error("other bytes come back")
			}
			if size > 1 {
				got, info := read(t, c, key, int64(size-7))
				if !bytes.Equal(got, content[size-7:]) || info.Size != int64(size) {
					t.Errorf("from byte %d come %d bytes of %d", size-7, len(got), info.Size)
				}
			}
			stored, err := os.ReadFile(filepath.Join(server.Files(), "plant/a", key))
			if err != nil || cas.DigestOf(stored) != digest {
				t.Errorf("the server keeps other bytes (%v)", err)
			}
		})
	}
	wantNoUploads(t, c)
}

// What is sent is signed with its digest and declared with its checksum, each
// part anew, so that the server itself refuses other bytes.
func TestPutDeclaresItsDigests(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	put(t, c, "small", []byte("abc"))
	put(t, c, "large", testkit.Bytes("large", partSize+1))
	seen := 0
	for _, r := range server.Requests() {
		if r.Method != http.MethodPut {
			continue
		}
		seen++
		if len(r.Header.Get("X-Amz-Content-Sha256")) != 64 || len(r.Header.Get("X-Amz-Checksum-Sha256")) != 44 {
			t.Errorf("%s?%s: %v", r.Path, r.Query, r.Header)
		}
		if got := r.Header.Get("User-Agent"); got != "packhof-test/1" {
			t.Errorf("User-Agent %q", got)
		}
	}
	if seen != 3 {
		t.Errorf("%d requests with content, want 3", seen)
	}
}

func TestMemoryStaysFlat(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	const size = 80 * mib
	hash := sha256.New()
	if _, err := io.CopyN(hash, testkit.Random("flat"), size); err != nil {
		t.Fatal(err)
	}
	content := io.LimitReader(testkit.Random("flat"), size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := c.Put(t.Context(), "flat", content, size, s3.Options{SHA256: cas.Digest(hash.Sum(nil))})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	// Two parts, and what the proxy of the kit needs in this process; not the
	// content, which is what anything that is not flat allocates.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > size/2 {
		t.Errorf("%d bytes allocated to send %d", allocated, size)
	}
}

func TestKeys(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	keys := []string{
		"a b/c  d.bin", "plus+plus/1+1=2", "müller/größe.txt", "日本語/模型.safetensors", "100%/50%25", "q?x=1&y#z", "tilde~'\"*:;@,$!()[]{}|^`<>", "back\\slash", "e\u0301/\u00e9",
	}
	for _, key := range keys {
		put(t, c, key, []byte(key))
	}
	var listed []string
	for info, err := range c.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, info.Key)
		if got, _ := read(t, c, info.Key, 0); string(got) != info.Key {
			t.Errorf("%q holds %q", info.Key, got)
		}
	}
	slices.Sort(keys)
	if diff := cmp.Diff(keys, listed); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
}

func TestKeysThatServersReadDifferently(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	for _, key := range []string{
		"", "/a", "a/", "a//b", "a/../b", "..", "./a", "a\nb", "a\x00", "\xff", "a\u0085b", "a\uFFFEb",
		strings.Repeat("x", 256), strings.Repeat("x/", 510) + "end-of-it",
	} {
		wantCode(t, c.Put(t.Context(), key, stream(nil), 0, s3.Options{SHA256: cas.DigestOf(nil)}), "s3/key")
		_, err := c.Head(t.Context(), key)
		wantCode(t, err, "s3/key")
		_, _, err = c.Open(t.Context(), key, 0)
		wantCode(t, err, "s3/key")
		wantCode(t, c.Delete(t.Context(), key), "s3/key")
		wantCode(t, c.Copy(t.Context(), key, "a"), "s3/key")
		wantCode(t, c.Copy(t.Context(), "a", key), "s3/key")
	}
	if asked := server.Requests(); len(asked) > 0 {
		t.Errorf("the server was asked: %v", asked)
	}
}

func TestMetadataThatCannotBeSent(t *testing.T) {
	c := newClient(t, config(testkit.NewS3(t)))
	for name, options := range map[string]s3.Options{
		"upper case":     {Metadata: map[string]string{"Case": "x"}},
		"our own":        {Metadata: map[string]string{"sha256": "x"}},
		"line break":     {Metadata: map[string]string{"a": "x\r\ny: z"}},
		"not ASCII":      {Metadata: map[string]string{"a": "ü"}},
		"outer space":    {Metadata: map[string]string{"a": " x"}},
		"too much":       {Metadata: map[string]string{"a": strings.Repeat("x", 2048)}},
		"type is broken": {ContentType: "text/plain\r\nx: y"},
	} {
		t.Run(name, func(t *testing.T) {
			options.SHA256 = cas.DigestOf(nil)
			wantCode(t, c.Put(t.Context(), "a", stream(nil), 0, options), "s3/metadata")
		})
	}
	wantNothing(t, c, "a")
}
