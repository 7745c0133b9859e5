package main

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
)

// client speaks the API of one gate, wherever the gate runs.
type client struct {
	carry   http.RoundTripper
	account *account // who decides; nil: the user of the operating system
	close   func() error
}

// account is who decides.
type account struct {
	name     string
	password []byte
}

const apiRoot = "/api/v1/"

// maxAnswer bounds an answer that is no stream, in bytes.
const maxAnswer = 256 << 20

// overSocket is the client of a running serve.
func overSocket(s *site) *client {
	carry := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dialSocket(ctx) },
		DisableKeepAlives: true,
	}
	return &client{carry: carry, close: func() error { carry.CloseIdleConnections(); return nil }}
}

// call sends in, if it is not nil, and reads the answer into out, if it is
// not nil. The answer's header comes back.
func (c *client) call(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	response, err := c.send(ctx, method, path, in)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // opened for reading only
	b, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the gate's answer: %w", err)
	case len(b) > maxAnswer:
		return nil, fmt.Errorf("the gate's answer has more than %d bytes", maxAnswer)
	}
	switch out := out.(type) {
	case nil:
		return response.Header, nil
	case *[]byte:
		*out = b
		return response.Header, nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return nil, fmt.Errorf("the gate's answer to %s %s cannot be read: %w", method, path, err)
	}
	return response.Header, nil
}

// line is one line of a streamed answer: progress, and at the end a result, a
// problem, or both.
type line struct {
	Progress     jsontext.Value `json:"progress"`
	Problem      *refusal       `json:"problem"`
	Case         jsontext.Value `json:"case"`
	Verification jsontext.Value `json:"verification"`
}

// stream sends in and hands over each line of progress. It returns the last
// line. An answer that ends without one broke off.
func (c *client) stream(ctx context.Context, path string, in any, progress func(jsontext.Value) error) (last line, err error) {
	response, err := c.send(ctx, http.MethodPost, path, in)
	if err != nil {
		return line{}, err
	}
	defer func() { _ = response.Body.Close() }() // opened for reading only
	lines := jsontext.NewDecoder(response.Body)
	for {
		var l line
		err := json.UnmarshalDecode(lines, &l)
		if errors.Is(err, io.EOF) {
			return line{}, errors.Join(context.Cause(ctx), errors.New("the gate broke off its answer"))
		}
		if err != nil {
			return line{}, errors.Join(context.Cause(ctx), fmt.Errorf("the gate's answer cannot be read: %w", err))
		}
		if l.Progress == nil {
			return l, nil
		}
		if err := progress(l.Progress); err != nil {
			return line{}, err
		}
	}
}

// send sends a request and turns an answer that is a problem into an error.
func (c *client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://gate"+apiRoot+path, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.account != nil {
		r.SetBasicAuth(c.account.name, string(c.account.password))
	}
	response, err := c.carry.RoundTrip(r)
	if err != nil {
		return nil, errors.Join(context.Cause(ctx), fmt.Errorf("ask the gate: %w", err))
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }() // opened for reading only
	return nil, readRefusal(response)
}

// refusal is an answer that is a problem (RFC 9457): the error that the gate
// gave, with everything that a person needs to see of it.
type refusal struct {
	Detail string   `json:"detail"`
	Kind   string   `json:"code"`
	Lines  []string `json:"evidence"`
	Fix    string   `json:"remedy"`
}

func (r *refusal) Error() string { return r.Detail }

// Code is the stable code of this error.
func (r *refusal) Code() string { return r.Kind }

// Evidence is that of the error.
func (r *refusal) Evidence() []string { return r.Lines }

// Remedy is that of the error.
func (r *refusal) Remedy() string { return r.Fix }

const maxRefusal = 1 << 20

func readRefusal(response *http.Response) error {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	var r refusal
	if kind == "application/problem+json" {
		if err := json.UnmarshalRead(io.LimitReader(response.Body, maxRefusal), &r); err != nil {
			return fmt.Errorf("the gate answers %s, and why cannot be read: %w", response.Status, err)
		}
	}
	if r.Kind == "" || r.Detail == "" {
		return fmt.Errorf("the gate answers %s", response.Status)
	}
	return &r
}
