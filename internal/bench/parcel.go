package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// parcelMiB is the one file that volumes are measured with.
const parcelMiB = 2048

const parcelVolume = "bench-000001.tar"

// parcel measures writing, checking and resuming a volume with one large file.
func (b *bench) parcel() error {
	fmt.Printf("making a file of %d MiB and sealing it\n", parcelMiB)
	dir := filepath.Join(b.dir, "parcel")
	if err := b.makeParcel(dir); err != nil {
		return err
	}
	for _, part := range []func(string) error{b.pack, b.verifyOnAllCores, b.resume} {
		if err := part(dir); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(dir), b.flatMemory())
}

func (b *bench) makeParcel(dir string) error {
	enrol, err := filepath.Abs("testdata/enrol.json")
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(enrol)
	if err != nil {
		return err
	}
	if err := writeRandom(filepath.Join(dir, "content", "large.bin"), parcelMiB<<20); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--channel", "bench"}, {"key", "generate"}, {"trust", "init", "--owner", "bench"},
		{"trust", "add-gate", enrol, "--fingerprint", signing.FingerprintOf(raw).String()},
	} {
		if _, err := b.command(dir, b.packhof, args...); err != nil {
			return err
		}
	}
	const spec = "apiVersion: packhof/v1\nkind: Export\nchannel: bench\nartifacts:\n  - name: large\n    version: \"1\"\n    dir: content\n"
	if err := os.WriteFile(filepath.Join(dir, "packhof.yaml"), []byte(spec), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"plan"}, {"export", "--quiet", "--no-scan", "--no-readback"}} {
		if _, err := b.command(dir, b.packhof, args...); err != nil {
			return err
		}
	}
	return nil
}

func writeRandom(path string, size int64) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), size)
	return errors.Join(err, f.Close())
}

// packInto writes the sealed volume into an empty folder.
func (b *bench) packInto(dir string, more ...string) (run, error) {
	to := filepath.Join(dir, "medium")
	if err := errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o755)); err != nil {
		return run{}, err
	}
	settle()
	return b.command(dir, b.packhof, append([]string{"export", "--quiet", "--no-scan", "--to", to}, more...)...)
}

// pack measures writing what the store has against cp and sync of the same
// bytes. What reading back costs is told apart.
func (b *bench) pack(dir string) error {
	copied := filepath.Join(dir, "copied.tar")
	var readBack []time.Duration
	p, err := b.inTurn(b.rounds,
		func() (run, error) {
			settle()
			r, err := b.command(dir, "sh", "-c", `cp --reflink=never "$1" "$2" && sync "$2"`, "sh", parcelVolume, copied)
			return r, errors.Join(err, os.Remove(copied))
		},
		func() (run, error) {
			whole, err := b.packInto(dir)
			if err != nil {
				return run{}, err
			}
			r, err := b.packInto(dir, "--no-readback")
			readBack = append(readBack, max(0, whole.took-r.took))
			return r, err
		})
	if err != nil {
		return err
	}
	back := median(readBack).Seconds()
	b.results = append(b.results,
		p.faster(fmt.Sprintf("speed of writing a sealed volume of %d MiB, hashed and synced", parcelMiB), "cp --reflink=never and sync of the same bytes", 0.8),
		result{
			what: "reading it back from the disk, on top", ours: fmt.Sprintf("%.1f s", back), theirs: "–",
			value: back, format: "%.1f s", bound: "–", holds: true,
		})
	return nil
}

// verifyOnAllCores measures the check of one large file, in the page cache.
func (b *bench) verifyOnAllCores(dir string) error {
	p, err := b.inTurn(b.rounds+1, // the first one warms up
		func() (run, error) {
			// One job alone takes more than one core: it reads ahead.
			return b.command(dir, "taskset", "-c", "0", b.packhof, "verify", "--quiet", parcelVolume)
		},
		func() (run, error) { return b.command(dir, b.packhof, "verify", "--quiet", parcelVolume) })
	if err != nil {
		return err
	}
	r := p.faster(fmt.Sprintf("speed of verify, one file of %d MiB, %d cores", parcelMiB, runtime.NumCPU()), "itself on one core", 1.6)
	r.holds = r.holds || runtime.NumCPU() < 2
	b.results = append(b.results, r)
	return nil
}

// resume kills an export when half of the volume is written, and measures how
// much the next one writes that had been written before.
func (b *bench) resume(dir string) error {
	var twice []int64
	var size int64
	for range b.rounds {
		written, err := b.killAtHalf(dir)
		if err != nil {
			return err
		}
		c := exec.CommandContext(b.ctx, b.packhof, "export", "--quiet", "--no-scan", "--no-readback", "--to", "medium")
		c.Dir, c.Env = dir, append(os.Environ(), "PACKHOF_PASSPHRASE=bench")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("the next export: %w\n%s", err, out)
		}
		info, err := os.Stat(filepath.Join(dir, "medium", parcelVolume))
		if err != nil {
			return err
		}
		size = info.Size()
		usage, _ := c.ProcessState.SysUsage().(*syscall.Rusage)
		twice = append(twice, max(0, usage.Oublock*512-(size-written)))
	}
	slices.Sort(twice)
	value := float64(twice[len(twice)/2]) / (1 << 20)
	b.results = append(b.results, result{
		what: fmt.Sprintf("written a second time after a kill in the middle of %d MiB", size>>20), ours: fmt.Sprintf("%.0f MiB", value), theirs: "the journal's 256 MiB, and what goes beside it",
		value: value, format: "%.0f MiB", bound: "≤ 288 MiB", holds: value <= 288,
	})
	return nil
}

// killAtHalf gives how much was written when it was killed.
func (b *bench) killAtHalf(dir string) (written int64, err error) {
	to := filepath.Join(dir, "medium")
	if err := errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o755)); err != nil {
		return 0, err
	}
	c := exec.CommandContext(b.ctx, b.packhof, "export", "--quiet", "--no-scan", "--no-readback", "--to", to)
	c.Dir, c.Env = dir, append(os.Environ(), "PACKHOF_PASSPHRASE=bench")
	if err := c.Start(); err != nil {
		return 0, err
	}
	partial := filepath.Join(to, parcelVolume+cas.PartialSuffix)
	for b.ctx.Err() == nil {
		if info, err := os.Stat(partial); err == nil && info.Size() >= parcelMiB<<19 {
			break
		}
		if _, err := os.Stat(filepath.Join(to, parcelVolume)); err == nil {
			break // it was faster
		}
		time.Sleep(2 * time.Millisecond)
	}
	_ = c.Process.Kill()
	_ = c.Wait() // killed
	info, err := os.Stat(partial)
	if err != nil {
		return 0, fmt.Errorf("the export was not killed in the middle: %w", err)
	}
	return info.Size(), nil
}

// flatMemory lays bundles of 1 and of 20 GB into a writer that keeps nothing.
func (b *bench) flatMemory() error {
	fmt.Println("laying bundles of 1 GB and of 20 GB into a writer that keeps nothing")
	small, err := peakOf(b.ctx, 1e9)
	if err != nil {
		return err
	}
	large, err := peakOf(b.ctx, 20e9)
	if err != nil {
		return err
	}
	ratio := float64(large) / float64(small)
	b.results = append(b.results, result{
		what: "peak of the heap while a file of 20 GB is laid", ours: fmt.Sprintf("%.1f MiB", float64(large)/(1<<20)), theirs: fmt.Sprintf("itself with 1 GB, %.1f MiB", float64(small)/(1<<20)),
		value: ratio, format: "%.2f", bound: "≤ 1.25", holds: ratio <= 1.25,
	})
	return nil
}

// zeros is content that is nowhere: one blob of zero bytes, beside others.
type zeros struct {
	testkit.Memory
	blob cas.Digest
	size int64
}

func (z zeros) Has(d cas.Digest) (bool, error) {
	if d == z.blob {
		return true, nil
	}
	return z.Memory.Has(d)
}

func (z zeros) Open(d cas.Digest) (io.ReadCloser, error) {
	if d == z.blob {
		return io.NopCloser(io.LimitReader(zeroReader{}, z.size)), nil
	}
	return z.Memory.Open(d)
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func sumOfZeros(n int64) (cas.Digest, error) {
	h := sha256.New()
	_, err := io.CopyBuffer(h, io.LimitReader(zeroReader{}, n), make([]byte, 1<<20))
	return cas.Digest(h.Sum(nil)), err
}

// peakOf is the peak of the heap while a bundle of one file of this size is laid.
func peakOf(ctx context.Context, size int64) (uint64, error) {
	digest, err := sumOfZeros(size)
	chunk, chunkErr := sumOfZeros(bundle.ChunkSize)
	rest, restErr := sumOfZeros(size % bundle.ChunkSize)
	if err := errors.Join(err, chunkErr, restErr); err != nil {
		return 0, err
	}
	list, err := bundle.EncodeChunkList(digest, size, append(slices.Repeat([]cas.Digest{chunk}, int(size/bundle.ChunkSize)), rest))
	if err != nil {
		return 0, err
	}
	head, others, err := testkit.ForgeLarge(ctx, bundle.File{Path: "weights.gguf", Size: size, Digest: digest}, list)
	if err != nil {
		return 0, err
	}
	plan, err := bundle.PlanComplete(head)
	if err != nil {
		return 0, err
	}
	runtime.GC()
	var peak, events uint64
	err = plan.Write(ctx, io.Discard, zeros{others, digest, size}, func(int64) {
		if events++; events%64 == 1 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	})
	return peak, err
}
