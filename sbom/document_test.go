package sbom_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/sbom"
)

func found() sbom.Found {
	licences := cyclonedx.Licenses{
		{License: &cyclonedx.License{ID: "MIT"}}, {License: &cyclonedx.License{ID: "Apache-2.0"}},
	}
	return sbom.Found{
		Components: []cyclonedx.Component{
			{BOMRef: "pkg:b", Type: cyclonedx.ComponentTypeLibrary, Name: "b", Version: "2", Licenses: &licences},
			{BOMRef: "pkg:a", Type: cyclonedx.ComponentTypeLibrary, Name: "a", Version: "1"},
			{BOMRef: "os:x", Type: cyclonedx.ComponentTypeOS, Name: "x"},
		},
		Dependencies: []cyclonedx.Dependency{{Ref: "pkg:a", Dependencies: &[]string{"pkg:b", "pkg:b"}}},
		Tools:        []sbom.Tool{{Name: "syft", Version: "v1"}, {Name: "packhof-scan", Version: "v2"}},
	}
}

func document(t testing.TB) []byte {
	t.Helper()
	doc, err := sbom.Write(tree(), found())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func expected() sbom.Expect { return sbom.Expect{Subject: tree().Subject, Time: moment()} }

// The whole text, so that any change of it is seen: other bytes are other digests.
func TestDocumentText(t *testing.T) {
	aa, bb, digest := strings.Repeat("aa", 32), strings.Repeat("bb", 32), strings.Repeat("0a", 32)
	want := `{"$schema":"http://cyclonedx.org/schema/bom-1.6.schema.json","bomFormat":"CycloneDX","components":[` +
		`{"bom-ref":"file:a.txt","hashes":[{"alg":"SHA-256","content":"` + aa + `"},{"alg":"SHA-512","content":"` + aa + aa + `"}],"name":"a.txt","properties":[{"name":"packhof:file:size","value":"1"}],"type":"file"},` +
		`{"bom-ref":"file:weights/b.bin","hashes":[{"alg":"SHA-256","content":"` + bb + `"},{"alg":"SHA-512","content":"` + bb + bb + `"}],"name":"weights/b.bin","properties":[{"name":"packhof:file:size","value":"2"}],"type":"file"},` +
		`{"bom-ref":"os:x","name":"x","type":"operating-system"},` +
		`{"bom-ref":"pkg:a","name":"a","type":"library","version":"1"},` +
		`{"bom-ref":"pkg:b","licenses":[{"license":{"id":"Apache-2.0"}},{"license":{"id":"MIT"}}],"name":"b","type":"library","version":"2"}],` +
		`"dependencies":[{"dependsOn":["pkg:b"],"ref":"pkg:a"},{"dependsOn":["os:x","pkg:a"],"ref":"sha256:` + digest + `"}],` +
		`"metadata":{"component":{"bom-ref":"sha256:` + digest + `","hashes":[{"alg":"SHA-256","content":"` + digest + `"}],"name":"yard/grabber",` +
		`"properties":[{"name":"packhof:subject:digest","value":"sha256:` + digest + `"},{"name":"packhof:subject:kind","value":"model"},` +
		`{"name":"packhof:subject:mediaType","value":"application/vnd.cncf.model.manifest.v1+json"}],"type":"machine-learning-model","version":"rev-7"},` +
		`"timestamp":"2026-03-14T15:09:26Z","tools":{"components":[{"name":"packhof-scan","type":"application","version":"v2"},{"name":"syft","type":"application","version":"v1"}]}},` +
		`"serialNumber":"` + sbom.Serial("sha256:"+digest, moment()) + `","specVersion":"1.6","version":1}`
	if diff := cmp.Diff(want, string(document(t))); diff != "" {
		t.Error(diff)
	}
}

func TestOrderOfInputDoesNotMatter(t *testing.T) {
	request, other := tree(), found()
	slices.Reverse(request.Files)
	slices.Reverse(other.Components)
	slices.Reverse(other.Tools)
	for i := range other.Components {
		if l := other.Components[i].Licenses; l != nil {
			slices.Reverse(*l)
		}
	}
	request.Time = request.Time.In(time.FixedZone("plant", 3600))
	again, err := sbom.Write(request, other)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(document(t)), string(again)); diff != "" {
		t.Error(diff)
	}
}

func TestSerial(t *testing.T) {
	digest := tree().Subject.Digest
	serial := sbom.Serial(digest, moment())
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(serial) {
		t.Errorf("%s is no UUID version 8", serial)
	}
	if serial != "urn:uuid:faaf50aa-c154-8b33-bc8c-ee3e6a8511da" {
		t.Errorf("serial changed: %s", serial)
	}
	if serial == sbom.Serial(digest, moment().Add(time.Second)) || serial == sbom.Serial(image().Subject.Digest+"0", moment()) {
		t.Error("other subject or time, same serial")
	}
}

func TestImageIsNamedByPackageURL(t *testing.T) {
	doc, err := sbom.Write(image(), sbom.Found{})
	if err != nil {
		t.Fatal(err)
	}
	bom, err := sbom.Read(doc)
	if err != nil {
		t.Fatal(err)
	}
	want := "pkg:oci/crane@sha256%3A" + strings.Repeat("0a", 32) + "?arch=arm64&repository_url=registry.example.test%2Fyard%2FCrane"
	if diff := cmp.Diff(want, bom.Metadata.Component.PackageURL); diff != "" {
		t.Error(diff)
	}
}

func TestWriteRefusesAmbiguousReferences(t *testing.T) {
	for name, second := range map[string]string{"twice": "pkg:a", "none": ""} {
		t.Run(name, func(t *testing.T) {
			f := found()
			f.Components[0].BOMRef = second
			_, err := sbom.Write(tree(), f)
			want(t, err, "sbom/malformed")
		})
	}
}

func TestCheckCounts(t *testing.T) {
	got, err := sbom.Check(document(t), expected())
	if err != nil {
		t.Fatal(err)
	}
	want := sbom.Report{
		SpecVersion: "1.6", Serial: sbom.Serial(tree().Subject.Digest, moment()), Timestamp: "2026-03-14T15:09:26Z",
		Tools:      []sbom.Tool{{Name: "packhof-scan", Version: "v2"}, {Name: "syft", Version: "v1"}},
		Components: 5, Files: 2, Packages: 2, Licences: map[string]int{"MIT": 1, "Apache-2.0": 1}, Unlicensed: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCheckRefuses(t *testing.T) {
	good := string(document(t))
	swap := func(old, replacement string) func() []byte {
		return func() []byte { return []byte(strings.Replace(good, old, replacement, 1)) }
	}
	tests := []struct {
		name   string
		doc    func() []byte
		expect func(*sbom.Expect)
		code   string
	}{
		{"another subject", nil, func(e *sbom.Expect) { e.Subject.Digest = "sha256:" + strings.Repeat("1b", 32) }, "sbom/subject"},
		{"another name", nil, func(e *sbom.Expect) { e.Subject.Name += "s" }, "sbom/subject"},
		{"another kind", nil, func(e *sbom.Expect) { e.Subject.Kind = "dataset" }, "sbom/subject"},
		{"another platform", nil, func(e *sbom.Expect) { e.Subject.Platform = "linux/amd64" }, "sbom/subject"},
		{"another time expected", nil, func(e *sbom.Expect) { e.Time = e.Time.Add(time.Second) }, "sbom/time"},
		{"changed time", swap("15:09:26Z", "15:09:27Z"), nil, "sbom/time"},
		{"changed subject hash", swap(`"hashes":[{"alg":"SHA-256","content":"0a`, `"hashes":[{"alg":"SHA-256","content":"0b`), nil, "sbom/subject"},
		{"no subject", swap(`"component":{`, `"other":{`), nil, "sbom/subject"},
		{"random serial", swap(`"serialNumber":"urn:uuid:`, `"serialNumber":"urn:uuid:0`), nil, "sbom/serial"},
		{"version 1.5", swap(`"specVersion":"1.6"`, `"specVersion":"1.5"`), nil, "sbom/version"},
		{"version 9", swap(`"specVersion":"1.6"`, `"specVersion":"9"`), nil, "sbom/malformed"},
		{"garbage", func() []byte { return []byte("garbage") }, nil, "sbom/malformed"},
		{"empty", func() []byte { return nil }, nil, "sbom/malformed"},
		{"another format", func() []byte { return []byte(`{"spdxVersion":"SPDX-2.3"}`) }, nil, "sbom/malformed"},
		{"truncated", func() []byte { return []byte(good[:len(good)-1]) }, nil, "sbom/malformed"},
		{"trailing data", func() []byte { return []byte(good + "{}") }, nil, "sbom/malformed"},
		{"too large", func() []byte { return append([]byte(good), bytes.Repeat([]byte(" "), sbom.MaxDocument)...) }, nil, "sbom/too-large"},
		{"duplicate key", swap(`"bomFormat"`, `"version":1,"bomFormat"`), nil, "sbom/malformed"},
		{"duplicate key in another case", swap(`"bomFormat"`, `"VERSION":1,"bomFormat"`), nil, "sbom/malformed"},
		{"key in another case", swap(`"components"`, `"Components"`), nil, "sbom/malformed"},
		{"deep", func() []byte { return []byte(strings.Repeat("[", 65) + strings.Repeat("]", 65)) }, nil, "sbom/too-large"},
		{"bom-ref twice", swap(`"bom-ref":"pkg:b"`, `"bom-ref":"pkg:a"`), nil, "sbom/malformed"},
		{"bom-ref of the subject", swap(`"bom-ref":"pkg:b"`, `"bom-ref":"`+tree().Subject.Digest+`"`), nil, "sbom/malformed"},
		{"white space", swap(`"version":1}`, `"version": 1}`), nil, "sbom/not-canonical"},
		{"escapes", swap(`"name":"a.txt"`, `"name":"\u0061.txt"`), nil, "sbom/not-canonical"},
		{"trailing newline", func() []byte { return []byte(good + "\n") }, nil, "sbom/not-canonical"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, expect := []byte(good), expected()
			if tt.doc != nil {
				if doc = tt.doc(); string(doc) == good {
					t.Fatal("nothing was changed")
				}
			}
			if tt.expect != nil {
				tt.expect(&expect)
			}
			_, err := sbom.Check(doc, expect)
			want(t, err, tt.code)
		})
	}
}

func TestReadLimitsComponentsOfAllLevels(t *testing.T) {
	nest := func(n int) []byte {
		return fmt.Appendf(nil, `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"p","components":[{}%s]}]}`, strings.Repeat(",{}", n-2))
	}
	if _, err := sbom.Read(nest(1000)); err != nil {
		t.Error(err)
	}
	_, err := sbom.Read(nest(sbom.MaxComponents + 1))
	want(t, err, "sbom/too-large")
}

// Foreign documents of older versions are read and counted too.
func TestReadOlderVersions(t *testing.T) {
	bom, err := sbom.Read([]byte(`{"bomFormat":"CycloneDX","specVersion":"1.4","version":1,
		"metadata":{"tools":[{"vendor":"v","name":"old","version":"0.1"}]},
		"components":[{"type":"library","name":"a","licenses":[{"expression":"MIT OR ISC"}]},{"type":"library","name":"b","licenses":[{"license":{"name":"house licence"}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := sbom.Count(bom)
	wanted := sbom.Report{
		SpecVersion: "1.4", Tools: []sbom.Tool{{Name: "old", Version: "0.1"}}, Components: 2, Packages: 2,
		Licences: map[string]int{"MIT OR ISC": 1, "house licence": 1},
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsCarryEvidence(t *testing.T) {
	expect := expected()
	expect.Time = expect.Time.Add(time.Second)
	_, err := sbom.Check(document(t), expect)
	e, ok := err.(*sbom.Error)
	if !ok {
		t.Fatal(err)
	}
	wanted := []string{`want:  "2026-03-14T15:09:27Z"`, `got:   "2026-03-14T15:09:26Z"`}
	if diff := cmp.Diff(wanted, e.Evidence()); diff != "" || e.Remedy() == "" {
		t.Error(diff, e.Remedy())
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(document(f))
	f.Add([]byte(`{"bomFormat":"CycloneDX","specVersion":"1.6","metadata":{"component":{"type":"file","name":"x"}}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		bom, err := sbom.Read(doc)
		_, skimmed, skimErr := sbom.Skim(opened(string(doc)))
		if (err == nil) != (skimErr == nil) || codeOf(err) != codeOf(skimErr) {
			t.Errorf("Read says %v, Skim %v", err, skimErr)
		} else if err == nil && !cmp.Equal(sbom.Count(bom), skimmed) {
			t.Errorf("Skim counts %+v", skimmed)
		}
		report, err := sbom.Check(doc, expected())
		if err != nil {
			if e, ok := err.(*sbom.Error); !ok || e.Code() == "" {
				t.Errorf("not one of our errors: %v", err)
			}
			return
		}
		if report.Serial != sbom.Serial(tree().Subject.Digest, moment()) || report.SpecVersion != "1.6" {
			t.Errorf("accepted %q", doc)
		}
	})
}
