package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
)

// Sentence is something that the gate says in English, together with what it
// is about, so that a screen can say it in another language: {name} in Form
// stands for a parameter. The zero value says nothing.
type Sentence struct {
	Form   string         `json:"form"`
	Params map[string]any `json:"params,omitzero"` // text or whole numbers; moments as RFC 3339
}

// said makes a sentence from a form and pairs of a name and a value.
func said(form string, pairs ...any) Sentence {
	s := Sentence{Form: form}
	if len(pairs) > 0 {
		s.Params = map[string]any{}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		s.Params[fmt.Sprint(pairs[i])] = param(pairs[i+1])
	}
	return s
}

// counted is said with one form for one thing and another for several; {n} is
// how many.
func counted[N int | int64](n N, one, other string, pairs ...any) Sentence {
	form := other
	if n == 1 {
		form = one
	}
	return said(form, append([]any{"n", int64(n)}, pairs...)...)
}

func param(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64:
		return v
	case time.Time:
		return bundle.At(v).String()
	}
	return fmt.Sprint(v)
}

// String is the sentence in English.
func (s Sentence) String() string {
	var replace []string
	for name, value := range s.Params {
		replace = append(replace, "{"+name+"}", fmt.Sprint(value))
	}
	return strings.NewReplacer(replace...).Replace(s.Form)
}
