package mirror_test

import (
	"os"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/mirror"
)

func (y *yard) abandon(t *testing.T, serial int64, undelivered bool) error {
	t.Helper()
	return y.ledger(t).Abandon(1, serial, "lost in the post", undelivered, y.gates(t), y.now)
}

func TestPlannedSerialThatIsGivenUp(t *testing.T) {
	y := newYard(t)
	first, _ := y.export(t, y.plan(t))
	l := y.plan(t)
	wantCode(t, "one that is neither sealed nor next", y.abandon(t, 3, false), "serial/not-planned")
	if err := y.abandon(t, 2, false); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "twice", y.abandon(t, 2, false), "serial/abandoned")
	_, err := y.exporter(t).Export(t.Context(), l, t.TempDir())
	wantCode(t, "its lock is exported", err, "serial/abandoned")
	_, _, err = mirror.SealedLock(y.store, y.ledger(t), 1, 2)
	wantCode(t, "it is sent again", err, "serial/abandoned")
	next := y.plan(t)
	if next.Serial != 3 || next.Previous == nil || *next.Previous != first.Manifest {
		t.Errorf("the next is serial %d after %v, want 3 after %s", next.Serial, next.Previous, first.Manifest)
	}
	y.export(t, next)
	checkSerials(t, y, next, "1 sealed, 2 abandoned, 3 sealed")
}

func TestSealedSerialThatIsGivenUp(t *testing.T) {
	y := newYard(t)
	first, _ := y.export(t, y.plan(t))
	second := y.plan(t)
	y.export(t, second)
	wantCode(t, "nobody said that it was not delivered", y.abandon(t, 2, false), "serial/delivered")
	if err := y.abandon(t, 2, true); err != nil {
		t.Fatal(err)
	}
	_, err := y.exporter(t).Export(t.Context(), second, t.TempDir())
	wantCode(t, "its lock is exported again", err, "serial/abandoned")
	if last, err := mirror.LastSealed(y.ledger(t)); err != nil || last.Manifest != first.Manifest {
		t.Errorf("resend takes %+v, %v", last, err)
	}
	next := y.plan(t)
	if next.Serial != 3 || *next.Previous != first.Manifest {
		t.Errorf("the next is serial %d after %v, want 3 after the first", next.Serial, next.Previous)
	}
	checkSerials(t, y, next, "1 sealed, 2 abandoned, 3 planned")
}

func TestDeliveredSerialIsNotGivenUp(t *testing.T) {
	y := newYard(t)
	s, _ := y.export(t, y.plan(t))
	y.keep(t, y.receiptOf(t, y.now, bundle.Reads(), heldAs(s, bundle.HoldsNone)))
	wantCode(t, "a gate took it in", y.abandon(t, 1, true), "serial/delivered")
	checkSerials(t, y, nil, "1 sealed")
}

func TestReasonOfAnAbandonment(t *testing.T) {
	y := newYard(t)
	for _, reason := range []string{"", "two\nlines", strings.Repeat("x", 1025)} {
		wantCode(t, "a reason that cannot be kept", y.ledger(t).Abandon(1, 1, reason, false, y.gates(t), y.now), "usage")
	}
}

func checkSerials(t *testing.T, y *yard, lock *mirror.Lock, want string) {
	t.Helper()
	var got []string
	for _, s := range y.ledger(t).Serials(lock, y.gates(t)) {
		got = append(got, strings.Join([]string{string(rune('0' + s.Serial)), s.State}, " "))
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("the channel has %v, want %s", got, want)
	}
}

func TestAbandonmentsInTheLedgerAreStrict(t *testing.T) {
	y := newYard(t)
	y.export(t, y.plan(t))
	sealed, err := os.ReadFile(y.ledgerPath())
	if err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{
		"without a time":     `{"epoch":1,"serial":2,"abandoned":"x"}`,
		"without a reason":   `{"epoch":1,"serial":2,"at":"2026-11-30T12:00:00Z"}`,
		"with a manifest":    `{"epoch":1,"serial":2,"abandoned":"x","at":"2026-11-30T12:00:00Z","manifest":"sha256:` + strings.Repeat("a", 64) + `"}`,
		"of an older serial": `{"epoch":1,"serial":3,"abandoned":"x","at":"2026-11-30T12:00:00Z"}` + "\n" + `{"epoch":1,"serial":2,"abandoned":"x","at":"2026-11-30T12:00:00Z"}`,
		"twice":              strings.Repeat(`{"epoch":1,"serial":1,"abandoned":"x","at":"2026-11-30T12:00:00Z"}`+"\n", 2),
	} {
		write(t, y.ledgerPath(), append(sealed[:len(sealed):len(sealed)], line+"\n"...))
		_, err := mirror.OpenLedger(y.ledgerPath(), channel)
		wantCode(t, name, err, "ledger/malformed")
	}
}
