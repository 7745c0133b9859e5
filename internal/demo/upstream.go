package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/packhof/packhof/internal/testkit"
)

// startUpstream makes what a real upstream has: a registry with an image put
// together from this machine's own files, a model and a dataset.
func (d *demo) startUpstream() error {
	var err error
	if d.upstream, err = testkit.StartRegistry(testkit.WithTLS()); err != nil {
		return err
	}
	image, err := machineImage()
	if err != nil {
		return err
	}
	if _, err := d.upstream.PushImage(d.ctx, "line/inspector:1.4", image); err != nil {
		return err
	}
	model, err := testkit.Model("demo", testkit.Tensor{Name: "encoder.weight", DType: "F32", Shape: []int64{2048, 2048}}, testkit.Tensor{Name: "head.bias", DType: "F32", Shape: []int64{64}})
	if err != nil {
		return err
	}
	certs := filepath.Join(d.dir, "host", "certs")
	return errors.Join(
		os.MkdirAll(certs, 0o755),
		os.WriteFile(filepath.Join(certs, "ca.crt"), d.upstream.CAPEM(), 0o644),
		os.CopyFS(filepath.Join(d.dir, "host", "models", "inspector"), model),
		os.CopyFS(filepath.Join(d.dir, "host", "data", "scratches"), testkit.Dataset("demo", 2000)))
}

// machineImage is a small image that runs: a shell and the libraries it needs,
// and what tells a scanner which packages they belong to.
func machineImage() (v1.Image, error) {
	shell, err := programFiles("/bin/sh", "/usr/bin/sha256sum")
	if err != nil {
		return nil, err
	}
	system, err := machineFiles("/etc/os-release", "/var/lib/dpkg/status")
	if err != nil {
		return nil, err
	}
	base, err := testkit.Layer(append(system, shell...), "")
	if err != nil {
		return nil, err
	}
	return testkit.Image(testkit.ImageSpec{
		Seed: "demo", Base: []v1.Layer{base}, PayloadSize: 24 << 20,
		Labels: map[string]string{"org.opencontainers.image.title": "line inspector"},
	})
}

// programFiles gives programs with the libraries that ldd names.
func programFiles(programs ...string) ([]testkit.File, error) {
	paths := map[string]bool{}
	for _, program := range programs {
		paths[program] = true
		out, err := exec.Command("ldd", program).Output()
		if err != nil {
			continue // a static program needs no libraries
		}
		for _, field := range strings.Fields(string(out)) {
			if strings.HasPrefix(field, "/") {
				paths[field] = true
			}
		}
	}
	var list []string
	for path := range paths {
		list = append(list, path)
	}
	return machineFiles(list...)
}

func machineFiles(paths ...string) ([]testkit.File, error) {
	var files []testkit.File
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // not every Linux has dpkg
		}
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		files = append(files, testkit.File{Path: strings.TrimPrefix(path, "/"), Mode: info.Mode().Perm(), Data: b})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("none of %s is on this machine", strings.Join(paths, ", "))
	}
	return files, nil
}
