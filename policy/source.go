package policy

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a policy, checked before anything of it is parsed.
const (
	MaxModules     = 512
	MaxModuleSize  = 256 << 10 // bytes
	MaxPolicySize  = 4 << 20   // bytes of all modules
	MaxConfigSize  = 1 << 20   // bytes of config.json
	maxConfigTerms = 100_000   // values, each element of a list counted
)

// ConfigFile is the name of the configuration beside the rules.
const ConfigFile = "config.json"

// Source is a policy as it is written: rules, their tests, and the parameters
// that rules read as data.packhof.config. There is no other data, so nothing
// that came with an artifact can get into it.
type Source struct {
	// Modules are Rego texts by file name, without folders: "x.rego" is the
	// rule x, "x_test.rego" its tests.
	Modules map[string]string `json:"modules"`
	// Config has text, numbers, truth values, and lists of them.
	Config map[string]any `json:"config"`
}

// ReadSource reads the files of a folder: *.rego and config.json. Any other
// file, and any folder, is refused: it would seem to count and would not.
func ReadSource(dir fs.FS) (Source, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return Source{}, fmt.Errorf("policy: %w", err)
	}
	if len(entries) > 2*MaxModules {
		return Source{}, fault(codeTooLarge, "the policy has more than %d files", 2*MaxModules)
	}
	s := Source{Modules: map[string]string{}, Config: map[string]any{}}
	for _, e := range entries {
		name := e.Name()
		switch {
		case !e.IsDir() && name == ConfigFile:
			text, err := readLimited(dir, name, MaxConfigSize)
			if err != nil {
				return Source{}, err
			}
			if s.Config, err = ParseConfig(text); err != nil {
				return Source{}, err
			}
		case !e.IsDir() && path.Ext(name) == ".rego":
			text, err := readLimited(dir, name, MaxModuleSize)
			if err != nil {
				return Source{}, err
			}
			s.Modules[name] = string(text)
		default:
			return Source{}, fault(codeUnknownFile, "the policy has a file that is neither rule nor configuration").
				with("file:  " + Visible(name)).hint("take it out of the folder")
		}
	}
	return s, s.check()
}

func readLimited(dir fs.FS, name string, limit int64) (text []byte, err error) {
	// Asked before it is opened: a pipe would wait for ever.
	if info, err := fs.Stat(dir, name); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, fault(codeUnknownFile, "the policy has something that is no file").with("name:  " + Visible(name)).hint("take it out of the folder")
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	defer func() {
		if closeErr := f.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("policy: %w", closeErr)
		}
	}()
	text, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if int64(len(text)) > limit {
		return nil, fault(codeTooLarge, "a file of the policy has more than %d bytes", limit).with("file:  " + Visible(name))
	}
	return text, nil
}

// ParseConfig reads the JSON object with the parameters of rules.
func ParseConfig(document []byte) (map[string]any, error) {
	if len(document) > MaxConfigSize {
		return nil, fault(codeTooLarge, "the configuration of the policy has more than %d bytes", MaxConfigSize)
	}
	if len(document) == 0 || jsontext.Value(document).Kind() != '{' {
		return nil, fault(codeInvalidData, "the configuration of the policy is not a JSON object").with("file:  " + ConfigFile)
	}
	var config map[string]any
	if err := json.Unmarshal(document, &config); err != nil {
		return nil, fault(codeInvalidData, "the configuration of the policy cannot be read").because(err).with("file:  " + ConfigFile)
	}
	return config, checkConfig(config)
}

func checkConfig(config map[string]any) error {
	terms := 0
	for name, value := range config {
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		terms += len(list)
		plain := !slices.ContainsFunc(list, func(v any) bool { return !isScalar(v) })
		if !isParamName(name) || !plain || terms > maxConfigTerms {
			return fault(codeInvalidData, "the configuration of the policy is not a flat object of texts, numbers, truth values and lists of them").
				with("key:  " + Visible(name))
		}
	}
	return nil
}

func isScalar(v any) bool {
	switch v.(type) {
	case string, float64, bool:
		return true
	}
	return false
}

// Configure gives the policy with some parameters set to other values. A name
// that the policy does not know, or a value of another type than it has, is
// refused: it would do nothing, or make a rule do nothing.
func (s Source) Configure(overrides map[string]any) (Source, error) {
	if err := checkConfig(overrides); err != nil {
		return Source{}, err
	}
	config := maps.Clone(s.Config)
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		now, known := config[name]
		if !known {
			return Source{}, fault(codeInvalidData, "the policy knows no parameter %q", Visible(name)).
				with("known:  " + strings.Join(slices.Sorted(maps.Keys(s.Config)), ", "))
		}
		if !sameForm(now, overrides[name]) {
			return Source{}, fault(codeInvalidData, "the parameter %q has another type in the policy", name)
		}
		config[name] = overrides[name]
	}
	return Source{Modules: s.Modules, Config: config}, nil
}

// sameForm compares the types of two parameters, and those of the elements of
// lists as far as both have some.
func sameForm(a, b any) bool {
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	listA, isList := a.([]any)
	if !isList {
		return true
	}
	all := append(slices.Clone(listA), b.([]any)...)
	return !slices.ContainsFunc(all, func(v any) bool { return reflect.TypeOf(v) != reflect.TypeOf(all[0]) })
}

// check holds limits and names.
func (s Source) check() error {
	if len(s.Modules) > 2*MaxModules {
		return fault(codeTooLarge, "the policy has more than %d files", 2*MaxModules)
	}
	rules, total := 0, 0
	for _, name := range slices.Sorted(maps.Keys(s.Modules)) {
		text := s.Modules[name]
		rule, isTest, ok := ruleOf(name)
		if !ok {
			return fault(codeUnknownFile, "the policy has a file that is neither rule nor test").
				with("file:  " + Visible(name)).hint("name rules like my_rule.rego and their tests like my_rule_test.rego")
		}
		if total += len(text); len(text) > MaxModuleSize || total > MaxPolicySize {
			return fault(codeTooLarge, "the policy has more than %d bytes, or %d in one file", MaxPolicySize, MaxModuleSize).with("file:  " + name)
		}
		if !isTest {
			rules++
		}
		if line := hiddenLine(text); line > 0 {
			return invalidRule(rule, name, line, "the text has characters that nobody can see")
		}
	}
	if rules == 0 || rules > MaxModules {
		return fault(codeInvalidRule, "the policy has %d rules, not 1 to %d: a policy without rules would allow everything", rules, MaxModules)
	}
	return checkConfig(s.Config)
}

// ruleOf tells from a file's name which rule it is about.
func ruleOf(file string) (rule string, isTest, ok bool) {
	name, isRego := strings.CutSuffix(file, ".rego")
	rule, isTest = strings.CutSuffix(name, "_test")
	return rule, isTest, isRego && isRuleName(rule)
}

func isRuleName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != "" && len(s) <= 60 && s != "test"
}

// hiddenLine is the first line of a text with something that a reviewer would
// not see, or see in another order; 0 if there is none.
func hiddenLine(text string) int {
	if !utf8.ValidString(text) {
		return 1
	}
	i := strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	})
	if i < 0 {
		return 0
	}
	return 1 + strings.Count(text[:i], "\n")
}

func invalidRule(rule, file string, line int, why string) *Error {
	return fault(codeInvalidRule, "rule %s: %s", rule, why).with(fmt.Sprintf("at:  %s:%d", file, line))
}

// Rules are the modules that judge: all but the tests.
func (s Source) Rules() map[string]string {
	rules := map[string]string{}
	for name, text := range s.Modules {
		if _, isTest, _ := ruleOf(name); !isTest {
			rules[name] = text
		}
	}
	return rules
}

// Digest names what judges: the rules and their parameters. Tests do not
// change a verdict and are not part of it.
func (s Source) Digest() (string, error) {
	return Source{Modules: s.Rules(), Config: s.Config}.digestAs("packhof.policy/v1")
}

// ProofDigest names all that a proof by tests is about: the rules, their
// parameters, and the tests.
func (s Source) ProofDigest() (string, error) { return s.digestAs("packhof.policy-proof/v1") }

// digestAs is of everything in the source; the format keeps digests of
// different meaning apart.
func (s Source) digestAs(format string) (string, error) {
	b, err := json.Marshal(map[string]any{"format": format, "modules": s.Modules, "config": s.Config})
	if err != nil {
		return "", fault(codeInvalidData, "the policy cannot be written").because(err)
	}
	value := jsontext.Value(b)
	if err := value.Canonicalize(); err != nil {
		return "", fault(codeInvalidData, "the policy cannot be written").because(err)
	}
	return digestOf(value), nil
}
