package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/packhof/packhof/internal/testkit"
)

// parcel shows that the media are not the bundle: they may be small, come in
// any order, get lost and be closed to strangers, what the plant has is not
// carried twice, and thousands of files are not thousands of things to carry.
func (d *demo) parcel() error {
	for _, scene := range []func() error{d.smallDisks, d.lostDisk, d.difference, d.encrypted, d.packs} {
		if err := scene(); err != nil {
			return err
		}
	}
	return nil
}

// atlas is a dataset that no single small disk of this demo can take.
func (d *demo) atlas(file, content string) error {
	folder := filepath.Join(d.dir, "host", "data", "atlas")
	return errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, file), []byte(content), 0o644))
}

const atlasSpec = `apiVersion: packhof/v1
kind: Export
channel: plant-7
artifacts:
  - kind: dataset
    name: atlas
    version: "VERSION"
    dir: data/atlas
`

// planned writes what the next bundle holds, and plans it.
func (d *demo) planned(version string) error {
	spec := strings.Replace(atlasSpec, "VERSION", version, 1)
	if err := os.WriteFile(filepath.Join(d.dir, "host", "packhof.yaml"), []byte(spec), 0o644); err != nil {
		return err
	}
	_, err := d.quietly("host", "packhof plan --quiet")
	return err
}

// table is a file of comma-separated values of about so many bytes.
func table(seed string, size int) string {
	var b strings.Builder
	b.WriteString("reading\n")
	for _, c := range testkit.Bytes(seed, size/4) {
		fmt.Fprintf(&b, "%03d\n", c)
	}
	return b.String()
}

// smallDisks sends a bundle over disks that are all smaller than it, and two
// of its files are cut by the ends of volumes.
func (d *demo) smallDisks() error {
	d.say("disks that are too small: ten maps over volumes of at most 1 MiB")
	for n := range 10 {
		name := fmt.Sprintf("map-%d.csv", n)
		if err := d.atlas(name, table(name, 280_000)); err != nil {
			return err
		}
	}
	if err := d.planned("1.0"); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(d.dir, "disks"), 0o755); err != nil {
		return err
	}
	said, err := d.show("host", "packhof export --volume-size 1MiB --to ../disks")
	if err != nil {
		return err
	}
	d.point(said, "wrote", 4)
	d.say("the second disk comes first: taken in, and what is missing is said")
	if _, err := d.quietly(".", "mkdir plant/slot && cp disks/plant-7-000004.v0002.tar plant/slot/"); err != nil {
		return err
	}
	return d.refused("packhof-gate receive slot", 3, "receive/incomplete")
}

// lostDisk has one disk get lost, and a want list bring its content again.
func (d *demo) lostDisk() error {
	d.say("a disk gets lost: the gate lists what it lacks, and only that is sent again")
	if _, err := d.quietly(".", "rm plant/slot/* disks/*.v0003.tar && cp disks/plant-7-000004.v*.tar plant/slot/"); err != nil {
		return err
	}
	if err := d.refused("packhof-gate receive slot", 3, "receive/incomplete"); err != nil {
		return err
	}
	if _, err := d.show("plant", "packhof-gate want 4 want.json"); err != nil {
		return err
	}
	said, err := d.show("host", "mkdir ../again && packhof export --want ../plant/want.json --to ../again")
	if err != nil {
		return err
	}
	if strings.Contains(said, "v0002") {
		return fmt.Errorf("more was sent again than one disk holds:\n%s", said)
	}
	d.point(said, "wrote", 1)
	if said, err = d.show("plant", "packhof-gate receive ../again"); err != nil {
		return err
	}
	d.point(said, "case 4", 1)
	return nil
}

// difference takes a receipt out and has the next bundle bring what is new.
func (d *demo) difference() error {
	d.say("a receipt goes out, and the next bundle brings what the plant has not")
	if _, err := d.show("plant", "packhof-gate receipt receipt.json"); err != nil {
		return err
	}
	if err := errors.Join(d.atlas("legend.csv", table("legend", 20_000)), d.planned("1.1")); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(d.dir, "small"), 0o755); err != nil {
		return err
	}
	said, err := d.show("host", "packhof export --since ../plant/receipt.json --to ../small")
	if err != nil {
		return err
	}
	d.point(said, "wrote", 1)
	if said, err = d.show("plant", "packhof-gate receive ../small"); err != nil {
		return err
	}
	d.point(said, "case 5", 1)
	return nil
}

// encrypted carries a bundle that only the plant's gate can open, not even the
// host that wrote it.
func (d *demo) encrypted() error {
	d.say("encrypted to the plant: without its identity nobody looks in, not even the sender")
	if err := errors.Join(d.atlas("legend.csv", table("secret legend", 20_000)), d.planned("1.2")); err != nil {
		return err
	}
	if _, err := d.show("host", "mkdir ../sealed && packhof export --encrypt --to ../sealed"); err != nil {
		return err
	}
	if err := d.refusedIn("host", "packhof inspect ../sealed", 2, "volume/encrypted"); err != nil {
		return err
	}
	d.say("the plant's gate opens it with the key that it has for that")
	said, err := d.show("plant", "packhof-gate receive ../sealed")
	if err != nil {
		return err
	}
	d.point(said, "case 6", 1)
	return nil
}

// packs sends a folder of very many small files, which travel as few large
// ones, and reads one of them back from the depot.
func (d *demo) packs() error {
	const files = 2000
	d.say("a folder of %d small files: they travel in packs", files)
	for i := range files {
		folder := filepath.Join(d.dir, "host", "data", "atlas", fmt.Sprintf("tiles-%d", i/1000))
		if i%1000 == 0 {
			if err := os.Mkdir(folder, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%04d.csv", i)), fmt.Appendf(nil, "tile,height\n%d,%d\n", i, i%97), 0o644); err != nil {
			return err
		}
	}
	if err := d.planned("2.0"); err != nil {
		return err
	}
	said, err := d.show("host", "mkdir ../packs && packhof export --to ../packs")
	if err != nil {
		return err
	}
	var blobs int
	_, counts, _ := strings.Cut(said, "1 artifact, ")
	if _, err := fmt.Sscanf(counts, "%d blobs", &blobs); err != nil {
		return fmt.Errorf("the export does not say how much it wrote: %w\n%s", err, said)
	}
	if blobs > 20 {
		return fmt.Errorf("%d files became %d blobs", files, blobs)
	}
	d.point(said, "wrote", 1)
	return d.unpacked("tiles-1/1999.csv")
}

// unpacked takes the packs in, and reads a file out of them as clients do.
func (d *demo) unpacked(file string) error {
	d.say("they are loaded, and curl reads one of them, which is the one that went in")
	if _, err := d.show("plant", "packhof-gate receive ../packs"); err != nil {
		return err
	}
	if err := d.approve(7, "the tiles that were asked for"); err != nil {
		return err
	}
	if _, err := d.show("plant", "packhof-gate release 7"); err != nil {
		return err
	}
	return d.sameFile("/files/atlas/2.0/", "host/data/atlas", file)
}
