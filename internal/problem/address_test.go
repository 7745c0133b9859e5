package problem_test

import (
	"testing"

	"github.com/packhof/packhof/internal/problem"
)

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"https://s3.example:9000":                  "https://s3.example:9000",
		"https://anna:secret@s3.example/x":         "https://…@s3.example/x",
		"https://anna:se/cr@e#t@s3.example":        "https://…@s3.example",
		"https://s3.example/x?sig=secret":          "https://s3.example/x?…",
		"anna:secret@registry.example/plant":       "…@registry.example/plant",
		"registry.example/a:1@sha256:ab":           "registry.example/a:1@sha256:ab",
		"anna:secret@registry.example/a@sha256:ab": "…@sha256:ab",
		"https://anna:secret@registry/a@sha256:ab": "https://…@sha256:ab",
		"registry.example:5000/plant":              "registry.example:5000/plant",
		"://@":                                     "://…@",
		"":                                         "",
	} {
		if got := problem.Address(in); got != want {
			t.Errorf("Address(%q) = %q, want %q", in, got, want)
		}
	}
}
