// Package judge runs the policy engine in a bounded child process, so that a
// rule which never ends, or wants all memory, ends in a decision that blocks
// and not in a gate that stands still. What evaluates rules of a plant runs
// there: judging, and the tests that prove them.
//
// It never lets anything through by itself: a child that crashes, takes too
// long, or answers something else than was asked gives a decision with the
// verdict "error", or a policy that is not proven.
package judge

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/packhof/packhof/internal/child"
	"github.com/packhof/packhof/policy"
)

// Defaults of Child.
const (
	DefaultTimeout      = 10 * time.Second
	DefaultProofTimeout = 2 * time.Minute
	DefaultMemory       = 512 << 20 // bytes
)

// collectEarly has a child collect garbage when half as much as is alive has
// come: large facts are alive to the end, and for as much again there is often
// no room.
const collectEarly = "GOGC=50"

// maxRequest holds the facts, the rules and their configuration, escaped as
// JSON text, which doubles it at worst for what a policy may contain.
const maxRequest = policy.MaxInput + 2*(policy.MaxPolicySize+policy.MaxConfigSize) + 1<<20

// Child says how to run a judge: a program that calls Serve on its standard
// streams, usually this program itself with a hidden command.
type Child struct {
	Program string   // absolute path
	Args    []string // such as the name of the hidden command
	Env     []string // "NAME=value"; all that the child sees of an environment, besides what bounds its memory
	WorkDir string   // absolute, exists; a folder is made in it for each run and removed; "": the system's

	Timeout      time.Duration // for a decision and all around it; 0: DefaultTimeout
	ProofTimeout time.Duration // for a proof and all around it; 0: DefaultProofTimeout
	Memory       int64         // bytes of private memory; 0: DefaultMemory
}

// What a child can be asked to do.
const (
	taskJudge = "judge"
	taskProve = "prove"
)

// request is what a child reads. The digest is what the caller means to have
// judged by, or proven; the child refuses to work on anything else.
type request struct {
	Task         string        `json:"task"`
	Source       policy.Source `json:"source"`
	PolicyDigest string        `json:"policyDigest"` // to prove: of the source with its tests
	Milliseconds int64         `json:"milliseconds"` // for the work itself

	facts *policy.Input // to judge: what follows the request on its stream
}

// Evaluate judges an input by the rules of a source. What goes wrong with the
// child or with the policy is in the decision. The error is about the caller:
// an input that is none, a work directory that cannot be used, or the end of
// its context.
func (c Child) Evaluate(ctx context.Context, s policy.Source, in *policy.Input) (*policy.Decision, error) {
	policyDigest, err := s.Digest()
	if err != nil {
		return nil, err
	}
	header, err := json.Marshal(request{
		Task: taskJudge, Source: policy.Source{Modules: s.Rules(), Config: s.Config}, PolicyDigest: policyDigest,
		Milliseconds: workingTime(c.timeout()).Milliseconds(),
	})
	if err != nil {
		return nil, fmt.Errorf("request to the judge: %w", err)
	}
	ask, inputDigest, err := in.Append(append(header, '\n'))
	if err != nil {
		return nil, err
	}
	failed := func(message string) *policy.Decision {
		return policy.FailedDecision(policyDigest, inputDigest, policy.Failure{Message: message})
	}
	answer, err := c.run(ctx, ask, c.timeout())
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("judging: %w", context.Cause(ctx))
		}
		if e, ok := errors.AsType[*child.Error](err); ok {
			return failed(describe(e)), nil
		}
		return nil, err
	}
	d, err := policy.DecodeDecision(answer, policyDigest, inputDigest)
	if err != nil {
		return failed("the judge's answer does not count: " + err.Error()), nil
	}
	return d, nil
}

// workingTime leaves the child time to say what took too long.
func workingTime(whole time.Duration) time.Duration { return whole / 4 * 3 }

func (c Child) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return DefaultTimeout
}

func (c Child) run(ctx context.Context, ask []byte, most time.Duration) (answer []byte, err error) {
	work, err := newFolder(c.WorkDir)
	if err != nil {
		return nil, fmt.Errorf("work directory of the judge: %w", err)
	}
	defer func() {
		if removeErr := work.remove(); err == nil && removeErr != nil {
			err = fmt.Errorf("work directory of the judge: %w", removeErr)
		}
	}()
	memory := c.Memory
	if memory <= 0 {
		memory = DefaultMemory
	}
	result, err := child.Run(ctx, child.Spec{
		Path: c.Program, Args: c.Args, Env: append(slices.Clip(c.Env), collectEarly), Dir: work.path, Stdin: ask,
		MaxOutput: policy.MaxDecision, MaxData: memory, MaxFile: 1, Timeout: most, NoNetwork: true,
	})
	return result.Stdout, err
}

// describe says what became of the child, with the last it said.
func describe(e *child.Error) string {
	text := "the judge failed: " + e.Error()
	if evidence := e.Evidence(); len(evidence) > 0 {
		text += ": " + evidence[len(evidence)-1]
	}
	return text
}

// Serve is the child's side: it reads one request, does the task, and writes
// one answer: a decision, or a proof. An error means that nothing was written; the caller prints it to
// standard error and ends with an exit code that is not 0.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ask, err := readRequest(in)
	if err != nil {
		return err
	}
	answer, err := ask.work(ctx)
	if err != nil {
		return err
	}
	if _, err := out.Write(answer); err != nil {
		return fmt.Errorf("answer of the judge: %w", err)
	}
	return nil
}

func readRequest(in io.Reader) (*request, error) {
	limited := &io.LimitedReader{R: in, N: maxRequest + 1}
	ask, err := decodeRequest(jsontext.NewDecoder(limited))
	if limited.N <= 0 {
		return nil, fmt.Errorf("the request to the judge has more than %d bytes", maxRequest)
	}
	if err != nil {
		return nil, fmt.Errorf("request to the judge: %w", err)
	}
	if ask.Milliseconds <= 0 {
		return nil, fmt.Errorf("the request to the judge gives no time")
	}
	return ask, nil
}

// decodeRequest reads a request, the facts behind one to judge, and nothing
// behind that.
func decodeRequest(d *jsontext.Decoder) (*request, error) {
	var ask request
	err := json.UnmarshalDecode(d, &ask, json.RejectUnknownMembers(true))
	if err != nil {
		return nil, err
	}
	if ask.Task == taskJudge {
		if ask.facts, err = policy.ReadInput(d); err != nil {
			return nil, err
		}
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, errors.New("something follows it")
	}
	return &ask, nil
}

func (r *request) work(ctx context.Context) ([]byte, error) {
	switch r.Task {
	case taskJudge:
		d, err := r.judge(ctx)
		if err != nil {
			return nil, err
		}
		return d.Encode()
	case taskProve:
		return r.prove(ctx)
	}
	return nil, fmt.Errorf("the judge knows no task %.80q", r.Task)
}

// bounded gives a context that ends when time or memory run out; stop ends the
// watching.
func (r *request) bounded(ctx context.Context) (watched context.Context, stop func()) {
	limit := time.Duration(r.Milliseconds) * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("took longer than %s", limit))
	ctx, unwatch := within(ctx)
	return ctx, func() { unwatch(); cancel() }
}

// judge gives a decision that failed where the policy is at fault, so that the
// reason reaches people whole.
func (r *request) judge(ctx context.Context) (*policy.Decision, error) {
	in := r.facts
	r.facts = nil // so that nothing but the work holds them
	ctx, stop := r.bounded(ctx)
	defer stop()
	p, err := policy.Compile(ctx, r.Source)
	if err != nil {
		inputDigest, digestErr := in.Digest()
		if digestErr != nil {
			return nil, digestErr
		}
		return policy.FailedDecision(r.PolicyDigest, inputDigest, policy.Failure{Message: whole(err)}), nil
	}
	if p.Digest() != r.PolicyDigest {
		return nil, fmt.Errorf("asked to judge by %.80q with the rules of %s", r.PolicyDigest, p.Digest())
	}
	return p.Evaluate(ctx, in)
}

// whole is an error with its evidence in one line.
func whole(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*policy.Error](err); ok {
		for _, line := range e.Evidence() {
			text += "; " + line
		}
	}
	return text
}
