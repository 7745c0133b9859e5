package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestNeeds(t *testing.T) {
	root := &cobra.Command{Use: "program"}
	c := &cobra.Command{Use: "compare OLD NEW", Args: Needs("the old bundle", "the new one")}
	root.AddCommand(c)
	for args, want := range map[string]string{
		"":      "compare needs the old bundle and the new one:  program compare OLD NEW",
		"a":     "compare needs the new one:  program compare OLD NEW",
		"a b":   "",
		"a b c": `compare takes the old bundle and the new one and nothing more, and "c" is too much:  program compare OLD NEW`,
	} {
		err := c.Args(c, strings.Fields(args))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || err != nil && CodeOf(err) != "usage" {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
	c.Example = "  program compare sent/41 sent/42\n  program compare sent/1 sent/2"
	if got, want := c.Args(c, nil).Error(), "compare needs the old bundle and the new one:  program compare sent/41 sent/42"; got != want {
		t.Errorf("with an example: %q, want %q", got, want)
	}
	none := &cobra.Command{Use: "plan", Args: Needs()}
	if err := none.Args(none, nil); err != nil {
		t.Error(err)
	}
	if got, want := none.Args(none, []string{"now"}).Error(), `plan takes no arguments, and "now" is too much:  plan`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
