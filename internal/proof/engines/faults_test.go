package engines

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/sim/linear"
	"github.com/leasehold/leasehold/store"
)

// What a fault run consists of.
const (
	clients = 6 // each with a handle of its own, half of them behind each of two proxies
	keys    = 3
	// settling is how long a server that is up again, and the clients' connections to it, may take.
	settling = 5 * time.Minute
)

// TestFaults lets clients of each engine write the same few records on the real server, while the network between delays, drops,
// cuts and swallows replies, and while the server is stopped, killed and started again with its data. Then the history has to
// be linearizable (so no acknowledged write is lost, and none reported as not done has happened), and every waiter has to
// have been told of the last write.
func TestFaults(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, k)
			r.run()
			r.judge()
		})
	}
}

// run is one fault run.
type run struct {
	t       *testing.T
	kind    kind
	inst    instance
	server  *servers.Server
	proxies [2]*servers.Network
	history linear.History

	faults                         map[string]int
	done, conflicts, lost, unknown atomic.Int64
	reads, wakes                   atomic.Int64
}

func newRun(t *testing.T, k kind) *run {
	r := &run{t: t, kind: k, faults: map[string]int{}}
	r.server = k.start(t)
	r.inst = k.prepare(t, r.server)
	for i := range r.proxies {
		r.proxies[i] = servers.Proxy(t, r.server.Addr)
	}
	return r
}

// rounds is how often each fault is made.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("LEASEHOLD_FAULT_ROUNDS")); err == nil {
		return n
	}
	return 1
}

func key(i int) string { return fmt.Sprintf("fault/%d", i) }

func (r *run) run() {
	seed := rand.Uint64()
	r.t.Logf("seed %d (what the faults do at which moment is not reproducible)", seed)
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	var writing sync.WaitGroup
	for i := range clients {
		st := r.open(r.proxies[i%2].Addr)
		writing.Go(func() { r.write(ctx, st, i, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	waitCtx, endWaits := context.WithCancel(r.t.Context())
	defer endWaits()
	var waiting sync.WaitGroup
	last := make([]atomic.Value, clients)
	for i := range clients {
		st := r.open(r.proxies[i%2].Addr)
		waiting.Go(func() { r.wait(waitCtx, st, key(i%keys), &last[i]) })
	}
	r.strike(rand.New(rand.NewPCG(seed, clients)))
	stop()
	writing.Wait()
	versions := r.finish()
	deadline := time.After(settling)
	for i := range last {
		for last[i].Load() != versions[i%keys] {
			select {
			case <-deadline:
				r.t.Errorf("a waiter for %s was never told of the last write, %q: it knows of %v", key(i%keys), versions[i%keys], last[i].Load())
			case <-time.After(10 * time.Millisecond):
				continue
			}
			break
		}
	}
	endWaits()
	waiting.Wait()
}

func (r *run) open(addr string) store.Store {
	r.t.Helper()
	return r.history.Client(r.inst.open(r.t, addr))
}

// write reads records and changes them as leases do: after an unknown outcome the same write is sent again, at times.
func (r *run) write(ctx context.Context, st store.Store, client int, rng *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		r.count(r.change(rng, st, fmt.Sprintf("w%d.%d", client, n)))
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	}
}

// change is one read and the write that follows from it. Its requests have limits of their own, so that what is under way
// when the faults end comes to an end, too.
func (r *run) change(rng *rand.Rand, st store.Store, nonce string) error {
	limited := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), time.Duration(200+rng.IntN(1500))*time.Millisecond)
	}
	k := key(rng.IntN(keys))
	ctx, cancel := limited()
	rec, err := store.Load(ctx, st, k)
	cancel()
	if err != nil {
		return err
	}
	r.reads.Add(1)
	if rec.Version != "" && rng.IntN(12) == 0 {
		ctx, cancel := limited()
		defer cancel()
		return st.Delete(ctx, k, rec.Version)
	}
	rec.Nonce, rec.Owner, rec.TTL = nonce, "writer", time.Second
	rec.Token++
	for {
		ctx, cancel := limited()
		_, err = st.Put(ctx, rec)
		cancel()
		if !errors.Is(err, store.ErrUnknownOutcome) || rng.IntN(2) == 0 {
			return err
		}
		r.count(err)
	}
}

func (r *run) count(err error) {
	switch {
	case err == nil:
		r.done.Add(1)
	case errors.Is(err, store.ErrUnknownOutcome):
		r.unknown.Add(1)
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
		r.conflicts.Add(1)
	default:
		r.lost.Add(1)
	}
}

// wait follows a record through store.Wait, and begins anew when a wait fails.
func (r *run) wait(ctx context.Context, st store.Store, k string, last *atomic.Value) {
	version := ""
	for ctx.Err() == nil {
		rec, err := store.Wait(ctx, st, k, version)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		r.wakes.Add(1)
		version = rec.Version
		last.Store(version)
	}
}

// finish writes each record once more when all is well again, and returns the versions.
func (r *run) finish() []string {
	st := r.open(r.server.Addr)
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	var versions []string
	for i := range keys {
		for n := 0; ; n++ {
			rec, err := store.Load(ctx, st, key(i))
			if err == nil {
				rec.Nonce = fmt.Sprintf("last%d.%d", i, n)
				rec, err = st.Put(ctx, rec)
			}
			if err == nil {
				versions = append(versions, rec.Version)
				break
			}
			if ctx.Err() != nil {
				r.t.Fatalf("%s can't be written after the faults: %v", key(i), err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return versions
}

func (r *run) judge() {
	r.t.Logf("%d operations recorded: %d writes done, %d conflicts, %d of unknown outcome, %d failed; %d wake-ups; faults: %v",
		r.history.Len(), r.done.Load(), r.conflicts.Load(), r.unknown.Load(), r.lost.Load(), r.wakes.Load(), r.faults)
	if err := r.history.Check(5 * time.Minute); err != nil {
		r.t.Error(err)
	}
	if r.unknown.Load()+r.lost.Load() == 0 {
		r.t.Error("no fault was felt")
	}
}

// strike makes each fault, in an order drawn at random, and mends it. Each time the clients have to get on with their work.
func (r *run) strike(rng *rand.Rand) {
	for range rounds() {
		for _, i := range rng.Perm(len(faults)) {
			f := faults[i]
			r.faults[f.name]++
			mend := f.strike(r, r.proxies[rng.IntN(2)], rng)
			time.Sleep(time.Duration(100+rng.IntN(1200)) * time.Millisecond)
			mend()
			r.goOn(f.name)
		}
	}
}

// goOn waits until writes are done again, from both sides.
func (r *run) goOn(after string) {
	before, start := r.done.Load(), time.Now()
	for r.done.Load() < before+20 {
		if time.Since(start) > settling {
			r.t.Fatalf("%v after the end of %q only %d writes were done", settling, after, r.done.Load()-before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// fault is something that goes wrong for a while.
type fault struct {
	name   string
	strike func(r *run, p *servers.Network, rng *rand.Rand) (mend func())
}

var faults = []fault{
	{name: "cut", strike: func(_ *run, p *servers.Network, _ *rand.Rand) func() { p.Cut(); return p.Heal }},
	{name: "refuse", strike: func(_ *run, p *servers.Network, _ *rand.Rand) func() { p.Refuse(); return p.Heal }},
	{name: "replies lost", strike: func(_ *run, p *servers.Network, _ *rand.Rand) func() { p.SwallowReplies(true); return p.Heal }},
	{name: "requests lost", strike: func(_ *run, p *servers.Network, _ *rand.Rand) func() { p.DropRequests(true); return p.Heal }},
	{name: "delay", strike: func(_ *run, p *servers.Network, rng *rand.Rand) func() {
		p.Delay(time.Duration(20+rng.IntN(300)) * time.Millisecond)
		return p.Heal
	}},
	{name: "SIGSTOP", strike: func(r *run, _ *servers.Network, _ *rand.Rand) func() { r.server.Pause(); return r.server.Resume }},
	{name: "SIGKILL", strike: func(r *run, _ *servers.Network, _ *rand.Rand) func() { r.server.Kill(); return r.server.Restart }},
}
