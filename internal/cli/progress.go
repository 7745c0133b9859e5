package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// Progress shows what a long command does, on stderr: bars on a terminal, a
// line an item elsewhere, with a heartbeat that says what is waited for.
type Progress interface {
	// Start begins an item; bytes is 0 when nobody knows.
	Start(what string, bytes int64) Item
	// Close ends the display before the result is printed.
	Close()
}

// Item is one thing in progress. It is safe for use by several goroutines.
type Item interface {
	Advance(bytes int64)
	Done(err error)
}

const heartbeat = 30 * time.Second

// Progress gives the display that fits where stderr goes.
func (a *App) Progress() Progress {
	if a.Quiet {
		return quiet{}
	}
	f, isFile := a.Stderr.(*os.File)
	if isFile && term.IsTerminal(int(f.Fd())) && a.Getenv("TERM") != "dumb" {
		return &bars{p: mpb.New(mpb.WithOutput(f), mpb.WithWidth(40), mpb.WithAutoRefresh()), words: a.progressWords(), now: a.Now}
	}
	l := &lines{w: a.Stderr, words: a.progressWords(), now: a.Now, running: map[*line]bool{}, stop: make(chan struct{})}
	go l.beat(time.NewTicker(heartbeat))
	return l
}

// progressWords are what a display says besides the names of its items.
type progressWords struct {
	ok, failed string
	denied     string // what was judged, by a judging that went well
	waiting    string // for what, and how far that is
	of         string // how much of how much
	point      string // of a decimal fraction
}

func (a *App) progressWords() progressWords {
	if a.German {
		return progressWords{ok: "in Ordnung", failed: "gescheitert", denied: "nicht zulässig", waiting: "es läuft noch: %s\n", of: "%s von %s", point: ","}
	}
	return progressWords{ok: "ok", failed: "failed", denied: "denied", waiting: "waiting for: %s\n", of: "%s of %s", point: "."}
}

// decimal writes a number that has a decimal point as the language does.
func (w progressWords) decimal(text string) string { return strings.ReplaceAll(text, ".", w.point) }

func (w progressWords) bytes(n int64) string { return w.decimal(Bytes(n)) }

type quiet struct{}

func (quiet) Start(string, int64) Item { return quiet{} }
func (quiet) Close()                   {}
func (quiet) Advance(int64)            {}
func (quiet) Done(error)               {}

// bars is the display on a terminal.
type bars struct {
	p     *mpb.Progress
	words progressWords
	now   func() time.Time
}

func (b *bars) Start(what string, bytes int64) Item {
	if bytes == 0 { // nobody knows how much there is: say how long it has taken
		spinner := b.p.AddSpinner(0, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(Shorten(clean(what), 48), decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO)))
		return &bar1{spinner}
	}
	bar := b.p.AddBar(bytes,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(Shorten(clean(what), 48), decor.WCSyncSpaceR)),
		mpb.AppendDecorators(decor.Any(b.counters, decor.WCSyncSpace), decor.Any(b.speed(b.now()), decor.WCSyncSpace)))
	return &bar1{bar}
}

func (b *bars) counters(s decor.Statistics) string {
	return b.words.bytes(s.Current) + " / " + b.words.bytes(s.Total)
}

// speed is how fast an item went on the average since it began.
func (b *bars) speed(begun time.Time) func(decor.Statistics) string {
	return func(s decor.Statistics) string {
		seconds := b.now().Sub(begun).Seconds()
		if seconds <= 0 {
			return ""
		}
		return b.words.bytes(int64(float64(s.Current)/seconds)) + "/s"
	}
}

func (b *bars) Close() { b.p.Wait() }

type bar1 struct{ bar *mpb.Bar }

func (b *bar1) Advance(n int64) { b.bar.IncrInt64(n) }

func (b *bar1) Done(error) {
	b.bar.SetTotal(-1, true)
	b.bar.Abort(true)
}

// lines is the display in a log.
type lines struct {
	mu      sync.Mutex
	w       io.Writer
	words   progressWords
	now     func() time.Time
	running map[*line]bool
	stop    chan struct{}
	once    sync.Once
}

type line struct {
	all   *lines
	what  string
	total int64
	done  int64
	begun time.Time
}

func (l *lines) Start(what string, bytes int64) Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	item := &line{all: l, what: clean(what), total: bytes, begun: l.now()}
	l.running[item] = true
	return item
}

func (l *lines) Close() { l.once.Do(func() { close(l.stop) }) }

func (l *lines) beat(ticker *time.Ticker) {
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.report()
		case <-l.stop:
			return
		}
	}
}

// report says what is being waited for.
func (l *lines) report() {
	l.mu.Lock()
	defer l.mu.Unlock()
	var waiting []string
	for item := range l.running {
		text := item.what
		if item.total > 0 {
			text += " (" + fmt.Sprintf(l.words.of, l.words.bytes(item.done), l.words.bytes(item.total)) + ")"
		}
		waiting = append(waiting, text)
	}
	slices.Sort(waiting)
	if len(waiting) > 0 {
		fmt.Fprintf(l.w, l.words.waiting, strings.Join(waiting, ", "))
	}
}

func (i *line) Advance(n int64) {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	i.done += n
}

func (i *line) Done(err error) {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	delete(i.all.running, i)
	words := i.all.words
	size := ""
	if i.total > 0 {
		size = "  " + words.bytes(i.total)
	}
	result := words.ok
	switch {
	case CodeOf(err) == "policy/denied":
		result = words.denied
	case err != nil:
		result = words.failed
	}
	took := words.decimal(i.all.now().Sub(i.begun).Round(100 * time.Millisecond).String())
	fmt.Fprintf(i.all.w, "%-60s%s  %s  %s\n", i.what, size, took, result)
}
