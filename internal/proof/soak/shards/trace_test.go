//go:build linux

package shards

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// traced is a store that says what it does with the records of the map, a line for each thing: "T p CHUNK VERSION FROM TO TOKENS" for
// a write, with the tokens of the last changes, and "-" for the version of one that was refused; "T r CHUNK VERSION FROM TO" for a read;
// "T w CHUNK VERSION AT AT" when a push has come.
type traced struct {
	store.Store
	say func(format string, args ...any)
}

var chunkPrefix = shardmap.Space{Name: servingSpace}.ChunkPrefix()

func (s traced) Properties() store.Properties { return store.Describe(s.Store) }

func (s traced) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	from := clock.System().Now()
	got, err := s.Store.Put(ctx, rec)
	to := clock.System().Now()
	chunk, ok := strings.CutPrefix(rec.Key, chunkPrefix)
	switch {
	case !ok:
	case err != nil:
		s.say("T p %s - %d %d\n", chunk, from, to)
	default:
		var c struct {
			Past []struct {
				Token fence.Token `json:"k"`
			} `json:"h"`
		}
		_ = json.Unmarshal(rec.Data, &c) // what isn't there isn't traced
		var tokens strings.Builder
		for _, p := range c.Past {
			fmt.Fprintf(&tokens, " %d", p.Token)
		}
		s.say("T p %s %s %d %d%s\n", chunk, got.Version, from, to, tokens.String())
	}
	return got, err
}

func (s traced) read(key string, from clock.Instant, rec store.Record, err error) {
	if chunk, ok := strings.CutPrefix(key, chunkPrefix); ok && err == nil && rec.Version != "" {
		s.say("T r %s %s %d %d\n", chunk, rec.Version, from, clock.System().Now())
	}
}

func (s traced) Get(ctx context.Context, key string) (store.Record, error) {
	from := clock.System().Now()
	rec, err := s.Store.Get(ctx, key)
	s.read(key, from, rec, err)
	return rec, err
}

// Confirm implements [store.Confirmer].
func (s traced) Confirm(ctx context.Context, key string) (store.Record, error) {
	from := clock.System().Now()
	rec, err := store.Confirm(ctx, s.Store, key)
	s.read(key, from, rec, err)
	return rec, err
}

// Wait implements [store.Waiter].
func (s traced) Wait(ctx context.Context, key, version string) (store.Record, error) {
	rec, err := store.Wait(ctx, s.Store, key, version)
	if chunk, ok := strings.CutPrefix(key, chunkPrefix); ok && err == nil && rec.Version != "" {
		at := clock.System().Now()
		s.say("T w %s %s %d %d\n", chunk, rec.Version, at, at)
	}
	return rec, err
}

// tracing returns a traced store: one that proves the ends of processes if st does.
func tracing(st store.Store, say func(format string, args ...any)) store.Store {
	if w, ok := st.(driver.Witness); ok {
		return struct {
			traced
			driver.Witness
		}{traced{st, say}, w}
	}
	return traced{st, say}
}

// trace is what came of the records of the map, by process; that of the router is 0.
type trace struct {
	mu     sync.Mutex
	writes map[string][]event // by chunk
	seen   map[string][]event // by chunk and process: reads and pushes
	sent   map[string]clock.Instant
	heard  map[string]clock.Instant // of the floor
}

type event struct {
	kind     string
	pid      int
	version  string
	from, to clock.Instant
	tokens   []fence.Token
}

func newTrace() *trace {
	return &trace{writes: map[string][]event{}, seen: map[string][]event{}, sent: map[string]clock.Instant{}, heard: map[string]clock.Instant{}}
}

// line takes down a line of a traced store, or of the floor: "F NONCE AT" for a write, "G NONCE AT" for its push.
func (tr *trace) line(pid int, f []string) {
	number := func(text string) int64 {
		n, _ := strconv.ParseInt(text, 10, 64) // 0 in half a line
		return n
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	switch {
	case len(f) == 3 && f[0] == "F":
		tr.sent[f[1]] = clock.Instant(number(f[2]))
	case len(f) == 3 && f[0] == "G":
		tr.heard[f[1]] = clock.Instant(number(f[2]))
	case len(f) >= 6 && f[0] == "T":
		e := event{kind: f[1], pid: pid, version: f[3], from: clock.Instant(number(f[4])), to: clock.Instant(number(f[5]))}
		for _, t := range f[6:] {
			e.tokens = append(e.tokens, fence.Token(number(t)))
		}
		if e.kind == "p" {
			tr.writes[f[2]] = append(tr.writes[f[2]], e)
		} else {
			key := fmt.Sprint(f[2], " ", pid)
			tr.seen[key] = append(tr.seen[key], e)
		}
	}
}

// The steps of the gap of a slice: from the call of Drain until the write that passes the slice on is sent, from there until its push
// has come to the next owner, until that begins to read the record, until it has read it, and until it calls Start.
var steps = []string{"until the write is sent", "write to push", "push to read", "read", "to Start", "in all"}

// passing is the way of one slice.
type passing struct {
	steps   []time.Duration
	write   time.Duration // as its owner sees it
	router  time.Duration // from the write until the router has heard of it; 0 if that isn't known
	refused []string      // writes of the same process while the slice was on its way: by whose write
}

// passings returns the ways of all moves since an instant, in a space of so many slices.
func (tr *trace) passings(l *ledger, count int, since clock.Instant) (all []passing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	space := shardmap.Space{Name: servingSpace, Hashed: true, Bits: shardmap.BitsFor(count)}
	for id, ends := range l.ends {
		from, _ := strconv.ParseUint(id[:16], 16, 64) // as shardmap.Slice.ID writes it
		chunk := fmt.Sprintf("%05d", space.ChunkOf(from))
		for _, end := range ends {
			next := turn{at: clock.NoDeadline}
			for _, s := range l.starts[id] {
				if s.token > end.token && s.at < next.at {
					next = s
				}
			}
			if end.at >= since && next.at != clock.NoDeadline {
				if p, ok := tr.passing(chunk, end, next); ok {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

func (tr *trace) passing(chunk string, end, next turn) (p passing, ok bool) {
	var w event // that gave the token
	for _, e := range tr.writes[chunk] {
		if e.version == "-" {
			if e.pid == end.pid && e.to > end.at && e.to < next.at {
				p.refused = append(p.refused, tr.refuser(chunk, e))
			}
		} else if slices.Contains(e.tokens, next.token) && (w.version == "" || e.from < w.from) {
			w = e
		}
	}
	if w.version == "" || w.pid != end.pid || w.from > next.at {
		return p, false // it was taken, or the trace has a hole
	}
	push, read := clock.NoDeadline, event{from: next.at, to: next.at}
	for _, e := range tr.seen[fmt.Sprint(chunk, " ", next.pid)] {
		switch {
		case e.kind == "w" && e.from > w.from:
			push = min(push, e.from)
		case e.kind == "r" && e.from > w.from && e.to <= next.at:
			read = e // the last one
		}
	}
	push = min(push, read.from)
	p.steps = []time.Duration{w.from.Sub(end.at), push.Sub(w.from), read.from.Sub(push), read.to.Sub(read.from), next.at.Sub(read.to), next.at.Sub(end.at)}
	p.write = w.to.Sub(w.from)
	router := clock.NoDeadline
	for _, e := range tr.seen[chunk+" 0"] {
		if e.kind == "w" && e.from > w.from {
			router = min(router, e.from)
		}
	}
	if router != clock.NoDeadline {
		p.router = router.Sub(w.from)
	}
	return p, true
}

// refuser says what kind of write has refused e: the last one that was sent before e was answered.
func (tr *trace) refuser(chunk string, e event) string {
	last := event{pid: -1}
	for _, w := range tr.writes[chunk] {
		if w.version != "-" && w.pid != e.pid && w.from < e.to && w.from > last.from {
			last = w
		}
	}
	newest := func(of event) fence.Token { return slices.Max(append([]fence.Token{0}, of.tokens...)) }
	before := fence.Token(0)
	for _, w := range tr.writes[chunk] {
		if w.version != "-" && w.from < last.from {
			before = max(before, newest(w))
		}
	}
	switch {
	case last.pid < 0:
		return "unknown"
	case newest(last) > before:
		return "of another owner that passed a slice on"
	}
	return "of the assigner, or of one that is ready"
}

// report logs where the gaps go.
func (tr *trace) report(logf func(string, ...any), all []passing) {
	column := func(name string, of func(passing) time.Duration) string {
		var d []time.Duration
		for _, p := range all {
			d = append(d, of(p))
		}
		slices.Sort(d)
		return fmt.Sprintf("  %-24s p50 %v, p90 %v, p99 %v", name, quantile(d, .5), quantile(d, .9), quantile(d, .99))
	}
	if len(all) == 0 {
		return
	}
	lines := []string{fmt.Sprintf("where the gaps of %d moves go:", len(all))}
	for i, s := range steps {
		lines = append(lines, column(s, func(p passing) time.Duration { return p.steps[i] }))
	}
	lines = append(lines, column("(the write, at its owner)", func(p passing) time.Duration { return p.write }),
		column("(write to router)", func(p passing) time.Duration { return p.router }))
	slices.SortFunc(all, func(a, b passing) int { return int(b.steps[len(steps)-1] - a.steps[len(steps)-1]) })
	slow := all[:max(1, len(all)/100)]
	var means []string
	for i, s := range steps {
		sum := time.Duration(0)
		for _, p := range slow {
			sum += p.steps[i]
		}
		means = append(means, fmt.Sprintf("%s %v", s, (sum/time.Duration(len(slow))).Round(100*time.Microsecond)))
	}
	again, refusers := 0, map[string]int{}
	for _, p := range all {
		for _, r := range p.refused {
			refusers[r]++
		}
		if len(p.refused) > 0 {
			again++
		}
	}
	lines = append(lines, fmt.Sprintf("  the slowest %d, mean: %s", len(slow), strings.Join(means, ", ")),
		fmt.Sprintf("  the writes of %d moves were refused first, by a write: %v", again, refusers))
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var floor []time.Duration
	for n, at := range tr.sent {
		if got, ok := tr.heard[n]; ok {
			floor = append(floor, got.Sub(at))
		}
	}
	slices.Sort(floor)
	lines = append(lines, fmt.Sprintf("  beside it, %d times one write and its push, between two processes that do nothing else: p50 %v, p90 %v, p99 %v",
		len(floor), quantile(floor, .5), quantile(floor, .9), quantile(floor, .99)))
	logf("%s", strings.Join(lines, "\n"))
}

// floorEnv makes this binary one of the two processes of the floor: "put" or "wait".
const floorEnv = "LEASEHOLD_SHARDS_FLOOR"

// floor writes one record again and again, or waits for its pushes, until it is killed.
func floor(at, what string) error {
	ctx, clk := context.Background(), clock.System()
	st, finish, err := open(ctx, at)
	if err != nil {
		return err
	}
	defer finish()
	rec := store.Record{Key: "floor"}
	if what == "wait" {
		for {
			if rec, err = store.Wait(ctx, st, rec.Key, rec.Version); err != nil {
				return err
			}
			fmt.Printf("G %s %d\n", rec.Nonce, clk.Now())
		}
	}
	for n := 0; ; n++ {
		rec.Nonce = fmt.Sprint("floor-", n)
		from := clk.Now()
		if rec, err = st.Put(ctx, rec); err != nil {
			return err
		}
		fmt.Printf("F %s %d\n", rec.Nonce, from)
		_ = clock.Sleep(ctx, clk, 50*time.Millisecond) // ctx never ends
	}
}

// busy returns for how long all processors of the machine have worked, and how long they had.
func busy() (worked, had time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(line)[1:] {
		n, _ := strconv.Atoi(f) // ticks of 10 ms
		if i > 7 {
			break // guests are in user
		}
		had += time.Duration(n) * 10 * time.Millisecond
		if i != 3 && i != 4 { // idle, iowait
			worked += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return worked, had
}

// counted counts how often each request is sent.
type counted struct{ http.RoundTripper }

type sentKey struct{}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if n, ok := r.Context().Value(sentKey{}).(*atomic.Int32); ok {
		n.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}
