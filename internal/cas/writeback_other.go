//go:build !linux

package cas

import "os"

func startWriteback(*os.File, int64, int64) {}
