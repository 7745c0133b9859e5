package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/s3"
)

// Put implements gate.Sink. New objects get their names at once, since no
// SHA256SUMS lists them yet; content for which there is another object waits in
// the staging area. Objects with the right size and recorded digest are kept.
// Uploads of this artifact that a killed process left are ended first. Objects
// arrive in no order: none counts before the list.
func (s *Sink) Put(ctx context.Context, r *gate.Release, a bundle.Artifact) (gate.Receipt, error) {
	t, err := s.treeOf(r, a)
	if err != nil {
		return gate.Receipt{}, s.explain(err)
	}
	p := &putting{sink: s, release: r, tree: t}
	if err := p.all(ctx); err != nil {
		return p.counted.Receipt(""), s.explain(err)
	}
	return p.counted.Receipt(s.client.Location(folder(t.name))), nil
}

// putting is one Put.
type putting struct {
	sink    *Sink
	release *gate.Release
	tree    *tree
	listed  sums            // by what is published under the name; nil if nothing is
	there   map[string]bool // keys below the name

	counted gate.Counting
}

func (p *putting) all(ctx context.Context) error {
	list, err := p.sink.published(ctx, p.tree.key(sumsName))
	if err != nil {
		return err
	}
	if err := p.abortStale(ctx); err != nil {
		return err
	}
	if list != nil {
		p.listed = list.paths
	}
	if err := p.begin(ctx, list); err != nil {
		return err
	}
	// One listing tells for a thousand objects what is worth a question.
	p.there = map[string]bool{}
	for info, err := range p.sink.client.List(ctx, folder(p.tree.name)) {
		if err != nil {
			return err
		}
		p.there[info.Key] = true
	}
	return each(ctx, p.tree.objects, p.object)
}

func (p *putting) abortStale(ctx context.Context) error {
	waiting := map[string]bool{}
	for _, o := range p.tree.objects {
		waiting[staged(o.digest)] = true
	}
	_, err := p.sink.client.AbortStale(ctx, "", func(u s3.Upload) bool {
		return strings.HasPrefix(u.Key, folder(p.tree.name)) || waiting[u.Key]
	})
	return err
}

// begin writes down what this load is about to bring.
func (p *putting) begin(ctx context.Context, list *published) error {
	own := listObject(p.tree)
	if list != nil && list.digest == own.digest {
		return nil
	}
	key := p.tree.key(listFolder + own.digest.Hex())
	if _, _, same, err := p.sink.holds(ctx, key, own); err != nil || same {
		return err
	}
	return p.sink.client.Put(ctx, key, bytes.NewReader(own.content), own.size, s3.Options{SHA256: own.digest})
}

func (p *putting) object(ctx context.Context, o object) error {
	key := p.tree.key(o.path)
	if !p.there[key] {
		return p.send(ctx, key, o)
	}
	info, there, same, err := p.sink.holds(ctx, key, o)
	if err != nil {
		return err
	}
	listed, isListed := p.listed[o.path]
	switch {
	case same:
		p.counted.Kept()
		return nil
	case !there:
		return p.send(ctx, key, o)
	case !isListed && info.SHA256.IsZero():
		return p.sink.foreign(key)
	case isListed && listed == o.digest: // spoilt since it was published
		return p.send(ctx, key, o)
	}
	return p.stage(ctx, o)
}

// stage brings content that Publish will put in the place of other content.
func (p *putting) stage(ctx context.Context, o object) error {
	key := staged(o.digest)
	_, _, same, err := p.sink.holds(ctx, key, o)
	if err != nil {
		return err
	}
	if same {
		p.counted.Kept()
		return nil
	}
	return p.send(ctx, key, o)
}

func (p *putting) send(ctx context.Context, key string, o object) (err error) {
	var content io.Reader = bytes.NewReader(o.content)
	options := s3.Options{SHA256: o.digest}
	switch {
	case o.content == nil:
		blob, err := p.release.OpenFile(ctx, o.file())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, blob.Close()) }()
		content = blob
	default:
		options.ContentType = "application/json"
	}
	if err := p.sink.client.Put(ctx, key, content, o.size, options); err != nil {
		return err
	}
	p.counted.Moved(o.size)
	return nil
}
