package cli

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// terminal is an App whose ends can be looked at.
type terminal struct {
	*App
	out, err bytes.Buffer
	env      map[string]string
}

func newTerminal() *terminal {
	t := &terminal{env: map[string]string{}}
	t.App = &App{Name: "packhof", Stdin: strings.NewReader(""), Stdout: &t.out, Stderr: &t.err, Now: testkit.Noon, LookupEnv: func(name string) (string, bool) {
		value, ok := t.env[name]
		return value, ok
	}}
	return t
}

// tree is a small program: its command says what its flags are.
func (t *terminal) tree(run func(ctx context.Context) error) *cobra.Command {
	root := &cobra.Command{Use: "packhof", Short: "A test"}
	var to string
	var jobs int
	plan := &cobra.Command{Use: "plan", Short: "Plan", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		fmt.Fprintf(&t.out, "to=%s jobs=%d format=%s quiet=%v\n", to, jobs, t.Format, t.Quiet)
		if run != nil {
			return run(c.Context())
		}
		return nil
	}}
	plan.Flags().StringVar(&to, "to-folder", "here", "`folder` to write to")
	plan.Flags().IntVar(&jobs, "jobs", 1, "how many at once")
	key := &cobra.Command{Use: "key", Short: "Keys"}
	key.AddCommand(&cobra.Command{Use: "generate", Short: "Generate", RunE: func(*cobra.Command, []string) error { return nil }})
	root.AddCommand(plan, key)
	return root
}

func TestExecute(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		exit int
		out  string // contained in stdout
		err  string // contained in stderr
	}{
		"plain":                   {[]string{"plan"}, nil, 0, "to=here jobs=1 format=table quiet=false", ""},
		"flag":                    {[]string{"plan", "--to-folder", "x", "-q", "-o", "json"}, nil, 0, "to=x jobs=1 format=json quiet=true", ""},
		"environment":             {[]string{"plan"}, map[string]string{"PACKHOF_TO_FOLDER": "y", "PACKHOF_JOBS": "3", "PACKHOF_OUTPUT": "yaml", "PACKHOF_QUIET": "true"}, 0, "to=y jobs=3 format=yaml quiet=true", ""},
		"flag before environment": {[]string{"plan", "--jobs=2"}, map[string]string{"PACKHOF_JOBS": "3"}, 0, "jobs=2", ""},
		"wrong environment":       {[]string{"plan"}, map[string]string{"PACKHOF_JOBS": "many"}, 2, "", "PACKHOF_JOBS"},
		"wrong format":            {[]string{"plan", "-o", "xml"}, nil, 2, "", `unknown output format "xml"`},
		"wrong flag":              {[]string{"plan", "--nope"}, nil, 2, "", "unknown flag: --nope"},
		"wrong argument":          {[]string{"plan", "x"}, nil, 2, "", "packhof plan --help"},
		"unknown command":         {[]string{"plam"}, nil, 2, "", `unknown command "plam", did you mean "plan"?`},
		"unknown sub-command":     {[]string{"key", "genrate"}, nil, 2, "", `unknown command "genrate", did you mean "generate"?`},
		"far from any":            {[]string{"zzzzzzz"}, nil, 2, "", `unknown command "zzzzzzz"`},
		"group alone":             {[]string{"key"}, nil, 0, "generate", ""},
		"nothing":                 {nil, nil, 0, "A test", ""},
		"help of a command":       {[]string{"help", "plan"}, nil, 0, "--to-folder", ""},
		"help of nothing":         {[]string{"help", "nothing"}, nil, 2, "", "there is no help about"},
		"help environment":        {[]string{"help", "environment"}, nil, 0, "PACKHOF_TO_FOLDER", ""},
		"help exit-codes":         {[]string{"help", "exit-codes"}, nil, 0, "  130  interrupted", ""},
		"help json":               {[]string{"help", "json"}, nil, 0, "apiVersion", ""},
		"help formats":            {[]string{"help", "formats"}, nil, 0, "packhof.lock", ""},
		"help errors":             {[]string{"help", "errors"}, nil, 0, "serial/changed   exit 1", ""},
		"help errors CODE":        {[]string{"help", "errors", "volume/damaged"}, nil, 0, "volume/damaged   exit 11", ""},
		"help errors GROUP":       {[]string{"help", "errors", "lock"}, nil, 0, "lock/expired", ""},
		"help errors NOTHING":     {[]string{"help", "errors", "no/such"}, nil, 2, "", `there is no error code "no/such"`},
		"usage as JSON":           {[]string{"plan", "-o", "json"}, map[string]string{"PACKHOF_JOBS": "many"}, 2, "", `"code":"usage"`},
	} {
		t.Run(name, func(t *testing.T) {
			term := newTerminal()
			term.env = c.env
			exit := term.Execute(t.Context(), c.args, term.tree(nil))
			if exit != c.exit || !strings.Contains(term.out.String(), c.out) || !strings.Contains(term.err.String(), c.err) {
				t.Errorf("exit %d\nout %s\nerr %s", exit, term.out.String(), term.err.String())
			}
			if exit == 0 && term.err.Len() > 0 {
				t.Errorf("it went well and says %s", term.err.String())
			}
		})
	}
}

func TestExecuteFailures(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		exit int
	}{
		"coded":                     {t.Context(), problem.New("volume/damaged", "x"), 11},
		"uncoded":                   {t.Context(), errors.New("x"), 1},
		"an outcome":                {t.Context(), Outcome(2), 2},
		"interrupted":               {cancelled, context.Canceled, 130},
		"interrupted, says another": {cancelled, errors.New("connection closed"), 130},
	} {
		term := newTerminal()
		exit := term.Execute(c.ctx, []string{"plan"}, term.tree(func(context.Context) error { return c.err }))
		_, silent := c.err.(Outcome)
		if exit != c.exit || silent != (term.err.Len() == 0) {
			t.Errorf("%s: exit %d, %s", name, exit, term.err.String())
		}
	}
	if got := Outcome(2).Error(); got != "exit code 2" {
		t.Error(got)
	}
}

func TestPrint(t *testing.T) {
	document := struct {
		Name string         `json:"name"`
		Map  map[string]int `json:"map"`
	}{"x", map[string]int{"b": 2, "a": 1}}
	for format, want := range map[string]string{
		"table": "NAME x\n",
		"json":  "{\n  \"apiVersion\": \"packhof/v1\",\n  \"kind\": \"Thing\",\n  \"name\": \"x\",\n  \"map\": {\n    \"a\": 1,\n    \"b\": 2\n  }\n}\n",
		"yaml":  "apiVersion: packhof/v1\nkind: Thing\nname: x\nmap:\n  a: 1\n  b: 2\n",
	} {
		term := newTerminal()
		term.Format = format
		if err := term.Print("Thing", document, func(w io.Writer) { fmt.Fprintln(w, "NAME x") }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, term.out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	term := newTerminal()
	term.Format = "json"
	if err := term.Print("Empty", struct{}{}, nil); err != nil || !valid(term.out.Bytes()) {
		t.Errorf("an empty document: %s, %v", term.out.String(), err)
	}
	for _, bad := range []any{[]int{1}, map[string]any{"kind": "two"}, func() {}} {
		if err := term.Print("Bad", bad, nil); err == nil {
			t.Errorf("printed %T", bad)
		}
	}
}

func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		german bool
		want   string
	}{
		"English": {false, "waiting for: fetch b?[2J (1.0 KiB of 2.0 KiB), scan a\n" +
			fmt.Sprintf("%-60s  1.5s  failed\n", "scan a") + fmt.Sprintf("%-60s  1.5s  denied\n", "judge") + fmt.Sprintf("%-60s  2.0 KiB  1m1.5s  ok\n", "fetch b?[2J")},
		"German": {true, "es läuft noch: fetch b?[2J (1,0 KiB von 2,0 KiB), scan a\n" +
			fmt.Sprintf("%-60s  1,5s  gescheitert\n", "scan a") + fmt.Sprintf("%-60s  1,5s  nicht zulässig\n", "judge") + fmt.Sprintf("%-60s  2,0 KiB  1m1,5s  in Ordnung\n", "fetch b?[2J")},
	} {
		clock := testkit.NewClock(testkit.Noon())
		var out bytes.Buffer
		app := &App{German: c.german}
		l := &lines{w: &out, words: app.progressWords(), now: clock.Now, running: map[*line]bool{}, stop: make(chan struct{})}
		a, b := l.Start("fetch b\x1b[2J", 2048), l.Start("scan a", 0)
		a.Advance(1024)
		l.report()
		judged := l.Start("judge", 0)
		clock.Advance(1540 * time.Millisecond)
		b.Done(errors.New("x"))
		judged.Done(problem.New("policy/denied", "the policy denies it"))
		clock.Advance(time.Minute)
		a.Done(nil)
		l.report() // nothing is waited for
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		l.Close()
		l.Close() // twice does no harm
	}
}

// TestBars: how far a bar is, and how fast, in the language of the program.
func TestBars(t *testing.T) {
	for german, want := range map[bool][]string{
		false: {"1.5 MiB / 3.0 MiB", "768.0 KiB/s"},
		true:  {"1,5 MiB / 3,0 MiB", "768,0 KiB/s"},
	} {
		clock := testkit.NewClock(testkit.Noon())
		app := &App{German: german}
		b := &bars{words: app.progressWords(), now: clock.Now}
		speed := b.speed(clock.Now())
		if got := speed(decor.Statistics{Current: 1}); got != "" {
			t.Errorf("in no time at all: %q", got)
		}
		clock.Advance(2 * time.Second)
		now := decor.Statistics{Current: 3 << 19, Total: 3 << 20}
		if diff := cmp.Diff(want, []string{b.counters(now), speed(now)}); diff != "" {
			t.Errorf("German %v (-want +got):\n%s", german, diff)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	told := make(chan string, 1)
	l := &lines{w: writerFunc(func(p []byte) (int, error) { told <- string(p); return len(p), nil }), words: (&App{}).progressWords(), now: testkit.Noon, running: map[*line]bool{}, stop: make(chan struct{})}
	l.Start("scan a", 0)
	ended := make(chan struct{})
	go func() { l.beat(time.NewTicker(time.Millisecond)); close(ended) }()
	if got := <-told; got != "waiting for: scan a\n" {
		t.Errorf("the heartbeat says %q", got)
	}
	l.Close()
	for {
		select {
		case <-told:
		case <-ended:
			return
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestProgressThatFits(t *testing.T) {
	term := newTerminal()
	p := term.Progress()
	item := p.Start("fetch a", 10)
	item.Advance(10)
	item.Done(nil)
	p.Close()
	if !strings.Contains(term.err.String(), "fetch a") || term.out.Len() > 0 {
		t.Errorf("out %q, err %q", term.out.String(), term.err.String())
	}
	quietly := newTerminal()
	quietly.Quiet = true
	p = quietly.Progress()
	item = p.Start("fetch a", 10)
	item.Advance(10)
	item.Done(nil)
	p.Close()
	if quietly.err.Len() > 0 {
		t.Errorf("quiet says %q", quietly.err.String())
	}
}

func TestPassphraseSources(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "phrase")
	if err := os.WriteFile(file, []byte("from file\r\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want string
		code string
	}{
		"file":             {map[string]string{"PACKHOF_PASSPHRASE_FILE": file}, "from file", ""},
		"environment":      {map[string]string{"PACKHOF_PASSPHRASE": "from env "}, "from env ", ""},
		"empty on purpose": {map[string]string{"PACKHOF_PASSPHRASE": ""}, "", ""},
		"command":          {map[string]string{"PACKHOF_PASSPHRASE_COMMAND": "printf 'from command\\nmore'"}, "from command", ""},
		"file first":       {map[string]string{"PACKHOF_PASSPHRASE_FILE": file, "PACKHOF_PASSPHRASE": "x", "PACKHOF_PASSPHRASE_COMMAND": "echo y"}, "from file", ""},
		"no file":          {map[string]string{"PACKHOF_PASSPHRASE_FILE": filepath.Join(dir, "none"), "PACKHOF_PASSPHRASE": "x"}, "", "file/missing"},
		"command fails":    {map[string]string{"PACKHOF_PASSPHRASE_COMMAND": "echo x; exit 3"}, "", "passphrase/command"},
		"nobody to ask":    {nil, "", "passphrase/none"},
	} {
		term := newTerminal()
		term.env = c.env
		got, err := term.Passphrase(t.Context(), "keys/packhof.key", false)
		if string(got) != c.want || c.code == "" && err != nil || c.code != "" && CodeOf(err) != c.code {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "from file") {
			t.Errorf("%s: the error tells the passphrase: %v", name, err)
		}
	}
}

func TestSchema(t *testing.T) {
	b, err := json.Marshal(Schema(&struct {
		Name string    `json:"name"`
		When time.Time `json:"when"`
	}{}))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		AdditionalProperties bool                         `json:"additionalProperties"`
		Properties           map[string]map[string]string `json:"properties"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	if got.AdditionalProperties || got.Properties["when"]["type"] != "string" || got.Properties["name"]["type"] != "string" {
		t.Errorf("the schema is %s", b)
	}
}

func valid(b []byte) bool {
	var v any
	return json.Unmarshal(b, &v) == nil
}

func TestPasswordSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from file\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		want string
		code string
	}{
		"file":             {file, nil, "from file", ""},
		"file before all":  {file, map[string]string{"PACKHOF_PASSWORD": "from env"}, "from file", ""},
		"environment":      {"", map[string]string{"PACKHOF_PASSWORD": "from env "}, "from env ", ""},
		"command":          {"", map[string]string{"PACKHOF_PASSWORD_COMMAND": "echo from command"}, "from command", ""},
		"of a key":         {"", map[string]string{"PACKHOF_PASSPHRASE": "of a key"}, "", "password/none"},
		"no such file":     {file + ".none", nil, "", "file/missing"},
		"command fails":    {"", map[string]string{"PACKHOF_PASSWORD_COMMAND": "exit 3"}, "", "password/command"},
		"nobody to ask":    {"", nil, "", "password/none"},
		"empty on purpose": {"", map[string]string{"PACKHOF_PASSWORD": ""}, "", ""},
	} {
		term := newTerminal()
		term.env = c.env
		got, err := term.Password(t.Context(), c.file, "anna", false)
		if code := codeOrNone(err); code != c.code || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func codeOrNone(err error) string {
	if err == nil {
		return ""
	}
	return CodeOf(err)
}
