package gate

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// IssueReceipt makes the gate's signed statement of what it holds, to be carried
// back out: bundle.Receipt with the receipt key of enrol.json.
func (g *Gate) IssueReceipt(ctx context.Context, by Actor) ([]byte, error) {
	if err := by.needs(MayReceive); err != nil {
		return nil, err
	}
	signer, err := g.receiptSigner()
	if err != nil {
		return nil, err
	}
	r := &bundle.Receipt{Format: bundle.FormatReceipt, Gate: g.id, Created: bundle.At(g.clock()), Program: g.program, Reads: bundle.Reads()}
	err = g.snapshot(ctx, func(v *view) (err error) {
		r.Channels, err = g.receiptChannels(ctx, v)
		return err
	})
	if err != nil {
		return nil, err
	}
	signed, err := bundle.SignReceipt(ctx, signer, r)
	if err != nil {
		return nil, err
	}
	return signed, g.step(ctx, "receipt", func(t *tx) error {
		return t.log(ctx, leaf{Actor: by.Name(), Type: "receipt.issued", Outcome: outcomeOK, Detail: cas.DigestOf(signed).String()})
	})
}

func (g *Gate) receiptChannels(ctx context.Context, v *view) ([]bundle.ReceiptChannel, error) {
	channels, err := rowsOf(ctx, v, func(s scanner) (bundle.ReceiptChannel, error) {
		c := bundle.ReceiptChannel{Bundles: []bundle.ReceiptBundle{}}
		return c, s.Scan(&c.Channel, &c.Epoch, &c.Serial)
	}, `SELECT name, epoch, serial FROM channel ORDER BY name`)
	if err != nil {
		return nil, err
	}
	left := room(mostLacks)
	for i := range channels {
		if err := g.sealed(ctx, v, channelSubject(channels[i].Channel)); err != nil {
			return nil, err
		}
		if channels[i].Bundles, err = g.receiptBundles(ctx, v, channels[i].Channel, &left); err != nil {
			return nil, err
		}
	}
	return append([]bundle.ReceiptChannel{}, channels...), nil
}

// receiptBundles tells, for every bundle of a channel that was accepted, how
// much of it is here. Of one whose row cannot be right nothing counts as held.
func (g *Gate) receiptBundles(ctx context.Context, v *view, channel string, left *room) ([]bundle.ReceiptBundle, error) {
	accepted, err := rowsOf(ctx, v, func(s scanner) (bundle.ReceiptBundle, error) {
		b := bundle.ReceiptBundle{State: bundle.HoldsNone}
		var manifest digestColumn
		err := s.Scan(&b.Epoch, &b.Serial, &manifest)
		b.Manifest = manifest.value()
		return b, err
	}, `SELECT epoch, serial, manifest FROM serial WHERE channel = ? AND manifest IS NOT NULL ORDER BY epoch, serial`, channel)
	if err != nil {
		return nil, err
	}
	list := []bundle.ReceiptBundle{}
	for _, b := range accepted {
		r, err := liveRow(ctx, v, b.Manifest)
		switch {
		case isRowDamaged(err):
		case err != nil:
			return nil, err
		case r != nil:
			if b.State, b.Lacks, err = g.holds(ctx, v, r, left); err != nil {
				return nil, err
			}
		}
		list = append(list, b)
	}
	return list, nil
}

// maxLacks is how much of a bundle may be lacking and be listed; beyond that,
// none of it counts as held.
const maxLacks = 10_000

// mostLacks is how much may be lacking of all bundles together and be listed: a
// receipt has a size to keep, and a bundle that finds no room counts as not held.
const mostLacks = 50_000

// room is how many pieces that are lacking a receipt can still list.
type room int

// take tells whether a bundle that lacks n pieces can be listed, and makes it so.
func (r *room) take(n int) bool {
	if n > maxLacks || n > int(*r) {
		return false
	}
	*r -= room(n)
	return true
}

// nobodyVouches tells whether an error says that a bundle is not one that the
// gate trusts, any more; everything else is a failure of ours.
func nobodyVouches(err error) bool {
	if err == nil {
		return false
	}
	var untrusted *signing.UntrustedError
	var signed *signing.Error
	code := asProblem(err).Code
	return errors.As(err, &untrusted) || errors.As(err, &signed) || strings.HasPrefix(code, "bundle/") || strings.HasPrefix(code, "signing/")
}

// holds tells how much of a case's content is here. A bundle that nobody vouches
// for any more counts for nothing, nor does one whose head was spoilt.
func (g *Gate) holds(ctx context.Context, q queryer, r *row, left *room) (bundle.Holding, []bundle.Piece, error) {
	v, err := g.bundleOf(ctx, q, r.ID)
	if nobodyVouches(err) || isRowDamaged(err) {
		return bundle.HoldsNone, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	lacks, err := v.bundle.StoreLacks(g.store)
	switch {
	case err != nil:
		return "", nil, err
	case len(lacks) == 0:
		return bundle.HoldsAll, nil, nil
	case !left.take(len(lacks)):
		return bundle.HoldsNone, nil, nil
	}
	return bundle.HoldsPart, lacks, nil
}

// WantList says what of a case's bundle is lacking here, to be carried back out.
func (g *Gate) WantList(ctx context.Context, by Actor, id CaseID) ([]byte, error) {
	if err := by.needs(MayReceive); err != nil {
		return nil, err
	}
	if _, err := rowOf(ctx, g.db.read, id); err != nil {
		return nil, err
	}
	v, err := g.bundleOf(ctx, g.db.read, id)
	if err != nil {
		return nil, err
	}
	lacks, err := v.bundle.StoreLacks(g.store)
	if err != nil {
		return nil, err
	}
	if len(lacks) == 0 {
		return nil, problem.New("case/whole", "nothing of the bundle of case %d is lacking", id).Hint("packhof-gate show %d", id)
	}
	return bundle.EncodeWant(bundle.NewWant(g.id, bundle.At(g.clock()), v.bundle.Manifest(), v.bundle.Digest(), lacks))
}

// receiptKey signs receipts.
type receiptKey struct {
	key    *ecdsa.PrivateKey
	public signing.PublicKey
}

// Public implements signing.Signer.
func (k *receiptKey) Public() signing.PublicKey { return k.public }

// SignDigest implements signing.Signer, by RFC 6979.
func (k *receiptKey) SignDigest(_ context.Context, digest [32]byte) ([]byte, error) {
	return k.key.Sign(nil, digest[:], crypto.SHA256)
}

// receiptSigner reads the key that signs receipts, which must be the one that
// the connected side has enrolled.
func (g *Gate) receiptSigner() (*receiptKey, error) {
	enrolment, err := readEnrolment(g.dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(g.dir, dirKeys, fileReceiptKey)
	b, err := cas.ReadPlain(path, maxKeyFile)
	unusable := problem.New("gate/receipt-key", "%s is not the key of receipts that enrol.json names", path).Hint("bring both back from one backup")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, unusable.With("missing:  " + path)
	case err != nil:
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, unusable
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil, unusable
	}
	spki, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil || !bytes.Equal(spki, enrolment.Receipt.SPKI) {
		return nil, unusable
	}
	public, err := signing.NewPublicKey(&key.PublicKey)
	return &receiptKey{key, public}, err
}
