package problem_test

import (
	"encoding/json/v2"
	"errors"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/problem"
)

func TestJSONInWordsForPeople(t *testing.T) {
	type inner struct {
		Count int `json:"count"`
	}
	type document struct {
		Name  string  `json:"name"`
		Inner []inner `json:"inner"`
	}
	for text, want := range map[string]string{
		`{"nmae":"x"}`:              `unknown key at "/nmae"`,
		`{"name":"x","name":"y"}`:   `duplicate key at "/name"`,
		`{"inner":[{"count":"x"}]}`: `at "/inner/0/count": a JSON string has no place there`,
		`{"name":x}`:                `not JSON at byte 8, at "/name"`,
	} {
		err := problem.JSON(json.Unmarshal([]byte(text), new(document), json.RejectUnknownMembers(true)))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"", `{"name":"x`, `{"name":`} {
		err := problem.JSON(json.Unmarshal([]byte(text), new(document)))
		if err == nil || strings.Contains(err.Error(), "json") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if other := errors.New("x"); problem.JSON(other) != other {
		t.Error("another error was changed")
	}
}
