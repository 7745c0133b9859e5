package main

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/packhof/packhof/internal/testkit"
)

const gatePassword = "quay by the river"

// makeGate makes the plant's gate, whose enrolment the connected side needs.
func (d *demo) makeGate() error {
	d.say("a gate at the plant: its keys, its data directory, its first account")
	plant := filepath.Join(d.dir, "plant")
	if err := os.MkdirAll(filepath.Join(plant, "usb"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(plant, "password"), []byte(gatePassword+"\n"), 0o600); err != nil {
		return err
	}
	if _, err := d.show("plant", `packhof-gate init --owner "Plant 7, hall B" --account anna --password-file password`); err != nil {
		return err
	}
	return d.listen(filepath.Join(plant, "gate", "gate.yaml"))
}

// listen has the gate listen where nobody else does.
func (d *demo) listen(config string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.address = l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	b, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	return os.WriteFile(config, append(b, "listen: "+d.address+"\n"...), 0o600)
}

// inward is the second half: from the disk into the plant.
func (d *demo) inward() error {
	for _, scene := range []func() error{d.firstDay, d.serve, d.carry, d.clear, d.asClients, d.pickle, d.flippedByte, d.parcel, d.unknownSigner} {
		if err := scene(); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) firstDay() error {
	d.say("the plant takes the trust root in, after comparing its fingerprint")
	_, err := d.show("plant", `packhof-gate trust init ../host/trust/root-1.json --fingerprint "$(sha256sum <../host/trust/root-1.json | cut -c1-64)" | head -12`)
	return err
}

// serve starts the gate's screens, API and depot.
func (d *demo) serve() error {
	d.say("the gate begins to serve: screens, API and depot")
	d.tell("    $ packhof-gate serve &")
	c := exec.Command(filepath.Join(d.bin, "packhof-gate"), "serve")
	c.Dir, c.Env = filepath.Join(d.dir, "plant"), d.environment()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	log, err := os.Create(filepath.Join(d.dir, "plant", "serve.log"))
	if err != nil {
		return err
	}
	c.Stderr, c.Stdout = log, log
	if err := errors.Join(c.Start(), log.Close()); err != nil {
		return err
	}
	d.server = c
	return d.answers()
}

// answers waits until the gate does.
func (d *demo) answers() error {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, _, err := d.shell("plant", d.curl("/v2/", "-o /dev/null")); err == nil {
			d.tell("    https://" + d.address)
			return nil
		}
	}
	log, err := os.ReadFile(filepath.Join(d.dir, "plant", "serve.log"))
	return errors.Join(fmt.Errorf("the gate does not answer at %s: %s", d.address, log), err)
}

// curl is a command that asks the gate over TLS, knowing its certificate.
func (d *demo) curl(path, flags string) string {
	return "curl -sSf --cacert gate/tls/cert.pem " + flags + " https://" + d.address + path
}

func (d *demo) carry() error {
	d.say("somebody carries the disk across the gap")
	if _, err := d.show(".", "cp usb/plant-7-000001.tar plant/usb/"); err != nil {
		return err
	}
	d.say("inspect: what is in it, who signed, and what the policy will say")
	_, err := d.show("plant", "packhof-gate inspect usb/plant-7-000001.tar")
	return err
}

// clear takes the bundle all the way through.
func (d *demo) clear() error {
	d.say("receive: copied, every byte proven, looked into, judged")
	said, err := d.show("plant", "packhof-gate receive usb/plant-7-000001.tar")
	if err != nil {
		return err
	}
	d.point(said, "case 1", 2)
	var found struct {
		State  string `json:"state"`
		Review int    `json:"review"`
		Deny   int    `json:"deny"`
	}
	if err := d.gateJSON("/cases/1", &found); err != nil {
		return err
	}
	if found.State != "awaiting approval" || found.Review != 1 || found.Deny != 0 {
		return fmt.Errorf("one finding for review was to be expected: %+v", found)
	}
	d.say("show: what a person decides on, one finding for review among it")
	if said, err = d.show("plant", "packhof-gate show 1 --lang de"); err != nil {
		return err
	}
	d.point(said, "REVIEW", 3)
	return d.decide()
}

func (d *demo) decide() error {
	d.say("nobody releases what waits for a person")
	if err := d.refused("packhof-gate release 1", 13, "case/waiting"); err != nil {
		return err
	}
	d.say("approve: anna, with her account, for exactly what was shown")
	if err := d.approve(1, "runs as root, in its own namespace"); err != nil {
		return err
	}
	d.say("release: loaded, and read back")
	said, err := d.show("plant", "packhof-gate release 1")
	d.point(said, "case 1", 1)
	return err
}

// approve has anna say yes to what a case has now.
func (d *demo) approve(id int, reason string) error {
	digest, err := d.reviewDigest(id)
	if err != nil {
		return err
	}
	_, err = d.show("plant", fmt.Sprintf("packhof-gate approve %d --as anna --password-file password --reason %q --yes --review %s", id, reason, digest))
	return err
}

// reviewDigest asks for what a decision is bound to.
func (d *demo) reviewDigest(id int) (string, error) {
	out, err := d.quietly("plant", fmt.Sprintf("packhof-gate show %d -o json", id))
	if err != nil {
		return "", err
	}
	var shown struct {
		Review struct {
			Digest string `json:"review"`
		} `json:"review"`
	}
	return shown.Review.Digest, json.Unmarshal([]byte(out), &shown)
}

func (d *demo) gateJSON(path string, into any) error {
	out, err := d.quietly("plant", "curl -sSf --unix-socket gate/gate.sock http://gate/api/v1"+path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// asClients proves the outcome as the plant's own clients would.
func (d *demo) asClients() error {
	d.say("a plant client: skopeo pulls the image from the depot, digest by digest")
	repository := strings.ReplaceAll(d.upstream.Host(), ":", "-") + "/line/inspector:1.4"
	pull := "skopeo copy --quiet --src-cert-dir certs docker://" + d.address + "/" + repository + " dir:pulled"
	if _, err := d.quietly("plant", "mkdir certs && cp gate/tls/cert.pem certs/ca.crt"); err != nil {
		return err
	}
	if _, err := d.show("plant", pull); err != nil {
		return err
	}
	there, err := d.quietly("plant", "sha256sum <pulled/manifest.json | cut -c1-64")
	if err != nil {
		return err
	}
	upstream, err := d.quietly("plant", fmt.Sprintf("skopeo inspect --raw --cert-dir ../host/certs docker://%s/line/inspector:1.4 | sha256sum | cut -c1-64", d.upstream.Host()))
	if err != nil {
		return err
	}
	if there != upstream {
		return fmt.Errorf("the depot gave the image %s, and the registry outside has %s", there, upstream)
	}
	d.tell("    sha256 " + strings.TrimSpace(there) + ", as at the registry outside")
	d.point("sha256 "+strings.TrimSpace(there)+", as at the registry outside", "", 1)
	return d.fileBack()
}

func (d *demo) fileBack() error {
	d.say("and curl reads a model's file, which is the one that went in")
	const path = "/files/inspector-weights/1.4/"
	name, err := d.quietly("host/models/inspector", "ls *.safetensors | head -1")
	if err != nil {
		return err
	}
	if err := d.sameFile(path, "host/models/inspector", strings.TrimSpace(name)); err != nil {
		return err
	}
	_, err = d.show("plant", "mkdir files && cd files && "+strings.ReplaceAll(d.curl(path+"SHA256SUMS", ""), "gate/tls", "../gate/tls")+" | head -3")
	return err
}

// sameFile compares a file of the depot with the one of a folder.
func (d *demo) sameFile(path, folder, name string) error {
	got, err := d.show("plant", d.curl(path+name, "")+" | sha256sum | cut -c1-64")
	if err != nil {
		return err
	}
	want, err := d.show(folder, "sha256sum <"+name+" | cut -c1-64")
	if err != nil {
		return err
	}
	d.point(name+" "+got, "", 1)
	if got != want {
		return fmt.Errorf("%s is %s in the depot and %s outside", name, got, want)
	}
	return nil
}

// refused runs at the plant what must fail with an exit code and an error code.
func (d *demo) refused(line string, exit int, code string) error {
	return d.refusedIn("plant", line, exit, code)
}

func (d *demo) refusedIn(folder, line string, exit int, code string) error {
	d.tell("    $ " + line)
	_, both, err := d.shell(folder, line)
	for text := range strings.Lines(both) {
		d.tell("      " + strings.TrimRight(text, "\n"))
	}
	var failed *exec.ExitError
	switch {
	case err == nil:
		return fmt.Errorf("%s was to be refused, and was not:\n%s", line, both)
	case !errors.As(err, &failed) || failed.ExitCode() != exit || !strings.Contains(both, "code: "+code):
		return fmt.Errorf("%s was to end with exit code %d and %s: %w\n%s", line, exit, code, err, both)
	}
	d.tell(fmt.Sprintf("      (exit %d)", exit))
	program, _, _ := strings.Cut(line, " ")
	d.point(both, program+": error: ", 2)
	return nil
}

// another exports the next bundle of the channel and carries it.
func (d *demo) another(host, spec string, serial int) (string, error) {
	if err := os.WriteFile(filepath.Join(d.dir, host, "packhof.yaml"), []byte(spec), 0o644); err != nil {
		return "", err
	}
	file := fmt.Sprintf("plant-7-%06d.tar", serial)
	for _, line := range []string{"packhof plan --quiet", "packhof export --quiet --to ../plant/usb"} {
		if _, err := d.quietly(host, line); err != nil {
			return "", err
		}
	}
	return "usb/" + file, nil
}

// pickle packs a model that would run code when it is loaded. Signed by the
// right key, under an innocent name.
func (d *demo) pickle() error {
	d.say("a pickle under an innocent name, rightly signed: blocked")
	folder := filepath.Join(d.dir, "host", "models", "helper")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	const evil = "\x80\x04cposix\nsystem\n(\x8c\x02idtR."
	if err := os.WriteFile(filepath.Join(folder, "weights.safetensors"), []byte(evil), 0o644); err != nil {
		return err
	}
	path, err := d.another("host", modelSpec("helper"), 2)
	if err != nil {
		return err
	}
	return d.refused("packhof-gate receive "+path, 12, "policy/denied")
}

func modelSpec(name string) string {
	return "apiVersion: packhof/v1\nkind: Export\nchannel: plant-7\nartifacts:\n" +
		"  - kind: model\n    name: " + name + "\n    version: \"1.0\"\n    dir: models/" + name + "\n"
}

func (d *demo) flippedByte() error {
	d.say("one flipped byte on the disk: refused, and the whole disk still comes in")
	folder := filepath.Join(d.dir, "host", "models", "outlook")
	err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "readings.json"), testkit.Bytes("outlook", 1<<20), 0o644))
	if err != nil {
		return err
	}
	path, err := d.another("host", modelSpec("outlook"), 3)
	if err != nil {
		return err
	}
	file := filepath.Join(d.dir, "plant", path)
	flip := func() error {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, info.Size()/2); err != nil {
			return errors.Join(err, f.Close())
		}
		b[0] ^= 1
		_, err = f.WriteAt(b, info.Size()/2)
		return errors.Join(err, f.Close())
	}
	if err := flip(); err != nil {
		return err
	}
	if err := d.refused("packhof-gate receive "+path, 11, "volume/damaged"); err != nil {
		return err
	}
	if err := flip(); err != nil { // back to what was signed
		return err
	}
	said, err := d.show("plant", "packhof-gate receive "+path)
	d.point(said, "case 3", 1)
	return err
}

// unknownSigner packs for this very gate and channel, with a key that nobody
// at the plant knows.
func (d *demo) unknownSigner() error {
	d.say("a bundle by somebody the plant does not know: not genuine, nothing unpacked")
	if err := os.CopyFS(filepath.Join(d.dir, "impostor", "models", "inspector"), os.DirFS(filepath.Join(d.dir, "host", "models", "inspector"))); err != nil {
		return err
	}
	for _, line := range []string{
		"packhof init --channel plant-7", "packhof key generate", "packhof trust init --owner release@example",
		`packhof trust add-gate ../plant/gate/enrol.json --fingerprint "$(sha256sum <../plant/gate/enrol.json | cut -c1-64)"`,
	} {
		if _, err := d.quietly("impostor", line); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(d.dir, "plant", "usb", "plant-7-000001.tar")); err != nil {
		return err
	}
	path, err := d.another("impostor", modelSpec("inspector"), 1)
	if err != nil {
		return err
	}
	return d.refused("packhof-gate receive "+path, 10, "signing/")
}

// farewell says what to do next.
func (d *demo) farewell() {
	fmt.Printf(`
See the screens:    cd %s/plant && PACKHOF_DATA=gate %s/packhof-gate serve
                    then https://%s  as anna, password  %s
Your own, in six:   packhof init · packhof key generate · packhof trust init · packhof trust add-gate enrol.json
                    packhof plan · packhof export --to DISK
`, d.dir, d.bin, d.address, gatePassword)
}
