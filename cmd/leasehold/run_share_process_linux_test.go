package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store"
)

// ways are the flags by which a name is held otherwise than by a lease of its own.
var ways = map[string][]string{"shared": {"--shared"}, "slots": {"--slots", "1"}, "fair": {"--fair"}}

// session returns the record of the one session there is, and when it was last written at the latest.
func (r reader) session() (store.Record, clock.Instant) {
	r.t.Helper()
	for rec, err := range r.st.List(r.t.Context(), ".session/") {
		if err != nil {
			r.t.Fatal(err)
		}
		return rec, clock.System().Now().Add(-rec.Age)
	}
	r.t.Fatal("there is no session")
	return store.Record{}, 0
}

// However the name is held: when the store is out, the command is dead before what was last written is valid no more.
func TestPitfall_C1_RealOutageOfShares(t *testing.T) {
	for name, flags := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stalltest.Run(t, func(t testing.TB) {
				p := newPlace(t)
				run := p.start(runArgsWith(slices.Concat(flags, shortTTL), "job", "sh", "-c", "echo $$ >pid; exec ticker ticks stubborn")...)
				p.ticked("ticks")
				ticker, reader := p.pid("pid"), p.reader()
				restore := p.cutOff()
				rec, written := reader.session()
				eventually(t, "the command is dead", func() bool { return !runs(ticker) })
				if end := written.Add(validity(rec)); p.lastTick("ticks") >= end {
					t.Errorf("it ran on for %v after the end of its validity", p.lastTick("ticks").Sub(end))
				}
				restore()
				if code := run.code(); code != cli.ExitLost || !strings.Contains(run.stderr.String(), "SIGTERM") {
					t.Errorf("exit code %d, want %d: %s", code, cli.ExitLost, run.stderr)
				}
			})
		})
	}
}

// Who waits for a share, and loses its place by an outage of the store, goes on waiting.
func TestWaiterForAShareOutlivesAnOutage(t *testing.T) {
	stalltest.Run(t, waiterForAShareOutlivesAnOutage)
}

func waiterForAShareOutlivesAnOutage(t testing.TB) {
	p := newPlace(t)
	p.start("run", "job", "--slots", "1", "--ttl", "2m", "--", "sh", "-c", "echo >held; until [ -e done ]; do sleep 0.01; done")
	p.content("held")
	waiter := p.start(runArgsWith(append([]string{"--slots", "1"}, shortTTL...), "job", "sh", "-c", "echo >next")...)
	says := func(text string) {
		t.Helper()
		eventually(t, text, func() bool { return strings.Contains(waiter.stderr.String(), text) })
	}
	says("waiting for job: held by")
	restore := p.cutOff()
	says("waiting for job again, at the end of the queue")
	restore()
	p.write("done")
	p.content("next")
	if code := waiter.code(); code != 0 || strings.Contains(waiter.stderr.String(), "lost") {
		t.Errorf("exit code %d: %s", code, waiter.stderr)
	}
}

// Whoever is killed has no share any more when its TTL is over, and its command is gone before another one starts.
func TestKilledHolderFreesItsShare(t *testing.T) {
	for name, flags := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stalltest.Run(t, func(t testing.TB) {
				p := newPlace(t)
				holder := p.start(runArgsWith(slices.Concat(flags, shortTTL), "job", "sh", "-c", "echo $$ >pid; exec ticker ticks stubborn")...)
				p.ticked("ticks")
				next := slices.Concat(flags, shortTTL)
				if name == "shared" {
					next = shortTTL // who writes waits for readers
				}
				start := time.Now()
				holder.signal(syscall.SIGKILL)
				waiter := p.start(runArgsWith(next, "job", "sh", "-c", "echo >next")...)
				p.content("next")
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("it took %v: want it at once, and after the TTL, 4 s, at the latest", took)
				}
				if runs(p.pid("pid")) {
					t.Error("the killed holder's command still runs")
				}
				if code := waiter.code(); code != 0 {
					t.Errorf("exit code %d: %s", code, waiter.stderr)
				}
			})
		})
	}
}
