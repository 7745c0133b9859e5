package policy

import "fmt"

// Codes of Error.
const (
	codeTooLarge     = "policy/too-large"
	codeInvalidRule  = "policy/invalid-rule"
	codeUnknownFile  = "policy/unknown-file"
	codeInvalidData  = "policy/invalid-config"
	codeInvalidInput = "policy/invalid-input"
	codeInvalidReply = "policy/invalid-decision"
	codeUntested     = "policy/untested"
)

// Error is everything that can be wrong with a policy, its configuration, or
// a document it is about. It has a stable code:
//
//	policy/too-large         past one of the limits
//	policy/unknown-file      a file that is neither rule, test nor configuration
//	policy/invalid-rule      does not compile, or breaks the contract of rules
//	policy/invalid-config    configuration that no rule can have meant
//	policy/invalid-input     facts that do not fit the schema, or each other
//	policy/invalid-decision  a decision that contradicts itself or its input
//	policy/untested          a rule whose tests fail, or prove nothing
type Error struct {
	kind     string
	text     string
	evidence []string
	remedy   string
	cause    error
}

func fault(code, format string, args ...any) *Error {
	return &Error{kind: code, text: fmt.Sprintf(format, args...)}
}

func (e *Error) because(cause error) *Error {
	e.cause = cause
	return e
}

func (e *Error) with(lines ...string) *Error {
	e.evidence = append(e.evidence, lines...)
	return e
}

func (e *Error) hint(remedy string) *Error {
	e.remedy = remedy
	return e
}

func (e *Error) Error() string {
	if e.cause != nil {
		return e.text + ": " + e.cause.Error()
	}
	return e.text
}

// Unwrap returns the error underneath, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// Code returns the stable code.
func (e *Error) Code() string { return e.kind }

// Evidence returns file and line, or place and value, one a line.
func (e *Error) Evidence() []string { return e.evidence }

// Remedy returns the one thing to do, or "".
func (e *Error) Remedy() string { return e.remedy }
