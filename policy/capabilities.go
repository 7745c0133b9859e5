package policy

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// builtins are all the functions that rules may call: those whose result
// depends on their arguments and on nothing else. It is a list of what is
// allowed, so a function that a later OPA adds is not.
func builtins() []string {
	return []string{
		"abs", "and", "array.concat", "array.flatten", "array.reverse", "array.slice", "assign",
		"base64.decode", "base64.encode", "base64.is_valid", "ceil", "concat", "contains", "count", "div",
		"endswith", "eq", "equal", "floor", "format_int", "glob.match", "glob.quote_meta", "gt", "gte",
		"hex.decode", "hex.encode", "indexof", "indexof_n", "internal.member_2", "internal.member_3",
		"internal.template_string", "intersection", "is_array", "is_boolean", "is_null", "is_number",
		"is_object", "is_set", "is_string", "json.filter", "json.is_valid", "json.marshal", "json.patch",
		"json.remove", "json.unmarshal", "lower", "lt", "lte", "max", "min", "minus", "mul", "neq",
		"numbers.range", "numbers.range_step", "object.filter", "object.get", "object.keys",
		"object.remove", "object.subset", "object.union", "object.union_n", "or", "plus", "product",
		"regex.find_all_string_submatch_n", "regex.find_n", "regex.is_valid", "regex.match",
		"regex.replace", "regex.split", "rem", "replace", "round", "semver.compare", "semver.is_valid",
		"sort", "split", "sprintf", "startswith", "strings.any_prefix_match", "strings.any_suffix_match",
		"strings.count", "strings.replace_n", "strings.reverse", "substring", "sum", "time.add_date",
		"time.parse_duration_ns", "time.parse_rfc3339_ns", "to_number", "trim", "trim_left",
		"trim_prefix", "trim_right", "trim_space", "trim_suffix", "type_name", "union", "units.parse",
		"units.parse_bytes", "upper", "walk",
	}
}

// capabilities are what parser, compiler and evaluation know of: Rego v1, the
// builtins above, and no host to ask for anything.
func capabilities() *ast.Capabilities {
	allowed := builtins()
	c := ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(ast.RegoV1))
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		return b.IsNondeterministic() || !slices.Contains(allowed, b.Name)
	})
	c.FutureKeywords = nil
	c.WasmABIVersions = nil
	c.AllowNet = []string{} // nil would mean any
	return c
}
