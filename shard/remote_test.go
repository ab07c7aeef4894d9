package shard_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
)

// remote is a worker whose process has no store, and the session that a server keeps for it.
type remote struct {
	shard.Remote
	t *testing.T
	s *lease.Session
}

// remote starts one, and has a server assign, which ends with the test.
func (w *world) remote(space shard.Space) *remote {
	w.t.Helper()
	m, err := lease.NewManager(w.st, lease.Options{TTL: ttl, Clock: clocktest.New(clock.Instant(time.Hour))})
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := m.OpenSession(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	r := &remote{shard.Remote{Store: w.st, Space: space.Name, Session: s.Key()}, w.t, s}
	if err := r.Join(w.t.Context(), space, shard.Worker{Address: "r:1"}); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var assigning sync.WaitGroup
	assigning.Go(func() {
		if err := shard.Assign(ctx, m, space.Name, nil, nil); !errors.Is(err, context.Canceled) {
			w.t.Errorf("Assign ended with %v", err)
		}
	})
	w.t.Cleanup(func() {
		cancel()
		assigning.Wait()
		if err := m.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return r
}

// step takes a step after which the worker has so many slices, of which so many have to go.
func (r *remote) step(step shard.Step, slices, goes int) shard.Holding {
	r.t.Helper()
	h, err := r.Step(r.t.Context(), step)
	if err != nil {
		r.t.Fatal(err)
	}
	if n := len(going(h)); len(h.Parts) != slices || n != goes {
		r.t.Fatalf("it has %d slices, of which %d are to go: want %d and %d", len(h.Parts), n, slices, goes)
	}
	return h
}

// going returns the slices that are to be stopped.
func going(h shard.Holding) map[string]fence.Token {
	all := map[string]fence.Token{}
	for _, p := range h.Parts {
		if p.Goes {
			all[p.ID()] = p.Token
		}
	}
	return all
}

// A worker that has no store owns slices by steps that others write for it: what it has not stopped is nobody else's.
func TestRemote(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: names(10)}
		r := w.remote(space)
		settle()
		r.step(shard.Step{}, 10, 0)
		b := w.join(space, shard.Worker{Address: "b:1"})
		time.Sleep(ttl)
		settle()
		h := r.step(shard.Step{}, 10, 5)
		if n := counts(b); n[0] != 0 {
			t.Fatalf("the other worker serves %v that were not stopped", n)
		}
		older := map[string]fence.Token{}
		for id, token := range going(h) {
			older[id] = token - 1
		}
		r.step(shard.Step{Stopped: older}, 10, 5) // of earlier terms
		told := make(chan error, 1)
		before := h
		go func() { told <- r.Await(t.Context(), before) }()
		stopped := going(h)
		h = r.step(shard.Step{Stopped: stopped}, 5, 0)
		if err := <-told; err != nil {
			t.Error(err)
		}
		r.step(shard.Step{Stopped: stopped}, 5, 0) // again, since its answer may have been lost
		settle()
		if n := counts(b); n[0] != 5 {
			t.Errorf("the other worker serves %v", n)
		}
		for _, p := range h.Parts {
			if _, err := b.Check(p.Name); err == nil {
				t.Errorf("%s has two owners", p.Name)
			}
		}
		r.step(shard.Step{Leave: true}, 5, 0) // before the assigner has said to whom they go
		settle()
		h = r.step(shard.Step{Leave: true}, 5, 5)
		if h = r.step(shard.Step{Leave: true, Stopped: going(h)}, 0, 0); !h.Left {
			t.Error("it has not left")
		}
		settle()
		if n := counts(b); n[0] != 10 {
			t.Errorf("after it has left, the other worker serves %v", n)
		}
		if _, err := r.Step(t.Context(), shard.Step{}); !errors.Is(err, shard.ErrNoWorker) {
			t.Errorf("a step of one who has left: %v", err)
		}
	})
}

// The slices of a worker whose session is over are others', whatever it says later.
func TestRemoteSessionOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: names(4)}
		r := w.remote(space)
		settle()
		h := r.step(shard.Step{}, 4, 0)
		if err := r.s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := w.join(space, shard.Worker{})
		time.Sleep(ttl)
		settle()
		stopped := map[string]fence.Token{}
		for _, p := range h.Parts {
			stopped[p.ID()] = p.Token
		}
		if _, err := r.Step(t.Context(), shard.Step{Stopped: stopped}); !errors.Is(err, shard.ErrNoWorker) {
			t.Errorf("a step of a session that is over: %v", err)
		}
		if n := counts(b); n[0] != 4 {
			t.Errorf("the other worker serves %v of 4", n)
		}
	})
}

// Ranges are cut and joined by a worker without a store, which stops them first; both of two that are joined.
func TestRemoteSplitsAndMerges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r := w.remote(shard.Space{Name: "s", Hashed: true, Slices: 2})
		settle()
		h := r.step(shard.Step{}, 2, 0)
		first := h.Parts[0]
		if err := shard.RequestSplit(t.Context(), w.st, "s", 1<<62); err != nil {
			t.Fatal(err)
		}
		h = r.step(shard.Step{}, 2, 1)
		h = r.step(shard.Step{Stopped: going(h)}, 3, 0)
		if a, b := h.Parts[0], h.Parts[1]; a.Token <= first.Token || b.Token <= first.Token || a.To != 1<<62-1 || b.To != first.To {
			t.Errorf("%+v was split into %+v and %+v", first, a, b)
		}
		if err := shard.RequestMerge(t.Context(), w.st, "s", 0); err != nil {
			t.Fatal(err)
		}
		settle()
		h = r.step(shard.Step{}, 3, 2)
		one := map[string]fence.Token{h.Parts[0].ID(): h.Parts[0].Token}
		r.step(shard.Step{Stopped: one}, 3, 2)
		before := h.Parts[1].Token
		if h = r.step(shard.Step{Stopped: going(h)}, 2, 0); h.Parts[0].To != first.To || h.Parts[0].Token <= before {
			t.Errorf("they were merged into %+v", h.Parts[0])
		}
		r.step(shard.Step{Leave: true}, 2, 2) // it is alone, so that nobody has to ask
	})
}

// Join refuses what a worker can't be, and a step needs a member.
func TestRemoteRefuses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r := shard.Remote{Store: w.st, Space: "s", Session: ".session/x/y"}
		if _, err := r.Step(t.Context(), shard.Step{}); err == nil {
			t.Error("a step in a space that doesn't exist")
		}
		if err := r.Join(t.Context(), shard.Space{Names: names(2)}, shard.Worker{Capacity: -1}); !errors.Is(err, store.ErrInvalid) {
			t.Error("a negative capacity")
		}
		if err := r.Join(t.Context(), shard.Space{Names: []string{""}}, shard.Worker{}); !errors.Is(err, store.ErrInvalid) {
			t.Error("a name that is none")
		}
		if err := r.Join(t.Context(), shard.Space{Names: names(2)}, shard.Worker{}); err != nil {
			t.Error(err)
		}
		r.Session = ".session/x/z"
		if _, err := r.Step(t.Context(), shard.Step{Leave: true}); !errors.Is(err, shard.ErrNoWorker) {
			t.Errorf("a step of a stranger: %v", err)
		}
	})
}
