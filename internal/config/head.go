package config

import (
	"fmt"

	"github.com/packhof/packhof/internal/problem"
)

// Version is the apiVersion of every document.
const Version = "packhof/v1"

// CheckHead finds what is wrong in the two lines that head a document of a
// kind.
func CheckHead(apiVersion, kind, want string, wrong *problem.Fields) {
	if apiVersion != Version {
		wrong.Add("apiVersion", fmt.Sprintf("%q is not known", apiVersion), "write  apiVersion: "+Version)
	}
	if kind != want {
		wrong.Add("kind", fmt.Sprintf("%q is not known", kind), "write  kind: "+want)
	}
}
