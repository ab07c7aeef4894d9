package run

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// at returns the turn that a wall clock is in.
func at(t *testing.T, o once, wall time.Time) time.Time {
	t.Helper()
	at, err := o.at(wall)
	if err != nil {
		t.Error(err)
	}
	return at
}

// tally is what came of the turns of a test.
type tally struct {
	mu     sync.Mutex
	starts map[time.Time]int // of CMD, by turn
	died   map[time.Time]int // hosts that died after the turn was begun
}

// host is a machine on which cron calls the job at the begin of each turn, by the machine's own clock.
type host struct {
	db    *memory.DB
	clk   *clocktest.Clock
	tally *tally
	retry bool
}

// The moments at which a host dies.
const (
	never = iota
	beforeBegin
	beforeStart // of CMD
	amidCMD
	afterEnd
	moments
)

// call is one call of the job, which takes lasts. The host dies at a moment: nothing of it goes on then, and its lease expires.
func (h *host) call(t *testing.T, per, lasts time.Duration, dies int) {
	m, err := lease.NewManager(h.db.Open(), lease.Options{Clock: h.clk, TTL: 15 * time.Second})
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = m.Close() }()
	die := func(at int) bool {
		if dies != at {
			return false
		}
		h.clk.Pause()
		time.Sleep(10 * time.Minute)
		h.clk.Resume()
		return true
	}
	l, err := m.Acquire(t.Context(), "job")
	if err != nil {
		t.Error(err)
		return
	}
	at := at(t, once{per: per}, h.clk.Wall())
	if die(beforeBegin) {
		return
	}
	st := h.db.Open()
	done, err := beginTurn(t.Context(), st, "job", turn{At: at, Token: l.Token(), Holder: l.Holder(), Begun: h.clk.Wall()}, h.retry)
	if err != nil {
		t.Error(err)
		return
	}
	if done == nil {
		if dies == beforeStart || dies == amidCMD {
			h.tally.mu.Lock()
			h.tally.died[at]++
			h.tally.mu.Unlock()
		}
		if die(beforeStart) {
			return
		}
		h.tally.mu.Lock()
		h.tally.starts[at]++
		h.tally.mu.Unlock()
		if die(amidCMD) {
			return
		}
		_ = clock.Sleep(t.Context(), h.clk, lasts)
		if err := endTurn(t.Context(), st, "job", l.Token(), 0); err != nil {
			t.Error(err)
		}
		if die(afterEnd) {
			return
		}
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// hour has three hosts call the job in each of many hours, and one or two of them die now and then. Their clocks are off by up to 20 s, and
// they start up to 30 s after the begin of the hour.
func hour(t *testing.T, turns int, retry bool) *tally {
	t.Helper()
	all := &tally{starts: map[time.Time]int{}, died: map[time.Time]int{}}
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		db := memory.NewDB(memory.Options{})
		begin := time.Now().Truncate(time.Hour).Add(time.Hour)
		var hosts sync.WaitGroup
		for range turns {
			skews := []time.Duration{-20 * time.Second, 0, 20 * time.Second}
			rng.Shuffle(3, func(i, j int) { skews[i], skews[j] = skews[j], skews[i] })
			healthy := rng.IntN(3)
			for i, skew := range skews {
				h := &host{db: db, clk: clocktest.New(0), tally: all, retry: retry}
				h.clk.StepWall(skew)
				start := time.Duration(rng.Int64N(int64(30 * time.Second)))
				lasts := time.Duration(rng.Int64N(int64(90 * time.Second)))
				dies := never
				if i != healthy && rng.IntN(4) == 0 {
					dies = 1 + rng.IntN(moments-1)
				}
				wait := time.Until(begin) - skew + start // by its clock: at the begin of the hour, and later by start
				hosts.Go(func() {
					time.Sleep(wait)
					h.call(t, time.Hour, lasts, dies)
				})
			}
			time.Sleep(time.Until(begin.Add(30 * time.Minute)))
			begin = begin.Add(time.Hour)
		}
		hosts.Wait()
	})
	return all
}

// Exactly one of three hosts runs each turn, though their clocks and their starts differ. A turn that a dying host had begun is not run again.
func TestOnceInEachTurn(t *testing.T) {
	const turns = 500
	all := hour(t, turns, false)
	missed, died := 0, 0
	for at, n := range all.starts {
		if n > 1 {
			t.Errorf("the turn of %v was run %d times", at, n)
		}
	}
	for at, n := range all.died {
		died += n
		if all.starts[at] == 0 {
			missed++
		}
	}
	if got := len(all.starts) + missed; got != turns {
		t.Errorf("%d turns were run, and %d begun by hosts that died: want %d", len(all.starts), missed, turns)
	}
	if missed == 0 || missed > died {
		t.Errorf("of %d hosts that died amid a turn, %d before CMD", died, missed)
	}
	t.Logf("%d turns were run once; %d hosts died after they had begun one, %d of them before CMD was started", len(all.starts), died, missed)
}

// With --retry-failed no turn is missed for a host that died, and it is run again only if one did.
func TestRetryRunsWhatDied(t *testing.T) {
	const turns = 100
	all := hour(t, turns, true)
	if len(all.starts) != turns {
		t.Errorf("%d turns were run, want %d", len(all.starts), turns)
	}
	for at, n := range all.starts {
		if n > 1+all.died[at] {
			t.Errorf("the turn of %v was run %d times, and %d hosts died", at, n, all.died[at])
		}
	}
}

// rows is a name whose record a test writes.
func held(t *testing.T) (*memory.DB, *lease.Lease) {
	t.Helper()
	db := memory.NewDB(memory.Options{})
	m, err := lease.NewManager(db.Open(), lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	l, err := m.Acquire(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	return db, l
}

// A host whose clock is behind does not run a turn before the last one.
func TestClockThatIsBehind(t *testing.T) {
	db, l := held(t)
	st := db.Open()
	now := time.Date(2026, 11, 24, 3, 0, 10, 0, time.UTC)
	o := once{per: time.Hour}
	if done, err := beginTurn(t.Context(), st, "job", turn{At: at(t, o, now), Token: l.Token()}, false); done != nil || err != nil {
		t.Fatalf("%v, %v", done, err)
	}
	if err := endTurn(t.Context(), st, "job", l.Token(), 0); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	l, err = m.Acquire(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	for _, retry := range []bool{false, true} {
		behind := turn{At: at(t, o, now.Add(-20*time.Second)), Token: l.Token()}
		if done, err := beginTurn(t.Context(), st, "job", behind, retry); done == nil || err != nil || !done.At.Equal(at(t, o, now)) {
			t.Errorf("retry %v: %v, %v", retry, done, err)
		}
	}
}

// A holder that was late can't begin or end a turn when a later term has begun one.
func TestTurnOfATermThatIsOver(t *testing.T) {
	db, l := held(t)
	st, at := db.Open(), time.Now()
	if done, err := beginTurn(t.Context(), st, "job", turn{At: at, Token: l.Token() + 1}, false); done != nil || err != nil {
		t.Fatal(done, err)
	}
	if _, err := beginTurn(t.Context(), st, "job", turn{At: at.Add(time.Hour), Token: l.Token()}, true); !errors.Is(err, errTerm) {
		t.Errorf("begun: %v", err)
	}
	if err := endTurn(t.Context(), st, "job", l.Token(), 0); !errors.Is(err, errTerm) {
		t.Errorf("ended: %v", err)
	}
}

// Data that this version can't read are an error, and stay.
func TestLaterTurnsAreRefused(t *testing.T) {
	db, l := held(t)
	for text, corrupt := range map[string]bool{`{"v":2}`: true, `x`: true, `{"v":1,"kind":"rw"}`: false} {
		err := store.Update(context.Background(), db.Open(), turnPrefix+"job", func(rec *store.Record) (bool, error) { rec.Data = []byte(text); return true, nil })
		if err != nil {
			t.Fatal(err)
		}
		_, err = beginTurn(t.Context(), db.Open(), "job", turn{At: time.Now(), Token: l.Token()}, false)
		if errors.Is(err, store.ErrCorrupt) != corrupt || !corrupt && err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The turns of a week begin on Mondays, those of a day at midnight UTC.
func TestTurnsAreAligned(t *testing.T) {
	now := time.Date(2026, 11, 26, 13, 45, 10, 0, time.FixedZone("", 3600)) // a Thursday
	for per, want := range map[time.Duration]string{
		time.Hour: "2026-11-26T12:00:00Z", 24 * time.Hour: "2026-11-26T00:00:00Z", 7 * 24 * time.Hour: "2026-11-23T00:00:00Z", 15 * time.Minute: "2026-11-26T12:45:00Z",
	} {
		if got := at(t, once{per: per}, now).Format(time.RFC3339); got != want {
			t.Errorf("%v: %s, want %s", per, got, want)
		}
	}
}

// Which tick is due when, on common days and on those on which clocks are set forward and back.
func TestTicks(t *testing.T) {
	for _, tt := range []struct{ tick, tz, now, want string }{
		{"0 3 * * *", "", "2026-11-24T02:59:59Z", "2026-11-23 03:00"},
		{"0 3 * * *", "", "2026-11-24T03:00:00Z", "2026-11-24 03:00"},
		{"0 3 * * *", "", "2026-11-24T03:00:41Z", "2026-11-24 03:00"},
		{"*/15 * * * *", "", "2026-11-24T03:44:59Z", "2026-11-24 03:30"},
		{"0 3 * * *", "Europe/Berlin", "2026-11-24T02:00:00Z", "2026-11-24 03:00"},
		{"0 3 * * *", "Europe/Berlin", "2026-07-24T00:59:59Z", "2026-07-23 03:00"},
		{"@weekly", "", "2026-11-24T03:00:00Z", "2026-11-22 00:00"},
		{"0 3 29 2 *", "", "2026-11-24T03:00:00Z", "2024-02-29 03:00"},
		// 02:30 does not come on that day. It is due when clocks show 03:00, half an hour after 01:59.
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-28 02:30"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29 02:30"},
		{"0 3 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29 03:00"},
		// 02:30 comes twice on that day, as one turn. In between, clocks show a time before it, and the turn before it: that is over.
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:29:59Z", "2026-10-24 02:30"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25 02:30"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-24 02:30"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25 02:30"},
		{"0 3 * * *", "Europe/Berlin", "2026-10-25T02:00:00Z", "2026-10-25 03:00"},
	} {
		now, err := time.Parse(time.RFC3339, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := at(t, once{tick: tt.tick, tz: tt.tz}, now).Format("2006-01-02 15:04"); got != tt.want {
			t.Errorf("%s in %q at %s: %s, want %s", tt.tick, tt.tz, tt.now, got, tt.want)
		}
	}
}

func TestOnceMistakes(t *testing.T) {
	for says, o := range map[string]once{
		"--once-per 500ms: want 1s to": {given: true, per: 500 * time.Millisecond}, "--retry-failed: it belongs": {retry: true},
		"--done-exit-code: it belongs": {code: 3}, "--tz: it belongs": {tz: "Europe/Berlin"}, `--tz "Mars/Olympus": want a name`: {given: true, tick: "0 3 * * *", tz: "Mars/Olympus"},
		`--tick "61 * * * *": want minute`: {given: true, tick: "61 * * * *"}, `--tick "0 0 3 * * *": want minute`: {given: true, tick: "0 0 3 * * *"},
		`--tick "@5minutes": want minute`: {given: true, tick: "@5minutes"}, `--tick "0 0 30 2 *": it has had no time`: {given: true, tick: "0 0 30 2 *"},
		"exclude each other":   {given: true, tick: "0 3 * * *", per: time.Hour},
		"--done-exit-code 256": {given: true, per: time.Hour, code: 256}, "": {given: true, per: time.Hour},
	} {
		err := o.check(sharing{}, false, time.Now())
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
	o := once{given: true, per: time.Hour}
	if o.check(sharing{shared: true}, false, time.Now()) == nil || o.check(sharing{}, true, time.Now()) == nil {
		t.Error("--shared and --restart were taken")
	}
}
