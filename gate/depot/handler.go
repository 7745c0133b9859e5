package depot

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

// Options are what a server may be given besides its store.
type Options struct {
	// Clock tells how old a proof is. Without one, nothing is remembered and
	// every whole blob is proven anew.
	Clock func() time.Time
	// Log hears of content that is damaged and of a store that does not
	// answer; nil for nobody. What clients do wrong is told to them alone.
	Log *slog.Logger
}

// server answers plant clients.
type server struct {
	store  gate.DepotStore
	prover *prover
	log    *slog.Logger
	// patience is how long a client may take for a piece of a list.
	patience time.Duration
}

// Handler answers /v2/ and /files/ from what the store gives, and 404
// elsewhere. It is read-only: every method but GET and HEAD is refused. What
// store.Open gives must have a method Stat, as an *os.File has, and should be
// one, so that the kernel can send it.
func Handler(store gate.DepotStore, o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &server{store: store, prover: newProver(store.Open, o.Clock), log: o.Log, patience: time.Minute}
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	// Whatever a browser is made to fetch here, it neither guesses nor runs.
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("Referrer-Policy", "no-referrer")
	switch {
	case r.URL.Path == "/v2" || strings.HasPrefix(r.URL.Path, "/v2/"):
		s.serveOCI(w, r)
	case strings.HasPrefix(r.URL.Path, "/files/"):
		s.serveFiles(w, r)
	default:
		s.tellText(w, r, &refusal{status: http.StatusNotFound, message: "there is nothing here; see /v2/ and /files/"})
	}
}

// readOnly refuses every method that could write.
func readOnly(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	w.Header().Set("Allow", "GET, HEAD")
	return &refusal{http.StatusMethodNotAllowed, "UNSUPPORTED", "the depot is read-only: content comes in through the gate"}
}

// plainSlashes refuses a slash that hides in an escape: names and paths would
// have two spellings, and a proxy in front may take it for another path.
func plainSlashes(r *http.Request) error {
	if strings.Contains(strings.ToLower(r.URL.EscapedPath()), "%2f") {
		return &refusal{http.StatusBadRequest, "NAME_INVALID", "a slash is written as /, not as %2F"}
	}
	return nil
}

// refusal is an answer that is no content: what the client did wrong, or what
// it cannot have.
type refusal struct {
	status  int
	code    string // of the OCI distribution specification
	message string
}

func (e *refusal) Error() string { return e.message }

// refusalOf says what to tell a client about an error. Of what went wrong
// inside it learns only that something did; the log gets the rest. unknown is
// the code of what is not there.
func (s *server) refusalOf(r *http.Request, err error, unknown string) *refusal {
	var known *refusal
	var missing *gate.NotReleasedError
	var denied *gate.DeniedError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &missing):
		return &refusal{http.StatusNotFound, unknown, missing.Error()}
	case errors.As(err, &denied):
		return &refusal{http.StatusForbidden, "DENIED", denied.Error()}
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // nobody is there to be told
	}
	s.trouble(r.Context(), r.URL.Path, err)
	return &refusal{http.StatusInternalServerError, "UNKNOWN", "the depot cannot give this at the moment; its operator can read why in the log"}
}

// trouble tells the operator.
func (s *server) trouble(ctx context.Context, path string, err error) {
	attrs := []any{slog.String("path", path), slog.Any("error", err)}
	if code := problem.CodeOf(err); code != "" {
		attrs = append(attrs, slog.String("code", code))
	}
	if evidence := problem.EvidenceOf(err); evidence != nil {
		attrs = append(attrs, slog.Any("evidence", evidence))
	}
	s.log.ErrorContext(ctx, "the depot refuses to give content", attrs...)
}
