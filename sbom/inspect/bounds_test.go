package inspect_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packhof/packhof/sbom/inspect"
)

// hugeHeaders are headers of safetensors as large as an inspection takes them,
// each large in another way.
func hugeHeaders(size int) map[string]func(*strings.Builder) {
	const parts = 199_000
	list := func(b *strings.Builder, entry func(i int) string) {
		for i := 0; i < parts && b.Len() < size-300; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(entry(i))
		}
	}
	tensor := func(i int) string { return fmt.Sprintf(`{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}`, i, i+1) }
	return map[string]func(*strings.Builder){
		"many tensors": func(b *strings.Builder) {
			b.WriteByte('{')
			list(b, func(i int) string { return fmt.Sprintf(`"model.layers.%d.weight":%s`, i, tensor(i)) })
			b.WriteByte('}')
		},
		"long names": func(b *strings.Builder) {
			b.WriteByte('{')
			list(b, func(i int) string { return fmt.Sprintf(`"%0*d":%s`, size/parts-80, i, tensor(i)) })
			b.WriteByte('}')
		},
		"one name": func(b *strings.Builder) {
			fmt.Fprintf(b, `{"%s":%s}`, strings.Repeat("x", size-200), tensor(0))
		},
		"keys of metadata": func(b *strings.Builder) {
			b.WriteString(`{"__metadata__":{`)
			list(b, func(i int) string { return fmt.Sprintf(`"%0*d":""`, size/parts-10, i) })
			b.WriteString(`}}`)
		},
		"one value of metadata": func(b *strings.Builder) {
			fmt.Fprintf(b, `{"__metadata__":{"a":"%s"}}`, strings.Repeat("x", size-200))
		},
		"many dimensions": func(b *strings.Builder) {
			fmt.Fprintf(b, `{"a":{"dtype":"U8","shape":[1%s],"data_offsets":[0,1]}}`, strings.Repeat(",1", size/2-200))
		},
		"many offsets": func(b *strings.Builder) {
			fmt.Fprintf(b, `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0%s]}}`, strings.Repeat(",1", size/2-200))
		},
		"blanks": func(b *strings.Builder) { fmt.Fprintf(b, `{"a"%s:%s}`, strings.Repeat(" ", size-200), tensor(0)) },
	}
}

// TestHugeHeadersAreBounded inspects files whose headers are at the bound of
// an inspection, and one that is at the bound of the format.
func TestHugeHeadersAreBounded(t *testing.T) {
	const bound, reference = 32 << 20, 100_000_000
	const mostMemory, mostTime = 256 << 20, 10 * time.Second
	check := func(name string, size int, write func(*strings.Builder), limited bool) {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			write(&b)
			file := binary.LittleEndian.AppendUint64(nil, uint64(b.Len()))
			file = append(append(file, b.String()...), make([]byte, 200_000)...)
			if b.Len() > size || b.Len() < size/3 {
				t.Fatalf("the header has %d bytes", b.Len())
			}
			b.Reset()
			start := usedTime(t)
			var report inspect.Report
			grown := mostGrown(func() {
				var err error
				if report, err = inspect.File(t.Context(), bytes.NewReader(file), int64(len(file)), "model.safetensors", inspect.Limits{}); err != nil {
					t.Error(err)
				}
			})
			if report.Format != inspect.Safetensors || !report.Unreadable || report.Has(inspect.CodeFileLimit) != limited {
				t.Errorf("%+v", report)
			}
			if took := usedTime(t) - start; took > mostTime || grown > mostMemory {
				t.Errorf("it took %v and %d MiB", took, grown>>20)
			}
		})
	}
	for name, write := range hugeHeaders(bound) {
		check(name, bound, write, name == "many dimensions" || name == "many offsets")
	}
	check("as large as the format takes", reference, func(b *strings.Builder) { b.WriteString("{" + strings.Repeat(" ", reference-2) + "}") }, true)
}

// usedTime is the processor time of this process: others may be busy too.
func usedTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// mostGrown looks every few milliseconds how much memory the process has got
// while something runs.
func mostGrown(run func()) uint64 {
	debug.FreeOSMemory()
	held := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys - m.HeapReleased
	}
	before := held()
	most := before
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				most = max(most, held())
			}
		}
	}()
	run()
	close(stop)
	<-stopped
	return most - before
}
