package lessor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Only the secret of a grant proves its term, in every call that changes it, and none proves a term that has no secret.
func TestSecretsProveTerms(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		g, err := r.Acquire(t.Context(), wants("a", 0))
		if err != nil || len(g.Secret) < 20 {
			t.Fatalf("secret %q, %v", g.Secret, err)
		}
		rec := g.Record
		for _, wrong := range []string{"", "wrong", g.Secret + "x", g.Secret[1:], rec.Info[secretInfo]} {
			if _, err := r.Renew(t.Context(), "job", "a", rec.Token, 0, Secret(wrong)); !errors.Is(err, ErrSecret) {
				t.Errorf("renewed by the secret %q: %v", wrong, err)
			}
			if _, err := r.Release(t.Context(), "job", "a", rec.Token, "", Secret(wrong)); !errors.Is(err, ErrSecret) {
				t.Errorf("released by the secret %q: %v", wrong, err)
			}
		}
		if _, err := r.Renew(t.Context(), "job", "a", rec.Token, 0, Secret(g.Secret)); err != nil {
			t.Errorf("renewed by its own secret: %v", err)
		}
		if _, err := r.Release(t.Context(), "job", "a", rec.Token, "", Secret(g.Secret)); err != nil {
			t.Errorf("released by its own secret: %v", err)
		}
		for _, kept := range []string{"", "no dot", "a.b", "!." + strings.Repeat("A", 43), strings.Repeat("A", 22) + "." + strings.Repeat("A", 42)} {
			rec.Info = map[string]string{secretInfo: kept}
			want := ErrSecret
			if kept == "" {
				want = ErrNoSecret
			}
			if err := Secret("")(rec); !errors.Is(err, want) {
				t.Errorf("a record that keeps %q of a secret: %v", kept, err)
			}
		}
	})
}

// A secret is told to who sends the request again, by its ID or by the secret that came with it, and to nobody else.
func TestWhoIsToldASecret(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		req := wants("a", 0)
		req.ID = "k1"
		g, err := r.Acquire(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		r, _ = w.registry()
		if again, err := r.Acquire(t.Context(), req); err != nil || again.Secret != g.Secret || again.Record.Token != g.Record.Token {
			t.Errorf("sent again: %+v, %v", again, err)
		}
		guessed := req
		guessed.Secret = "a secret of its own"
		if again, err := r.Acquire(t.Context(), guessed); err == nil && again.Secret != "" {
			t.Errorf("an ID that was guessed, beside a secret: %+v", again)
		}

		own := Request{Key: "own", Owner: "a", TTL: ttl, Secret: "a secret of its own"}
		if g, err := r.Acquire(t.Context(), own); err != nil || g.Secret != own.Secret || Secret(own.Secret)(g.Record) != nil {
			t.Errorf("a secret of the request's own: %+v, %v", g, err)
		}
		for _, w := range []*waiter{newWaiter(Request{ID: "k2"}, map[string]string{}, 0), newWaiter(Request{}, map[string]string{}, 0)} {
			if told, may := w.secretOf(g.Record); may || told == g.Secret {
				t.Errorf("request %q may know another's secret", w.req.ID)
			}
			if told, may := w.secretOf(store.Record{}); may || told != "" {
				t.Errorf("request %q may know the secret of a record without one: %q", w.req.ID, told)
			}
		}
	})
}

// No two secrets are alike, also of one request ID: each is derived from its record's own salt.
func TestSecretsDiffer(t *testing.T) {
	for _, id := range []string{"", "k1"} {
		a, keptA := newSecret(id)
		b, keptB := newSecret(id)
		if a == b || keptA == keptB {
			t.Errorf("two secrets of request %q are %q and %q, kept as %q and %q", id, a, b, keptA, keptB)
		}
	}
	if derived([]byte("salt"), "k1") == derived([]byte("salt"), "k2") || idDigest("k1") == idDigest("k2") {
		t.Error("two IDs make one secret, or one digest")
	}
}

// What is Leasehold's own in a record's info is not shown, and no request sets it.
func TestOwnInfoStaysItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		req := wants("a", 0)
		req.ID, req.Info = "k1", map[string]string{"color": "red"}
		rec := granted(t, r, req)
		if shown := Shown(rec.Info); len(shown) != 1 || shown["color"] != "red" || len(rec.Info) != 3 {
			t.Errorf("of %v, %v is shown", rec.Info, shown)
		}
		if shown := Shown(map[string]string{secretInfo: "x"}); shown != nil {
			t.Errorf("shown: %v", shown)
		}
		req.Info = map[string]string{secretInfo: "x"}
		if _, err := r.Acquire(t.Context(), req); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("a request sets the secret: %v", err)
		}
		if _, err := r.OpenSession(t.Context(), "a", ttl, req.Info); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("a session sets its secret: %v", err)
		}
		if g, err := r.OpenSession(t.Context(), "a", ttl, map[string]string{"color": "red"}); err != nil || g.Record.Info["color"] != "red" || Secret(g.Secret)(g.Record) != nil {
			t.Errorf("a session: %+v, %v", g, err)
		}
	})
}

// A TTL is within its bounds, whichever request has it, and the bounds themselves are allowed.
func TestBoundsOfATTL(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		held := granted(t, r, wants("a", 0))
		for ttl, valid := range map[time.Duration]bool{
			store.MinTTL - 1: false, store.MinTTL: true, store.MaxTTL: true, store.MaxTTL + 1: false, -time.Second: false,
		} {
			want := func(what string, err error) {
				t.Helper()
				if errors.Is(err, store.ErrInvalid) == valid || valid && err != nil {
					t.Errorf("%s with a TTL of %v: %v", what, ttl, err)
				}
			}
			_, err := r.Renew(t.Context(), "job", "a", held.Token, ttl, nil)
			want("renewed", err)
			if _, err := r.Renew(t.Context(), "job", "a", held.Token, time.Hour, nil); err != nil {
				t.Fatal(err)
			}
			other, err := r.Acquire(t.Context(), Request{Key: "other", Owner: "a", TTL: ttl})
			if want("acquired", err); err == nil {
				released(t, r, other.Record)
			}
			_, err = r.OpenSession(t.Context(), "a", ttl, nil)
			want("a session", err)
		}
	})
}

// Waiters are taken out of a queue by the ID of their requests, or all at once, and counted.
func TestRemove(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		if n := r.Remove("job", ""); n != 0 || r.Queued("job") != 0 || r.QueuedInAll() != 0 {
			t.Errorf("of a name that isn't known: %d removed", n)
		}
		granted(t, r, wants("a", 0))
		var all []*request
		for _, id := range []string{"k1", "k2", "k3"} {
			req := wants("b", time.Hour)
			req.ID = id
			all = append(all, send(r, req))
		}
		if r.Queued("job") != 3 || r.QueuedInAll() != 3 {
			t.Errorf("%d wait, %d in all", r.Queued("job"), r.QueuedInAll())
		}
		if n := r.Remove("job", "k2"); n != 1 || !all[1].over() || !errors.Is(all[1].err, ErrRemoved) || all[0].over() || all[2].over() {
			t.Errorf("%d removed by its ID: %v", n, all[1].err)
		}
		if n := r.Remove("job", "k2"); n != 0 {
			t.Errorf("%d removed twice", n)
		}
		if n := r.Remove("job", ""); n != 2 || !all[0].over() || !all[2].over() || !errors.Is(all[2].err, ErrRemoved) || r.QueuedInAll() != 0 {
			t.Errorf("%d removed in all: %v", n, all[2].err)
		}
	})
}

// A registry remembers as many names of which nothing is asked as it was told to.
func TestNamesAreForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		r.opts.Names = 3
		for _, key := range names(20) {
			req := wants("a", 0)
			req.Key = key
			released(t, r, granted(t, r, req))
		}
		if len(r.names) != 3 {
			t.Errorf("%d names are remembered", len(r.names))
		}
		r, _ = w.registry()
		for _, key := range names(20) {
			req := wants("a", 0)
			req.Key = key
			released(t, r, granted(t, r, req))
		}
		if len(r.names) != 20 {
			t.Errorf("of 20 names, with room for 10,000, %d are remembered", len(r.names))
		}
	})
}
