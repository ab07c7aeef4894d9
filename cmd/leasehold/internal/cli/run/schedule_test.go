package run

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// at returns the turn that a wall clock is in.
func at(t *testing.T, o once, wall time.Time) time.Time {
	t.Helper()
	d, err := o.at(wall)
	if err != nil {
		t.Error(err)
	}
	return d.at
}

// tally is what came of the turns of a test.
type tally struct {
	mu      sync.Mutex
	starts  map[time.Time]int // of CMD, by turn
	died    map[time.Time]int // hosts that died after the turn was begun
	latest  time.Duration     // that CMD was started after the begin of its turn, the delay aside
	skipped int               // calls that were too late
}

func newTally() *tally { return &tally{starts: map[time.Time]int{}, died: map[time.Time]int{}} }

// host is a machine on which cron calls the job at the begin of each turn, by the machine's own clock.
type host struct {
	o     once
	db    *memory.DB
	clk   *clocktest.Clock
	tally *tally
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

// call is one call of the job, which takes lasts. The host dies at a moment: nothing of it continues then, and its lease expires.
func (h *host) call(t *testing.T, lasts time.Duration, dies int) {
	delayed := h.o.delay("job", h.clk.Wall())
	_ = clock.Sleep(t.Context(), h.clk, delayed)
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
	now := h.clk.Wall()
	if die(beforeBegin) {
		return
	}
	st := h.db.Open()
	done, late, err := h.o.begin(t.Context(), st, "job", turns.Turn{Token: l.Token(), Holder: l.Holder()}, now, delayed)
	if err != nil {
		t.Error(err)
		return
	}
	if late > 0 && done == nil {
		h.tally.mu.Lock()
		h.tally.skipped++
		h.tally.mu.Unlock()
	}
	if done == nil && late == 0 {
		at := at(t, h.o, now)
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
		h.tally.latest = max(h.tally.latest, now.Sub(at)-delayed)
		h.tally.mu.Unlock()
		if die(amidCMD) {
			return
		}
		_ = clock.Sleep(t.Context(), h.clk, lasts)
		if err := turns.End(t.Context(), st, "job", l.Token(), 0, h.clk.Wall()); err != nil {
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

// outage says that all hosts are down for some hours, from one hour on. Each comes back so much after the last of these hours has begun, and calls
// the job then.
type outage struct {
	from, last time.Time
	back       [3]time.Duration
}

// hours has three hosts call the job in each of many hours, and one or two of them die now and then. Their clocks are off by up to 20 s, and
// they start up to 30 s after the begin of the hour. Where there are outages, no host calls in one hour of six, or in a few.
func hours(t *testing.T, o once, n int, outages bool) (all *tally, begins []time.Time, down []outage) {
	t.Helper()
	all = newTally()
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		db := memory.NewDB(memory.Options{})
		begin := time.Now().Truncate(time.Hour).Add(time.Hour)
		var hosts sync.WaitGroup
		for range n {
			var back *outage
			if outages && rng.IntN(6) == 0 {
				back = &outage{from: begin.UTC()}
				begin = begin.Add(time.Duration(rng.IntN(3)) * time.Hour)
				back.last = begin.UTC()
				for i := range back.back {
					back.back[i] = time.Minute + time.Duration(rng.Int64N(int64(28*time.Minute)))
				}
				down = append(down, *back)
			} else {
				begins = append(begins, begin.UTC())
			}
			skews := []time.Duration{-20 * time.Second, 0, 20 * time.Second}
			rng.Shuffle(3, func(i, j int) { skews[i], skews[j] = skews[j], skews[i] })
			healthy := rng.IntN(3)
			for i, skew := range skews {
				h := &host{o: o, db: db, clk: clocktest.New(0), tally: all}
				h.clk.StepWall(skew)
				start := time.Duration(rng.Int64N(int64(30 * time.Second)))
				lasts := time.Duration(rng.Int64N(int64(90 * time.Second)))
				dies := never
				if i != healthy && rng.IntN(4) == 0 && back == nil {
					dies = 1 + rng.IntN(moments-1)
				}
				if back != nil {
					start = back.back[i]
				}
				wait := time.Until(begin) - skew + start // by its clock: at the begin of the hour, and later by start
				hosts.Go(func() {
					time.Sleep(wait)
					h.call(t, lasts, dies)
				})
			}
			begin = begin.Add(time.Hour)
			time.Sleep(time.Until(begin.Add(-time.Minute)))
		}
		hosts.Wait()
	})
	return all, begins, down
}

// Exactly one of three hosts runs each turn, though their clocks and their starts differ. A turn that a dying host had begun is not run again.
// A time at which no host could call is made up for, or skipped, as the flags say; those before it are missed.
func TestOnceInEachTurn(t *testing.T) {
	const n = 500
	for name, o := range map[string]once{
		"once per hour":                      {per: time.Hour},
		"once per hour, with splay":          {per: time.Hour, splay: 20 * time.Minute},
		"misfires are run":                   {tick: "0 * * * *", misfire: misfireRun},
		"misfires are run, with splay":       {tick: "0 * * * *", misfire: misfireRun, splay: 20 * time.Minute},
		"misfires are skipped":               {tick: "0 * * * *", misfire: misfireSkip, grace: anyGrace},
		"misfires are skipped, with splay":   {tick: "0 * * * *", misfire: misfireSkip, grace: anyGrace, splay: 20 * time.Minute},
		"misfires are skipped after seconds": {tick: "0 * * * *", misfire: misfireSkip, grace: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, begins, down := hours(t, o, n, true)
			died, lost, madeUp := 0, 0, 0
			for at, n := range all.starts {
				if n > 1 {
					t.Errorf("the turn of %v was run %d times", at, n)
				}
			}
			for at, n := range all.died {
				died += n
				if all.starts[at] == 0 {
					lost++
				}
			}
			run := func(at time.Time) bool { return all.starts[at] > 0 || all.died[at] > 0 }
			if o.grace != 10*time.Second { // else nobody may have been in time
				for _, at := range begins {
					if !run(at) {
						t.Errorf("the turn of %v was not begun", at)
					}
				}
			}
			for _, d := range down {
				for at := d.from; at.Before(d.last); at = at.Add(time.Hour) {
					if run(at) {
						t.Errorf("the turn of %v was run after another one", at)
					}
				}
				want := o.misfire != misfireSkip || slices.ContainsFunc(d.back[:], func(late time.Duration) bool { return late <= o.grace })
				if run(d.last) != want {
					t.Errorf("the turn of %v, for which hosts were late by %v: run is %v, want %v", d.last, d.back, !want, want)
				}
				if run(d.last) {
					madeUp++
				}
			}
			if o.misfire == misfireSkip && (all.latest > o.grace || all.skipped == 0) {
				t.Errorf("CMD was started %v late, and %d calls were skipped", all.latest, all.skipped)
			}
			if lost == 0 || madeUp == 0 && o.grace != 10*time.Second {
				t.Errorf("%d turns were lost, %d made up for: the test shows nothing", lost, madeUp)
			}
			t.Logf("%d turns were run once, %d of %d outages made up for; %d hosts died after they had begun one, %d of them before CMD was started; the latest start was %v late",
				len(all.starts), madeUp, len(down), died, lost, all.latest)
		})
	}
}

// With --retry-failed no turn is missed for a host that died, and it is run again only if one did.
func TestRetryRunsWhatDied(t *testing.T) {
	const n = 100
	all, _, _ := hours(t, once{per: time.Hour, retry: true}, n, false)
	if len(all.starts) != n {
		t.Errorf("%d turns were run, want %d", len(all.starts), n)
	}
	for at, n := range all.starts {
		if n > 1+all.died[at] {
			t.Errorf("the turn of %v was run %d times, and %d hosts died", at, n, all.died[at])
		}
	}
}

// How long a call waits depends on the name: machines wait alike, many jobs are spread, and the wait ends before the turn does.
func TestSplay(t *testing.T) {
	now := time.Date(2026, 11, 24, 3, 0, 10, 0, time.UTC)
	for _, o := range []once{{per: time.Hour, splay: 20 * time.Minute}, {tick: "0 3 * * *", splay: 20 * time.Minute}} {
		var minutes [20]int
		for i := range 2000 {
			name := fmt.Sprintf("job-%d", i)
			d := o.delay(name, now)
			if d < 0 || d >= o.splay || d != o.delay(name, now.Add(30*time.Second)) {
				t.Fatalf("%s: %v", name, d)
			}
			minutes[d/time.Minute]++
			if late := now.Add(59*time.Minute + 45*time.Second); o.per != 0 && o.delay(name, late) >= 5*time.Second {
				t.Errorf("%s: %v, in the last 5 s of the turn", name, o.delay(name, late))
			}
		}
		for m, n := range minutes {
			if n < 50 || n > 150 {
				t.Errorf("%d of 2000 jobs start in minute %d of 20", n, m)
			}
		}
	}
	if d := (once{per: time.Hour}).delay("job", now); d != 0 {
		t.Errorf("without --splay: %v", d)
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

// From when on a tick is due, and the next one: on days on which clocks are set forward and back, too.
func TestMoments(t *testing.T) {
	for _, tt := range []struct{ tick, tz, now, since, next string }{
		{"0 3 * * *", "", "2026-11-24T03:00:41Z", "2026-11-24T03:00:00Z", "2026-11-25T03:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"}, // left out: 03:00
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:05Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		{"30 1 * * *", "Europe/Berlin", "2026-03-29T00:45:00Z", "2026-03-29T00:30:00Z", "2026-03-29T23:30:00Z"},
		{"30 3 * * *", "Europe/Berlin", "2026-03-29T02:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T01:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}, // the second 02:30
		{"30 * * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-25T00:30:00Z", "2026-10-25T02:30:00Z"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T16:00:00Z", "2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}, // half an hour is left out
	} {
		now, err := time.Parse(time.RFC3339, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		d, err := once{tick: tt.tick, tz: tt.tz}.at(now)
		if since, next := d.since.Format(time.RFC3339), d.next.Format(time.RFC3339); err != nil || since != tt.since || next != tt.next {
			t.Errorf("%s in %q at %s: %s, %s, %v; want %s, %s", tt.tick, tt.tz, tt.now, since, next, err, tt.since, tt.next)
		}
	}
}

// Three machines call the job of 02:30 in Berlin on the days on which clocks are set, however often their cron does: it runs once a day.
func TestClocksAreSet(t *testing.T) {
	for _, misfire := range []string{misfireRun, misfireSkip} {
		for _, day := range []time.Time{time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)} {
			o := once{tick: "30 2 * * *", tz: "Europe/Berlin", misfire: misfire, grace: anyGrace}
			st, token, ran := memory.NewDB(memory.Options{}).Open(), fence.Token(0), []string{}
			for now := day; now.Before(day.Add(48 * time.Hour)); now = now.Add(2 * time.Minute) {
				token++
				done, late, err := o.begin(t.Context(), st, "job", turns.Turn{Token: token}, now, 0)
				if err != nil {
					t.Fatal(err)
				}
				if done == nil && late == 0 {
					ran = append(ran, now.Format("02 15:04"))
				}
			}
			want := []string{"28 12:00", "29 01:00", "30 00:30"} // the first one makes up for 02:30 of that day
			if day.Month() == time.October {
				want = []string{"24 12:00", "25 00:30", "26 01:30"}
			}
			if misfire == misfireSkip {
				want = want[1:]
			}
			if !slices.Equal(ran, want) {
				t.Errorf("misfire %s: it ran at %q, want %q", misfire, ran, want)
			}
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
		"--done-exit-code: it belongs": {code: 3}, "--tz Europe/Berlin: it belongs": {tz: "Europe/Berlin"}, `--tz "Mars/Olympus": want a name`: {given: true, tick: "0 3 * * *", tz: "Mars/Olympus"},
		`--tick "61 * * * *": 61: want the minute, from 0 to 59`: {given: true, tick: "61 * * * *"}, `--tick "0 0 3 * * *": it has 6 fields: want minute`: {given: true, tick: "0 0 3 * * *"},
		`--tick "@5minutes": it is no name of a time: want minute`: {given: true, tick: "@5minutes"}, `--tick "0 0 30 2 *": its time never comes: want a day of the month that the month has`: {given: true, tick: "0 0 30 2 *"},
		`--tick " ": it has 0 of 5 fields`: {given: true, ticked: true, tick: " "}, `--tick "": it has 0 of 5 fields`: {given: true, ticked: true},
		"sun is 0, the first day, and 7 the last one: write --tick '0 3 * * mon-7'": {given: true, tick: "0 3 * * mon-Sun"},
		"--once-per 9000h0m0s: want 1s to 366d":                                     {given: true, per: 9000 * time.Hour},
		"exclude each other":                                                        {given: true, tick: "0 3 * * *", per: time.Hour},
		"--done-exit-code 256":                                                      {given: true, per: time.Hour, code: 256}, "": {given: true, per: time.Hour},
		"--splay: it belongs": {splay: time.Minute}, "--splay 1h0m0s: want less than a turn": {given: true, per: time.Hour, splay: time.Hour},
		`--misfire "sip": want run or skip`:      {given: true, tick: "0 3 * * *", misfire: "sip"},
		"--misfire skip: it belongs to --tick":   {given: true, per: time.Hour, misfire: misfireSkip, grace: anyGrace},
		"--misfire-grace 1m0s: it belongs to":    {given: true, tick: "0 3 * * *", grace: time.Minute, graced: true},
		"--misfire-grace 1ms: want 1s to":        {given: true, tick: "0 3 * * *", misfire: misfireSkip, grace: time.Millisecond},
		"leave the seconds out: --tick '3 * * *": {given: true, tick: "0 3 * * * *"},
	} {
		err := o.check("job", sharing{}, false, time.Now())
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
	o := once{given: true, per: time.Hour}
	if o.check("job", sharing{shared: true}, false, time.Now()) == nil || o.check("job", sharing{}, true, time.Now()) == nil {
		t.Error("--shared and --restart were taken")
	}
	if err := o.check(strings.Repeat("n", store.MaxKey), sharing{}, false, time.Now()); err == nil || !strings.Contains(err.Error(), "it has 255 bytes: with --once-per and --tick, want 249 at most") {
		t.Error(err)
	}
}
