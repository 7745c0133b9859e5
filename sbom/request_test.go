package sbom_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/sbom"
)

func moment() time.Time { return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC) }

func tree() sbom.Request {
	return sbom.Request{
		Format: sbom.RequestFormat,
		Form:   sbom.FormTree,
		Subject: sbom.Subject{
			Kind: "model", Name: "yard/grabber", Version: "rev-7",
			Digest: "sha256:" + strings.Repeat("0a", 32), MediaType: "application/vnd.cncf.model.manifest.v1+json",
		},
		Time: moment(),
		Dir:  "/content",
		Files: []sbom.File{
			{Path: "weights/b.bin", Size: 2, SHA256: strings.Repeat("bb", 32), SHA512: strings.Repeat("bb", 64)},
			{Path: "a.txt", Size: 1, SHA256: strings.Repeat("aa", 32), SHA512: strings.Repeat("aa", 64)},
		},
	}
}

func image() sbom.Request {
	r := tree()
	r.Form, r.Files = sbom.FormImage, nil
	r.Subject.Kind, r.Subject.Name, r.Subject.Platform = "image", "registry.example.test/yard/Crane", "linux/arm64/v8"
	r.Subject.MediaType = "application/vnd.oci.image.manifest.v1+json"
	return r
}

func TestRequestSurvivesTheWire(t *testing.T) {
	for _, want := range []sbom.Request{tree(), image()} {
		text, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := sbom.ReadRequest(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSenselessRequestsAreRefused(t *testing.T) {
	tests := map[string]func(*sbom.Request){
		"other format":      func(r *sbom.Request) { r.Format = "packhof.scan-request/v2" },
		"unknown form":      func(r *sbom.Request) { r.Form = "zip" },
		"image as tree":     func(r *sbom.Request) { r.Subject.Kind = "image" },
		"tree as image":     func(r *sbom.Request) { r.Form, r.Files = sbom.FormImage, nil },
		"unknown kind":      func(r *sbom.Request) { r.Subject.Kind = "thing" },
		"digest in capital": func(r *sbom.Request) { r.Subject.Digest = "sha256:" + strings.Repeat("0A", 32) },
		"digest of sha512":  func(r *sbom.Request) { r.Subject.Digest = "sha512:" + strings.Repeat("0a", 64) },
		"no name":           func(r *sbom.Request) { r.Subject.Name = "" },
		"no media type":     func(r *sbom.Request) { r.Subject.MediaType = "" },
		"control character": func(r *sbom.Request) { r.Subject.Name = "a\x1b[2J" },
		"broken UTF-8":      func(r *sbom.Request) { r.Subject.Version = "\xff" },
		"long name":         func(r *sbom.Request) { r.Subject.Name = strings.Repeat("n", 1025) },
		"odd platform":      func(r *sbom.Request) { r.Subject.Platform = "linux" },
		"no time":           func(r *sbom.Request) { r.Time = time.Time{} },
		"split second":      func(r *sbom.Request) { r.Time = r.Time.Add(time.Millisecond) },
		"relative dir":      func(r *sbom.Request) { r.Dir = "content" },
		"negative limit":    func(r *sbom.Request) { r.MaxUnpacked = -1 },
		"absolute file":     func(r *sbom.Request) { r.Files[0].Path = "/etc/passwd" },
		"escaping file":     func(r *sbom.Request) { r.Files[0].Path = "../a" },
		"file named dot":    func(r *sbom.Request) { r.Files[0].Path = "." },
		"unclean file":      func(r *sbom.Request) { r.Files[0].Path = "a//b" },
		"newline in file":   func(r *sbom.Request) { r.Files[0].Path = "a\nb" },
		"file twice":        func(r *sbom.Request) { r.Files[0].Path = r.Files[1].Path },
		"negative size":     func(r *sbom.Request) { r.Files[0].Size = -1 },
		"no sha256":         func(r *sbom.Request) { r.Files[0].SHA256 = "" },
		"short sha512":      func(r *sbom.Request) { r.Files[0].SHA512 = r.Files[0].SHA512[1:] },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			r := tree()
			spoil(&r)
			_, err := r.Encode()
			want(t, err, "scan/request")
			_, err = sbom.Write(r, sbom.Found{})
			want(t, err, "scan/request")
		})
	}
}

func want(t *testing.T, err error, code string) {
	t.Helper()
	e, ok := errors.AsType[*sbom.Error](err)
	if !ok || e.Code() != code {
		t.Errorf("want %s, got %v", code, err)
	}
}

func TestRequestIsReadStrictly(t *testing.T) {
	good, err := tree().Encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(good)
	tests := map[string]string{
		"empty":         "",
		"garbage":       "garbage",
		"truncated":     text[:len(text)-1],
		"trailing":      text + "{}",
		"unknown key":   strings.Replace(text, `{"format"`, `{"extra":1,"format"`, 1),
		"duplicate key": strings.Replace(text, `{"format"`, `{"format":"x","format"`, 1),
		"other case":    strings.Replace(text, `"format"`, `"Format"`, 1),
		"other type":    strings.Replace(text, `"size":1`, `"size":"1"`, 1),
		"fraction":      strings.Replace(text, `"size":1`, `"size":1.5`, 1),
	}
	for name, spoilt := range tests {
		t.Run(name, func(t *testing.T) {
			if spoilt == text {
				t.Fatal("nothing was spoilt")
			}
			_, err := sbom.ReadRequest(strings.NewReader(spoilt))
			want(t, err, "scan/request")
		})
	}
	if _, err := sbom.ReadRequest(&endless{}); err == nil {
		t.Error("an endless request was read")
	}
}

// endless is white space without end.
type endless struct{}

func (*endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestResponseKeepsTheBytesOfItsDocument(t *testing.T) {
	doc, err := sbom.Write(tree(), sbom.Found{Tools: []sbom.Tool{{Name: "<ü> & \u2028 \"'", Version: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	sent := sbom.Response{
		Format: sbom.ResponseFormat, Document: doc,
		Unknowns: []sbom.Unknown{{Path: "/a.zip", Reason: "not expanded"}}, UnknownsTotal: 7,
	}
	text, err := sent.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := sbom.ReadResponse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(doc), string(got.Document)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Error(diff)
	}
}

func TestResponseIsReadStrictly(t *testing.T) {
	for name, text := range map[string]string{
		"empty":       "",
		"garbage":     "\x00\x01garbage",
		"truncated":   `{"format":"packhof.scan-response/v1","document":{`,
		"trailing":    `{"format":"packhof.scan-response/v1","document":{}}x`,
		"no document": `{"format":"packhof.scan-response/v1"}`,
		"null":        `{"format":"packhof.scan-response/v1","document":null}`,
		"unknown key": `{"format":"packhof.scan-response/v1","document":{},"more":1}`,
		"twice":       `{"format":"packhof.scan-response/v1","document":{},"document":{}}`,
		"twice below": `{"format":"packhof.scan-response/v1","document":{"a":1,"a":2}}`,
		"miscounted":  `{"format":"packhof.scan-response/v1","document":{},"unknowns":[{"path":"a","reason":"b"}]}`,
		"format":      `{"format":"packhof.scan-response/v2","document":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sbom.ReadResponse(strings.NewReader(text))
			want(t, err, "scan/response")
		})
	}
}

func FuzzReadRequest(f *testing.F) {
	for _, r := range []sbom.Request{tree(), image()} {
		text, err := r.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := sbom.ReadRequest(bytes.NewReader(text))
		if err != nil {
			want(t, err, "scan/request")
			return
		}
		again, err := r.Encode()
		if err != nil {
			t.Fatalf("read, but cannot be written: %v", err)
		}
		reread, err := sbom.ReadRequest(bytes.NewReader(again))
		if err != nil || !cmp.Equal(r, reread) {
			t.Errorf("not the same after a round trip: %v\n%s", err, cmp.Diff(r, reread))
		}
	})
}

func FuzzReadResponse(f *testing.F) {
	f.Add([]byte(`{"format":"packhof.scan-response/v1","document":{"a":[1,"b"]},"unknowns":[{"path":"a","reason":"b"}],"unknownsTotal":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := sbom.ReadResponse(bytes.NewReader(text))
		if err != nil {
			want(t, err, "scan/response")
			return
		}
		if !bytes.Contains(text, r.Document) {
			t.Errorf("document %q was not in %q", r.Document, text)
		}
	})
}
