package signing

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/cjson"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// rootFormat is the format of the section x-packhof. A reader that does not
// know it refuses the root.
const rootFormat = "packhof.trust/v1"

// rootFile is a root as it stands in a file: TUF root metadata (specification
// 1.0.31) with one section of ours inside the signed part.
//
// The TUF roles timestamp, snapshot and targets must be there and name no key:
// nobody can sign them, and nothing here reads them.
type rootFile struct {
	Signatures []fileSignature `json:"signatures"`
	Signed     rootSigned      `json:"signed"`
}

type rootSigned struct {
	Type               string             `json:"_type"`
	SpecVersion        string             `json:"spec_version"`
	ConsistentSnapshot bool               `json:"consistent_snapshot"`
	Version            int                `json:"version"`
	Expires            string             `json:"expires"`
	Keys               map[string]tufKey  `json:"keys"`
	Roles              map[string]tufRole `json:"roles"`
	Packhof            trustSection       `json:"x-packhof"`
}

type tufKey struct {
	KeyType string `json:"keytype"`
	Scheme  string `json:"scheme"`
	KeyVal  struct {
		Public string `json:"public"`
	} `json:"keyval"`
}

type tufRole struct {
	KeyIDs    []string `json:"keyids"`
	Threshold int      `json:"threshold"`
}

type trustSection struct {
	Format     string                 `json:"format"`
	Keys       map[KeyID]fileKey      `json:"keys"`
	Roles      map[Role]fileRule      `json:"roles"`
	Channels   map[string]fileChannel `json:"channels"`
	Gates      map[string]fileGate    `json:"gates"`
	FloorReset string                 `json:"floorReset,omitzero"`
}

type fileKey struct {
	Owner     string    `json:"owner"`
	Algorithm Algorithm `json:"algorithm"`
	SPKI      []byte    `json:"spki"`
	NotBefore string    `json:"notBefore"`
	NotAfter  string    `json:"notAfter"`
}

type fileRule struct {
	KeyIDs    []KeyID `json:"keyids"`
	Threshold int     `json:"threshold"`
}

type fileChannel struct {
	Epoch    int      `json:"epoch"`
	Prefixes []string `json:"prefixes"`
}

type fileGate struct {
	Owner     string `json:"owner"`
	Recipient string `json:"recipient,omitzero"`
}

// decodeRoot reads a root and what go-tuf makes of the same bytes. Both views
// must write back to the same bytes, so that what go-tuf verifies is what is
// read here.
func decodeRoot(raw []byte) (*Root, error) {
	if len(raw) > MaxRoot {
		return nil, tooLarge(CodeBadRoot, "the trust root", len(raw), MaxRoot)
	}
	var file rootFile
	if err := decodeStrict(raw, &file); err != nil {
		return nil, badRoot(err)
	}
	if err := checkSignatureList(file.Signatures); err != nil {
		return nil, badRoot(err)
	}
	content, err := file.Signed.content()
	if err != nil {
		return nil, badRoot(err)
	}
	meta, err := tufView(raw)
	if err != nil {
		return nil, badRoot(err)
	}
	return &Root{raw: bytes.Clone(raw), meta: meta, file: file, content: content}, nil
}

func tufView(raw []byte) (*metadata.Metadata[metadata.RootType], error) {
	meta, err := new(metadata.Metadata[metadata.RootType]).FromBytes(raw)
	if err != nil {
		return nil, err
	}
	again, err := meta.ToBytes(false)
	if err != nil {
		return nil, err
	}
	if again, err = canonical(again); err != nil {
		return nil, err
	}
	return meta, sameBytes(again, raw)
}

// tufPayload is the bytes a TUF signature is made over: the signed part in the
// canonical JSON of the TUF specification.
func tufPayload(meta *metadata.Metadata[metadata.RootType]) ([]byte, error) {
	return cjson.EncodeCanonical(meta.Signed)
}

func (s rootSigned) content() (rootContent, error) {
	expires, err := parseTime("the expiry", s.Expires)
	if err != nil {
		return rootContent{}, err
	}
	c := rootContent{
		version: s.Version, expires: expires,
		keys: map[KeyID]Key{}, roles: map[Role]rule{}, channels: map[string]Channel{}, gates: map[string]Gate{},
	}
	if err := s.Packhof.fill(&c); err != nil {
		return rootContent{}, err
	}
	if c.signers, err = s.signers(); err != nil {
		return rootContent{}, err
	}
	if err := c.check(); err != nil {
		return rootContent{}, err
	}
	return c, s.checkTUF(&c)
}

func (t trustSection) fill(c *rootContent) (err error) {
	if t.Format != rootFormat {
		return fmt.Errorf("the format is %q, want %q", clip(t.Format), rootFormat)
	}
	for id, k := range t.Keys {
		if c.keys[id], err = k.key(id); err != nil {
			return fmt.Errorf("key %s: %w", id.Short(), err)
		}
	}
	for role, r := range t.Roles {
		c.roles[role] = rule{r.Threshold, r.KeyIDs}
	}
	for name, ch := range t.Channels {
		c.channels[name] = Channel{Name: name, Epoch: ch.Epoch, Prefixes: ch.Prefixes}
	}
	for id, g := range t.Gates {
		c.gates[id] = Gate{ID: id, Owner: g.Owner, Recipient: g.Recipient}
	}
	if t.FloorReset != "" {
		c.floorReset, err = parseTime("floorReset", t.FloorReset)
	}
	return err
}

func (k fileKey) key(id KeyID) (Key, error) {
	public, err := ParsePublicKey(k.SPKI)
	if err != nil {
		return Key{}, err
	}
	if public.spki != string(k.SPKI) || public.ID() != id || public.Algorithm() != k.Algorithm {
		return Key{}, fmt.Errorf("its id or algorithm does not fit it: it is %s of kind %s", public.ID(), public.Algorithm())
	}
	notBefore, err := parseTime("notBefore", k.NotBefore)
	if err != nil {
		return Key{}, err
	}
	notAfter, err := parseTime("notAfter", k.NotAfter)
	if err != nil {
		return Key{}, err
	}
	return Key{Public: public, Owner: k.Owner, NotBefore: notBefore, NotAfter: notAfter}, nil
}

// signers reads the TUF role root as key ids of ours. That each TUF key is
// exactly the one we would have written is for checkTUF to say.
func (s rootSigned) signers() (rule, error) {
	r := rule{threshold: s.Roles[metadata.ROOT].Threshold}
	for _, tufID := range s.Roles[metadata.ROOT].KeyIDs {
		public, err := ParsePublicKey([]byte(s.Keys[tufID].KeyVal.Public))
		if err != nil {
			return rule{}, fmt.Errorf("TUF key %s: %w", clip(tufID), err)
		}
		r.ids = append(r.ids, public.ID())
	}
	return r, nil
}

// checkTUF wants the TUF part to be what encode writes for the same content:
// the known specification, exactly the signers' keys under their recomputed
// ids, exactly the four roles.
func (s rootSigned) checkTUF(c *rootContent) error {
	want, err := c.encode()
	if err != nil {
		return err
	}
	wantRaw, err := encodeCanonical(want)
	if err != nil {
		return err
	}
	got, err := encodeCanonical(s)
	if err != nil {
		return err
	}
	if !bytes.Equal(wantRaw, got) {
		return errors.New("its TUF part (type, specification, keys, roles) does not fit its section x-packhof")
	}
	return nil
}

func (c *rootContent) encode() (rootSigned, error) {
	s := rootSigned{
		Type: metadata.ROOT, SpecVersion: metadata.SPECIFICATION_VERSION, ConsistentSnapshot: true,
		Version: c.version, Expires: formatTime(c.expires),
		Keys: map[string]tufKey{}, Roles: map[string]tufRole{},
		Packhof: c.section(),
	}
	for _, name := range []string{metadata.TIMESTAMP, metadata.SNAPSHOT, metadata.TARGETS} {
		s.Roles[name] = tufRole{KeyIDs: []string{}, Threshold: 1}
	}
	root := tufRole{Threshold: c.signers.threshold}
	for _, id := range c.signers.ids {
		tufID, key, err := tufKeyOf(c.keys[id].Public)
		if err != nil {
			return rootSigned{}, fmt.Errorf("key %s: %w", id.Short(), err)
		}
		s.Keys[tufID] = key
		root.KeyIDs = append(root.KeyIDs, tufID)
	}
	s.Roles[metadata.ROOT] = root
	return s, nil
}

func (c *rootContent) section() trustSection {
	t := trustSection{
		Format: rootFormat,
		Keys:   map[KeyID]fileKey{}, Roles: map[Role]fileRule{}, Channels: map[string]fileChannel{}, Gates: map[string]fileGate{},
	}
	for id, k := range c.keys {
		t.Keys[id] = fileKey{
			Owner: k.Owner, Algorithm: k.Public.Algorithm(), SPKI: k.Public.DER(),
			NotBefore: formatTime(k.NotBefore), NotAfter: formatTime(k.NotAfter),
		}
	}
	for role, r := range c.roles {
		t.Roles[role] = fileRule{KeyIDs: r.ids, Threshold: r.threshold}
	}
	for name, ch := range c.channels {
		t.Channels[name] = fileChannel{Epoch: ch.Epoch, Prefixes: ch.Prefixes}
	}
	for id, g := range c.gates {
		t.Gates[id] = fileGate{Owner: g.Owner, Recipient: g.Recipient}
	}
	if !c.floorReset.IsZero() {
		t.FloorReset = formatTime(c.floorReset)
	}
	return t
}

// tufKeyOf is a key and its id as TUF has them: the id is a hash of the key's
// JSON, not of its DER.
func tufKeyOf(public PublicKey) (string, tufKey, error) {
	key, err := metadata.KeyFromPublicKey(public.Key())
	if err != nil {
		return "", tufKey{}, err
	}
	id, err := key.ID()
	if err != nil {
		return "", tufKey{}, err
	}
	out := tufKey{KeyType: key.Type, Scheme: key.Scheme}
	out.KeyVal.Public = key.Value.PublicKey
	return id, out, nil
}

func badRoot(cause error) *Error {
	return newError(CodeBadRoot, "this is not a trust root of ours", cause)
}
