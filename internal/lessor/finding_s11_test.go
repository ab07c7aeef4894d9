package lessor

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/store/faulty"
)

// A renewal whose reply is lost is known by its nonce. It counts from before its first request, and is not written twice.
func TestFinding_S11_ARenewalWhoseReplyIsLostCountsFromItsFirstRequest(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"landed":     {LoseReply: true, Silent: true},
		"lands late": {ApplyLate: 4 * time.Second, Silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r, net := w.registry()
				rec := granted(t, r, wants("a", 0))
				time.Sleep(time.Second)
				net.SetPlan(leasetest.Once(fault, leasetest.ByOwner("a")))
				sent := w.Clk.Now()
				g, err := r.Renew(t.Context(), "job", "a", rec.Token, 0, nil)
				if err != nil || g.ValidUntil != sent.Add(validity) {
					t.Errorf("valid until %v after the request, want %v: %v", g.ValidUntil.Sub(sent), validity, err)
				}
				time.Sleep(10 * time.Second) // for what is on its way
				if w.Writes() != 2 || g.Record.Nonce != w.Get("job").Nonce {
					t.Errorf("%d writes, want the claim and one renewal", w.Writes())
				}
			})
		})
	}
}

// The store comes back from a backup, older than a term was when it was renewed last. What is known of it is that others may have been
// told other things since: the term isn't renewed. It may be let go.
func TestFinding_S11_ARestoredTermIsNotRenewed(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, r *Registry) Grant{
		"name": func(t *testing.T, r *Registry) Grant { return Grant{Record: granted(t, r, wants("a", 0))} },
		"session": func(t *testing.T, r *Registry) Grant {
			g, err := r.OpenSession(t.Context(), "a", ttl, nil)
			if err != nil {
				t.Fatal(err)
			}
			return g
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r, _ := w.registry()
				rec := start(t, r).Record
				renew := func(r *Registry) (Grant, error) { return r.Renew(t.Context(), rec.Key, "a", rec.Token, 0, nil) }
				backup, err := renew(r)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := renew(r); err != nil {
					t.Fatal(err)
				}
				back := backup.Record
				w.Put(back)
				for range 2 {
					if g, err := renew(r); !errors.Is(err, fence.ErrStale) || !errors.Is(err, errRestored) {
						t.Errorf("renewed: %+v, %v", g, err)
					}
				}
				released(t, r, rec)
			})
		})
	}
}

// Others on the same store renew the same terms in turn, also such as don't count renewals: no loss.
func TestFinding_S11_RenewalsByOtherServersAreNoLoss(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		other, _ := w.registry()
		rec := granted(t, r, wants("a", 0))
		for i := range 6 {
			time.Sleep(time.Second)
			if _, err := []*Registry{r, other}[i%2].Renew(t.Context(), "job", "a", rec.Token, 0, nil); err != nil {
				t.Errorf("renewal %d: %v", i, err)
			}
		}
		old := w.Get("job")
		old.Nonce = "of a server that does not count"
		w.Put(old)
		for _, r := range []*Registry{r, other, r} {
			if _, err := r.Renew(t.Context(), "job", "a", rec.Token, 0, nil); err != nil {
				t.Errorf("after a server that doesn't count: %v", err)
			}
		}
		released(t, other, rec)
		if _, err := r.Renew(t.Context(), "job", "a", rec.Token, 0, nil); !errors.Is(err, fence.ErrStale) {
			t.Errorf("after the release: %v", err)
		}
	})
}

// A release that begins the next term with the same write, and whose reply is lost: one write, a token of its own, counted from before
// the first request.
func TestFinding_S11_AnHeirWhoseReleaseHadNoReply(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{"landed": {LoseReply: true, Silent: true}, "lost": {Drop: true}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r, net := w.registry()
				rec := granted(t, r, wants("a", 0))
				q := send(r, wants("b", time.Minute))
				var mu sync.Mutex // copies of a request are sent by goroutines of their own
				var seen []fence.Token
				plan := leasetest.Once(fault, leasetest.ByOwner("b"))
				net.SetPlan(func(op faulty.Op) faulty.Fault {
					mu.Lock()
					defer mu.Unlock()
					if op.Kind == faulty.Put {
						seen = append(seen, op.Record.Token)
					}
					return plan(op)
				})
				sent := w.Clk.Now()
				released(t, r, rec)
				<-q.done
				if q.err != nil || q.grant.Record.Token <= rec.Token || q.grant.ValidUntil != sent.Add(validity) {
					t.Errorf("the heir: %+v, %v", q.grant, q.err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, token := range seen {
					if token != q.grant.Record.Token {
						t.Errorf("tokens %v were sent, want one", seen)
					}
				}
				if w.Writes() != 2 {
					t.Errorf("%d writes, want 2", w.Writes())
				}
			})
		})
	}
}

// A claim for a client that has gone is settled: what a session keeps doesn't expire by itself.
func TestFinding_S11_AClaimUnderASessionIsLetGoForCertain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		s, err := r.OpenSession(t.Context(), "a", 10*time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		var outage faulty.Outage
		net.SetPlan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put && op.Record.Owner == "a" {
				outage.Start()
				return faulty.Fault{LoseReply: true}
			}
			return outage.Plan(nil)(op)
		})
		req := wants("a", time.Second)
		req.Session = s.Record.Key
		if g, err := r.Acquire(t.Context(), req); err == nil {
			t.Fatalf("granted: %+v", g)
		}
		time.Sleep(5 * ttl) // longer than a claim that keeps itself is withdrawn
		if w.Get("job").Owner != "a" {
			t.Fatal("the claim did not land")
		}
		outage.End()
		time.Sleep(ttl)
		if rec := w.Get("job"); rec.Owner != "" {
			t.Errorf("nobody holds it, and it is kept: %+v", rec)
		}
	})
}
