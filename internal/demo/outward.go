package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// outward is the first half: from a connected host to a disk.
func (d *demo) outward() error {
	d.say("an upstream on this machine: a registry with an image, a model, a dataset")
	if err := d.startUpstream(); err != nil {
		return err
	}
	d.tell(fmt.Sprintf("    registry at %s, and files in %s", d.upstream.Host(), filepath.Join(d.dir, "host")))
	for _, scene := range []func() error{d.setUp, d.enrol, d.planAndExport, d.look, d.withoutUs, d.again} {
		if err := scene(); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) setUp() error {
	d.say("a channel: what it carries, a key, and whose signatures count")
	if _, err := d.show("host", "packhof init --channel plant-7"); err != nil {
		return err
	}
	spec := strings.ReplaceAll(demoSpec, "REGISTRY", d.upstream.Host())
	if err := os.WriteFile(filepath.Join(d.dir, "host", "packhof.yaml"), []byte(spec), 0o644); err != nil {
		return err
	}
	d.tell("    (packhof.yaml now names the image, the model and the dataset)")
	if _, err := d.show("host", "packhof key generate"); err != nil {
		return err
	}
	_, err := d.quietly("host", "packhof trust init --owner release@example")
	return err
}

const demoSpec = `apiVersion: packhof/v1
kind: Export
channel: plant-7
note: First model of the inspection line
hosts:
  "REGISTRY":
    ca: certs/ca.crt
artifacts:
  - image: REGISTRY/line/inspector:1.4
  - kind: model
    name: inspector-weights
    version: "1.4"
    dir: models/inspector
  - kind: dataset
    name: scratches
    version: "2026-11"
    dir: data/scratches
`

// enrol takes the enrolment of the plant's gate.
func (d *demo) enrol() error {
	d.say("the plant's gate is enrolled, after comparing its fingerprint")
	if _, err := d.show("host", "cp ../plant/gate/enrol.json ."); err != nil {
		return err
	}
	_, err := d.show("host", `packhof trust add-gate enrol.json --fingerprint "$(sha256sum <enrol.json | cut -c1-64)" | grep -A1 '^GATE'`)
	return err
}

func (d *demo) planAndExport() error {
	d.say("plan: what the names stand for today, pinned in packhof.lock")
	if _, err := d.show("host", "packhof plan"); err != nil {
		return err
	}
	d.say("export: fetched, described with SBOMs, sealed, signed, written, read back")
	if err := os.MkdirAll(filepath.Join(d.dir, "usb"), 0o755); err != nil {
		return err
	}
	_, err := d.show("host", "packhof export --to ../usb")
	return err
}

func (d *demo) look() error {
	d.say("inspect: what is in it, from its head")
	if _, err := d.show("host", "packhof inspect ../usb/plant-7-000001.tar"); err != nil {
		return err
	}
	d.say("verify: signatures, and every byte")
	_, err := d.show("host", "packhof verify ../usb/plant-7-000001.tar")
	return err
}

// withoutUs checks the bundle with programs of others.
func (d *demo) withoutUs() error {
	d.say("the same without us: tar, sha256sum and cosign")
	if err := os.MkdirAll(filepath.Join(d.dir, "stranger"), 0o755); err != nil {
		return err
	}
	lines, err := d.quietly("stranger", "packhof verify --show-cosign --trust ../host/trust ../usb/plant-7-000001.tar")
	if err != nil {
		return err
	}
	if _, _, err := d.shell("host", "command -v cosign"); err != nil {
		return fmt.Errorf("cosign is not built; run  make demo: %w", err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "stranger", "check.sh"), []byte(lines), 0o644); err != nil {
		return err
	}
	d.tell("    (check.sh holds the lines that  packhof verify --show-cosign  prints)")
	if _, err = d.show("stranger", "sh check.sh"); err != nil {
		return err
	}
	return d.forgeryWithoutUs()
}

// forgeryWithoutUs makes sure that these lines refuse what a forger would do:
// another byte, and sums that fit it.
func (d *demo) forgeryWithoutUs() error {
	forge := "mkdir forged && cd forged && tar -xf ../../usb/plant-7-000001.tar && " +
		"b=$(ls -S blobs/sha256 | tail -1) && printf x >> blobs/sha256/$b && rm SHA256SUMS && " +
		"sha256sum $(tar -tf ../../usb/plant-7-000001.tar | grep -v SHA256SUMS) > SHA256SUMS && tar -cf ../forged.tar *"
	if _, err := d.quietly("stranger", forge); err != nil {
		return err
	}
	if _, _, err := d.shell("stranger", "mkdir again && cd again && sed 's#../usb/plant-7-000001.tar#../forged.tar#' ../check.sh | sh"); err == nil {
		return errors.New("the lines for strangers accept a forged blob")
	}
	d.tell("    the same lines refuse a blob with another byte, though SHA256SUMS fits it")
	return nil
}

func (d *demo) again() error {
	d.say("export again: nothing is fetched, and the bytes are the same")
	d.upstream.ForgetRequests()
	before, err := d.quietly("usb", "sha256sum plant-7-000001.tar")
	if err != nil {
		return err
	}
	if _, err := d.show("host", "packhof export --quiet --to ../usb"); err != nil {
		return err
	}
	after, err := d.quietly("usb", "sha256sum plant-7-000001.tar")
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf("the second export has other bytes: %s, not %s", strings.TrimSpace(after), strings.TrimSpace(before))
	}
	requests := len(d.upstream.Requests())
	if requests > 0 {
		return fmt.Errorf("the second export made %d requests to the registry", requests)
	}
	d.tell(fmt.Sprintf("    requests to the registry: %d; sha256 %s as before", requests, after[:12]))
	return nil
}
