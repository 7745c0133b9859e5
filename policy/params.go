package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"
)

// plainParam turns what OPA gives into what a decision holds.
func plainParam(v any) (any, error) {
	number, ok := v.(json.Number)
	if !ok {
		return v, nil
	}
	f, err := number.Float64()
	if err != nil {
		return nil, fmt.Errorf("the number %.40q cannot be held: %w", number, err)
	}
	return f, nil
}

// checkParams lets a few short scalars through.
func checkParams(params map[string]any) error {
	if params == nil || len(params) > maxParams {
		return fmt.Errorf("params must be an object of at most %d members", maxParams)
	}
	for name, value := range params {
		if !isParamName(name) {
			return fmt.Errorf("the parameter name %.40q has other characters than letters and _", name)
		}
		switch v := value.(type) {
		case string:
			if len(v) > maxParamText || !utf8.ValidString(v) {
				return fmt.Errorf("the parameter %s has %d bytes, more than the %d allowed, or is not UTF-8", name, len(v), maxParamText)
			}
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("the parameter %s is not a number", name)
			}
		case bool:
		default:
			return fmt.Errorf("the parameter %s is %T, not text, number or truth value", name, value)
		}
	}
	return nil
}
