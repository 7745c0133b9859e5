//go:build !linux

package child

import (
	"context"
	"path/filepath"
)

func run(_ context.Context, spec Spec) (Result, error) {
	return Result{}, &Error{Program: filepath.Base(spec.Path), Reason: Unsupported}
}
