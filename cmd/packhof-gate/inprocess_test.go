package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func carried(t *testing.T, ctx context.Context, handler http.HandlerFunc) (*http.Response, error) {
	t.Helper()
	carry := &inProcess{handler: handler, user: "root"}
	t.Cleanup(carry.wait)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gate/api/v1/cases?x=1", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	return carry.RoundTrip(r)
}

func TestInProcess(t *testing.T) {
	response, err := carried(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "hello" || peerOf(r) != "root" || r.URL.Path != "/api/v1/cases" || r.URL.Query().Get("x") != "1" {
			t.Errorf("the handler got %q of %q for %s, %v", body, peerOf(r), r.URL, err)
		}
		w.Header().Set("Kind", "before")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("Kind", "too late")
		w.WriteHeader(http.StatusOK)
		io.WriteString(w, "answer")
	})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "answer" || response.StatusCode != http.StatusTeapot || response.Header.Get("Kind") != "before" {
		t.Errorf("%s, %q, %v, %v", response.Status, body, response.Header, err)
	}
}

// What was written arrives before the handler ends.
func TestInProcessStreams(t *testing.T) {
	goOn := make(chan struct{})
	response, err := carried(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "first\n")
		<-goOn
		io.WriteString(w, "second\n")
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); line != "first\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	close(goOn)
	if line, err := lines.ReadString('\n'); line != "second\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

// An answer that broke off never looks like a whole one.
func TestInProcessCrash(t *testing.T) {
	response, err := carried(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half of it")
		panic(http.ErrAbortHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("%q came as if it were whole", body)
	}
	response, err = carried(t, t.Context(), func(http.ResponseWriter, *http.Request) { panic("at once") })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(response.Body); err == nil || response.StatusCode != http.StatusInternalServerError {
		t.Errorf("%s, %v", response.Status, err)
	}
}

func TestInProcessCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	response, err := carried(t, ctx, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if err == nil { // the handler may have ended before the cancellation was seen
		_, err = io.ReadAll(response.Body)
	}
	if ctx.Err() == nil {
		t.Error("it ended before it was cancelled")
	}
	_ = err // either way it ended; a hang would be a timeout of the test
}
