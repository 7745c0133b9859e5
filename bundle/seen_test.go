package bundle_test

import (
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
)

func TestNamesAreSeen(t *testing.T) {
	for _, name := range []string{"debian", "two words", "日本語", "über", "e\u0301", "😀", "ไทย", "한국어"} {
		if err := bundle.CheckArtifactName(name, name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, r := range "\u00a0\u00ad\u034f\u115f\u1160\u17b4\u180b\u180e\u2003\u200b\u200d\u2028\u202e\u2060\u2800\u3000\u3164\ufe0f\ufeff\uffa0\U000e0041\U000e0100" {
		name := "debian" + string(r)
		for _, err := range []error{bundle.CheckArtifactName(name, "1"), bundle.CheckArtifactName("debian", name)} {
			if err == nil || strings.ContainsRune(err.Error(), r) {
				t.Errorf("%U: %v", r, err)
			}
		}
	}
}
