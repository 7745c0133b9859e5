package s3_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/s3"
	"github.com/packhof/packhof/internal/testkit"
)

func TestMain(m *testing.M) {
	if err := testkit.Victim(uploadUntilKilled); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// victimSettings are those of a process that is killed within an upload.
type victimSettings struct {
	Endpoint string
	CA       []byte
}

func uploadUntilKilled(v victimSettings) error {
	c, err := s3.New(s3.Config{
		Endpoint: v.Endpoint, CA: v.CA, Bucket: testkit.S3Bucket, Prefix: "plant/a",
		AccessKey: testkit.S3AccessKey, SecretKey: testkit.S3SecretKey, PartSize: partSize, InFlight: 2,
	})
	if err != nil {
		return err
	}
	content := testkit.Bytes("victim", 6*partSize)
	return c.Put(context.Background(), "models/killed", stream(content), int64(len(content)), s3.Options{SHA256: cas.DigestOf(content)})
}

// A process that is killed leaves an upload but no object, and the next start
// leaves not even that.
func TestKilledInTheMiddle(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	third := func(r *http.Request) bool { return isPart(r) && r.URL.Query().Get("partNumber") == "3" }
	testkit.KillAt(t, server, third, victimSettings{Endpoint: server.URL(), CA: server.CAPEM()})

	_, err := c.Head(t.Context(), "models/killed")
	wantCode(t, err, s3.CodeNotFound)
	left, err := c.Unfinished(t.Context(), "models/")
	if err != nil || len(left) != 1 || left[0].Begun.IsZero() {
		t.Fatalf("%v, %v: want one upload", left, err)
	}
	aborted, err := c.AbortStale(t.Context(), "models/", nil)
	if diff := cmp.Diff(left, aborted); diff != "" || err != nil {
		t.Errorf("%v, aborted (-want +got):\n%s", err, diff)
	}
	wantNothing(t, c, "models/killed")
}

// begin leaves uploads as others, or we before a crash, may have begun them.
func begin(t *testing.T, server *testkit.S3, names ...string) {
	t.Helper()
	core, err := minio.NewCore(server.Host(), &minio.Options{
		Creds:  credentials.NewStaticV4(testkit.S3AccessKey, testkit.S3SecretKey, ""),
		Secure: true, Region: testkit.S3Region, Transport: server.Client().Transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := core.NewMultipartUpload(t.Context(), testkit.S3Bucket, name, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAbortStale(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	begin(t, server, "plant/a/one", "plant/a/two", "plant/a/two", "plant/a/zürich +", "plant/ab/foreign", "foreign", "plant/a/keep")

	mine := func(u s3.Upload) bool { return u.Key != "keep" }
	aborted, err := c.AbortStale(t.Context(), "", mine)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "two", "two", "zürich +"}, sorted(aborted)); diff != "" {
		t.Errorf("aborted (-want +got):\n%s", diff)
	}
	settings := config(server)
	settings.Prefix = ""
	all, err := newClient(t, settings).Unfinished(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"foreign", "plant/a/keep", "plant/ab/foreign"}, sorted(all)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}

	server.SetFault(testkit.Refuse(method(http.MethodDelete), http.StatusForbidden, ""))
	aborted, err = c.AbortStale(t.Context(), "", nil)
	wantCode(t, err, "s3/denied")
	if len(aborted) > 0 {
		t.Errorf("aborted, it says: %v", aborted)
	}
}

// versitygw refuses its own markers, so the pages of a long list are played.
func TestUploadsOfManyPages(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	upload := func(key, id string) string {
		return "<Upload><Key>" + key + "</Key><UploadId>" + id + "</UploadId><Initiated>2026-11-30T12:00:00.000Z</Initiated></Upload>"
	}
	pages := map[string]string{
		"":    upload("foreign", "1") + upload("plant%2Fa%2Fx%20y", "2") + "<IsTruncated>true</IsTruncated><NextKeyMarker>plant%2Fa%2Fx%20y</NextKeyMarker><NextUploadIdMarker>2</NextUploadIdMarker>",
		"x/2": upload("plant%2Fa%2Fx%20y", "3") + "<IsTruncated>false</IsTruncated>",
	}
	server.SetFault(testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		page := ""
		if r.URL.Query().Get("key-marker") == "plant/a/x y" {
			page = "x/" + r.URL.Query().Get("upload-id-marker")
		}
		_, err := fmt.Fprintf(w, "<ListMultipartUploadsResult><EncodingType>url</EncodingType>%s</ListMultipartUploadsResult>", pages[page])
		return err == nil
	}))
	got, err := c.Unfinished(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)
	want := []s3.Upload{{Key: "x y", ID: "2", Begun: begun}, {Key: "x y", ID: "3", Begun: begun}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
