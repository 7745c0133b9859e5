package main

import (
	"encoding/json/jsontext"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/cli"
)

func clientOf(t *testing.T, handler http.HandlerFunc) *client {
	t.Helper()
	carry := &inProcess{handler: handler, user: "root"}
	t.Cleanup(carry.wait)
	return &client{carry: carry, close: func() error { return nil }}
}

func answering(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// A problem becomes the error it was: the same code, and so the same exit
// code, evidence and remedy as in process.
func TestRefusals(t *testing.T) {
	whole := `{"title":"Conflict","status":409,"detail":"case 1 waits for approval","code":"case/waiting","evidence":["approvals:  0 of 1"],"remedy":"approve it","more":1}`
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		text    string
		code    string
		exit    int
	}{
		"problem":             {answering(409, "application/problem+json", whole), "case 1 waits for approval", "case/waiting", cli.ExitWaiting},
		"with a charset":      {answering(409, "application/problem+json; charset=utf-8", whole), "case 1 waits for approval", "case/waiting", cli.ExitWaiting},
		"no code":             {answering(500, "application/problem+json", `{"detail":"x"}`), "the gate answers 500 Internal Server Error", "failed", cli.ExitFailed},
		"of another type":     {answering(403, "text/plain", "nobody knows who asks"), "the gate answers 403 Forbidden", "failed", cli.ExitFailed},
		"torn":                {answering(409, "application/problem+json", whole[:40]), "the gate answers 409 Conflict, and why cannot be read", "failed", cli.ExitFailed},
		"an unknown new code": {answering(409, "application/problem+json", `{"detail":"x","code":"new/code"}`), "x", "new/code", cli.ExitFailed},
	} {
		_, err := clientOf(t, c.handler).call(t.Context(), http.MethodGet, "cases/1", nil, nil)
		if err == nil || !strings.HasPrefix(err.Error(), c.text) || cli.CodeOf(err) != c.code || cli.ExitOf(err) != c.exit {
			t.Errorf("%s: %v, code %s, exit %d", name, err, cli.CodeOf(err), cli.ExitOf(err))
		}
	}
	_, err := clientOf(t, answering(409, "application/problem+json", whole)).call(t.Context(), http.MethodGet, "cases/1", nil, nil)
	got, ok := err.(*refusal)
	want := &refusal{Detail: "case 1 waits for approval", Kind: "case/waiting", Lines: []string{"approvals:  0 of 1"}, Fix: "approve it"}
	if !ok || cmp.Diff(want, got) != "" {
		t.Errorf("got %+v", err)
	}
}

func TestStreams(t *testing.T) {
	const progress = `{"progress":{"case":1,"phase":"copy","done":1,"total":2}}` + "\n"
	for name, c := range map[string]struct {
		body  string
		lines int
		last  string // the case of the last line
		err   string
	}{
		"progress, then a case":   {progress + progress + `{"case":{"id":1}}` + "\n", 2, `{"id":1}`, ""},
		"a case at once":          {`{"case":{"id":1}}`, 0, `{"id":1}`, ""},
		"a problem with its case": {`{"problem":{"detail":"x","code":"policy/denied"},"case":{"id":1}}`, 0, `{"id":1}`, ""},
		"broken off":              {progress, 1, "", "broke off its answer"},
		"torn":                    {progress + progress[:20], 1, "", "cannot be read"},
		"nothing":                 {"", 0, "", "broke off its answer"},
		"something else":          {"<html>", 0, "", "cannot be read"},
	} {
		lines := 0
		last, err := clientOf(t, answering(200, "application/x-ndjson", c.body)).stream(t.Context(), "cases", nil, func(jsontext.Value) error { lines++; return nil })
		if lines != c.lines || string(last.Case) != c.last || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d lines, %s, %v", name, lines, last.Case, err)
		}
	}
}

// A password travels with the request, and nowhere else.
func TestAccountOfARequest(t *testing.T) {
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if name, secret, ok := r.BasicAuth(); !ok || name != "anna" || secret != "geheim:wort" {
			t.Errorf("%q, %q, %v", name, secret, ok)
		}
	})
	c.account = &account{"anna", []byte("geheim:wort")}
	if _, err := c.call(t.Context(), http.MethodGet, "cases", nil, nil); err != nil {
		t.Error(err)
	}
}
