package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world notices what must never be, and nothing else.
func TestWhatAWorldNotices(t *testing.T) {
	write := func(w *World, owner string, token fence.Token) {
		w.T.Helper()
		rec := w.Get("job")
		rec.Owner, rec.Token, rec.TTL, rec.Nonce = owner, token, TTL, rec.Nonce+"x"
		if _, err := w.Open().Put(w.T.Context(), rec); err != nil {
			w.T.Fatal(err)
		}
	}
	freed := func(w *World) *Node {
		w.Node(lease.Options{}).Take("job")
		w.Edit("job", func(r *store.Record) { r.Owner, r.TTL = "", 0 }) // which its holder doesn't know
		return w.Node(lease.Options{})
	}
	for name, c := range map[string]struct {
		do   func(w *World)
		want int
	}{
		"nothing":                   {func(w *World) { write(w, "a", 4); write(w, "a", 4); write(w, "", 4); write(w, "b", 5) }, 0},
		"a lower token":             {func(w *World) { write(w, "a", 5); write(w, "a", 4) }, 1},
		"one token twice":           {func(w *World) { write(w, "a", 5); write(w, "b", 5) }, 1},
		"one token twice, released": {func(w *World) { write(w, "a", 5); write(w, "", 5); write(w, "b", 5) }, 1},
		"wiped, and a lower token":  {func(w *World) { write(w, "a", 5); w.Wipe("job"); write(w, "b", 4) }, 1},
		"restored, and one again": {func(w *World) {
			write(w, "a", 4)
			old := w.Get("job")
			write(w, "b", 5)
			w.Restore(old)
			write(w, "c", 5)
		}, 1},
		"put, and higher": {func(w *World) {
			write(w, "a", 5)
			w.Put(store.Record{Key: "job", Token: 3, Nonce: "n"})
			write(w, "b", 4)
		}, 0},
		"forgotten, and lower":    {func(w *World) { write(w, "a", 5); w.Forget("job"); write(w, "a", 4) }, 0},
		"two holders":             {func(w *World) { freed(w).Take("job") }, 1},
		"two holders, on purpose": {func(w *World) { w.Unsafe = true; freed(w).Take("job") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			RunBoth(t, func(t *testing.T, w *World) {
				var wrong []string
				w.wrong = func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
				c.do(w)
				if slices.Sort(wrong); len(slices.Compact(wrong)) != c.want {
					t.Errorf("%d are wrong, want %d: %q", len(wrong), c.want, wrong)
				}
			})
		})
	}
}

// After an outage a Wait that had begun hears of a change; after a cut it doesn't, and a new one does.
func TestWaitsOfWhoIsCutOff(t *testing.T) {
	Run(t, func(t *testing.T, w *World) {
		w.Put(store.Record{Key: "job", Nonce: "1"})
		begun := w.Get("job").Version
		h := w.Host(nil)
		for name, c := range map[string]struct {
			off, on func()
			hears   bool
		}{"outage": {h.Outage.Start, h.Outage.End, true}, "cut": {h.Cut, h.Heal, false}} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			heard := make(chan error, 1)
			go func() {
				_, err := h.Net.Wait(ctx, "job", begun)
				heard <- err
			}()
			time.Sleep(time.Second)
			c.off()
			w.Edit("job", func(r *store.Record) { r.Nonce += "2" })
			time.Sleep(time.Second)
			if _, err := h.Net.Get(ended(t), "job"); err == nil {
				t.Errorf("%s: read", name)
			}
			c.on()
			if err := <-heard; (err == nil) != c.hears || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: the wait: %v", name, err)
			}
			cancel()
			rec, err := h.Net.Wait(t.Context(), "job", begun)
			if begun = rec.Version; err != nil {
				t.Errorf("%s: a new wait: %v", name, err)
			}
		}
	})
}

// ended returns a context that ends in a second.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A fault comes once, and a plan in turn is asked by one at a time.
func TestPlans(t *testing.T) {
	Run(t, func(t *testing.T, w *World) {
		errRefused := errors.New("refused")
		n := w.Node(lease.Options{})
		n.Plan(InTurn(Once(faulty.Fault{Err: errRefused}, Claims("job"))))
		if _, err := n.TryAcquire(t.Context(), "job"); !errors.Is(err, errRefused) {
			t.Errorf("the first claim: %v", err)
		}
		l := n.Take("job")
		n.Plan(Once(faulty.Fault{Err: errRefused}, Frees("job")))
		if err := l.Release(t.Context()); err != nil || w.Get("job").Owner != "" {
			t.Errorf("a release is tried again: %v", err)
		}
	})
}
