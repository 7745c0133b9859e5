package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"io"
	"time"
)

// MaxInput bounds the input document, in bytes.
const MaxInput = 32 << 20

// DecodeInput reads an input document: within MaxInput, no property missing,
// unknown or twice, every value within its bounds, and no fact contradicting
// another. Errors are *Error with code policy/invalid-input or
// policy/too-large.
func DecodeInput(document []byte) (*Input, error) {
	if err := checkForm(document); err != nil {
		return nil, err
	}
	var in Input
	if err := json.Unmarshal(document, &in, json.RejectUnknownMembers(true)); err != nil {
		return nil, fault(codeInvalidInput, "the facts do not fit their schema").because(err)
	}
	if err := in.consistent(); err != nil {
		return nil, err
	}
	return &in, nil
}

// checkForm holds the limit and the schema.
func checkForm(document []byte) error {
	if len(document) > MaxInput {
		return fault(codeTooLarge, "the facts have %d bytes, more than the %d allowed", len(document), MaxInput)
	}
	d := jsontext.NewDecoder(bytes.NewReader(document))
	if err := inputSchema().check(d); err != nil {
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return fault(codeInvalidInput, "something follows the facts")
	}
	return nil
}

// ReadInput reads the next value of a stream as an input that another process
// of this program wrote with Append: it may be large, so it is read once and
// never held as a document. What is missing or unknown in it shows in its
// digest; values that are out of bounds, or facts that contradict each other,
// are found when it is judged.
func ReadInput(d *jsontext.Decoder) (*Input, error) {
	var in Input
	if err := json.UnmarshalDecode(d, &in, json.RejectUnknownMembers(true)); err != nil {
		return nil, fault(codeInvalidInput, "the facts do not fit their schema").because(err)
	}
	return &in, nil
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// claim is a statement about facts that must hold whatever rules say.
type claim struct {
	holds bool
	text  string
}

func firstBroken(of string, claims []claim) error {
	for _, c := range claims {
		if !c.holds {
			return fault(codeInvalidInput, "the facts contradict each other: %s", c.text).with("of:  " + Visible(of))
		}
	}
	return nil
}

// consistent refuses facts by which something could look decided that is not:
// these hold in Go so that no rule has to think of them.
func (in *Input) consistent() error {
	if err := in.consistentBundle(); err != nil {
		return err
	}
	for i := range in.Artifacts {
		if err := in.Artifacts[i].consistent(); err != nil {
			return err
		}
	}
	return nil
}

func (in *Input) consistentBundle() error {
	b, t := in.Bundle, in.Time
	floor, floorErr := time.Parse(instantForm, string(t.Floor))
	wall, wallErr := time.Parse(instantForm, string(t.Wall))
	_, createdErr := time.Parse(instantForm, string(b.Created))
	_, expiresErr := time.Parse(instantForm, string(b.Expires))
	claims := []claim{
		{floorErr == nil && wallErr == nil && createdErr == nil && expiresErr == nil, "floor, wall, created and expires are times"},
		{t.SkewSeconds == int64(wall.Sub(floor)/time.Second), "the skew is wall minus floor"},
		{b.Threshold > 0 && int64(len(b.Signers)) >= b.Threshold, "as many vouched for the bundle as must"},
		{len(b.Audience) > 0, "a bundle has an audience"},
		{b.Kind == "control" || len(in.Artifacts) > 0 || len(b.Omitted) > 0, "a bundle of content has artifacts"},
		{b.Kind == "content" || len(in.Artifacts) == 0, "a control bundle has no artifacts"},
	}
	for _, s := range b.Signers {
		_, beforeErr := time.Parse(instantForm, string(s.NotBefore))
		_, afterErr := time.Parse(instantForm, string(s.NotAfter))
		claims = append(claims, claim{beforeErr == nil && afterErr == nil, "a signer's key has a time of validity"})
	}
	return firstBroken("the bundle", claims)
}

func (a *Artifact) consistent() error {
	isImage := a.Kind == "image"
	layered := isImage || a.Kind == "chart" // not made of plain files
	claims := []claim{
		{len(a.SBOM) > 0, "every artifact says of its SBOM whether it is there"},
		{isImage == (a.Image.Status != "not-applicable"), "an image, and nothing else, has configs"},
		{a.Image.Status != "read" || len(a.Image.Configs) > 0, "an image whose configs were read has some"},
		{a.Image.Status == "read" || len(a.Image.Configs) == 0 && (a.Image.Reason != "" || !isImage), "configs that were not read have a reason instead"},
		{layered || a.Inspection.Status != "not-applicable", "only images and charts are not looked into file by file"},
		{(a.Change.State == "new") == (a.Change.FromDigest == ""), "an artifact that is not new has a former digest, and a new one has none"},
		{a.Change.State != "unchanged" || a.Change.FromDigest == a.Digest, "an unchanged artifact has the digest it had"},
		{(a.Origin.Transport == "local") == (a.Origin.Host == ""), "what did not come from a local disk came from a host"},
	}
	for _, c := range a.Image.Configs {
		claims = append(claims, claim{(c.Status == "read") == (c.Reason == ""), "a config that was not read has a reason"})
	}
	for _, s := range a.SBOM {
		claims = append(claims,
			claim{s.Status == "present" || !s.Bound && s.Format == "", "only an SBOM that is present is bound or has a format"},
			claim{(s.Status == "present" && s.Bound) == (s.Reason == ""), "an SBOM that is not there, or not bound, has a reason"})
	}
	for _, s := range a.Signatures {
		claims = append(claims, claim{s.Verified == (s.By != "") && s.Verified == (s.Reason == ""), "a signature is verified by someone, or has a reason why not"})
	}
	claims = append(claims, a.Inspection.claims()...)
	for _, r := range a.Referrers {
		claims = append(claims, claim{r.Inspection.Status != "not-applicable", "what referrers hold is looked into"})
		claims = append(claims, r.Inspection.claims()...)
	}
	return firstBroken(a.Kind+" "+a.Name, claims)
}

func (i *Inspection) claims() []claim {
	claims := []claim{
		{(i.Status == "done") == (i.Reason == ""), "an inspection that is not done has a reason, and one that is done has none"},
		{i.Status != "done" || len(i.Files) > 0, "an inspection that is done has looked into files"},
	}
	for _, f := range i.Files {
		claims = append(claims,
			claim{f.Unreadable == (f.Reason != ""), "a file that could not be looked into has a reason"},
			claim{i.Status != "done" || f.Format != "" || f.Unreadable, "a file that was looked into has a format"})
	}
	return claims
}
