package lessor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// A server claims a name under a session, and gets no answer; its client sends the request again to another server, which finds the claim
// and grants it. Then the first one must not let go of it as the claim of a client that has gone: the client holds the name.
func TestFinding_S11_AGrantToldByAnotherServerIsNotLetGoByTheFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, net := w.registry()
		second, _ := w.registry()
		s, err := second.OpenSession(t.Context(), "a", 10*time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		var outage faulty.Outage
		net.SetPlan(func(op faulty.Op) faulty.Fault {
			if leasetest.ByOwner("a")(op) {
				outage.Start()
				return faulty.Fault{LoseReply: true}
			}
			return outage.Plan(nil)(op)
		})
		req := wants("a", time.Second)
		req.Session, req.ID = s.Record.Key, "caller/1"
		if g, err := first.Acquire(t.Context(), req); err == nil {
			t.Fatalf("granted: %+v", g)
		}
		claim := w.Get("job")
		g, err := second.Acquire(t.Context(), req)
		if err != nil || g.Record.Token != claim.Token || g.Record.Session != s.Record.Key || g.Secret == "" {
			t.Fatalf("%+v, %v: want the claim that was found, %+v", g, err, claim)
		}
		outage.End()
		time.Sleep(ttl)
		if rec := w.Get("job"); rec.Owner != "a" || rec.Token != g.Record.Token {
			t.Fatalf("the first server has freed what the second one granted: %+v", rec)
		}
		for name, r := range map[string]*Registry{"first": first, "second": second} {
			_, err := r.Acquire(t.Context(), wants("b", 0))
			if heldBy(t, err, "a"); t.Failed() {
				t.Errorf("at the %s server", name)
			}
		}
		if _, err := second.Release(t.Context(), "job", "a", g.Record.Token, "released", Secret(g.Secret)); err != nil {
			t.Error(err)
		}
	})
}

// The term that a request is to be granted once more ends while it is being granted: the request is one like any other then.
func TestATermEndsWhileItIsGrantedAgain(t *testing.T) {
	for kept, session := range map[string]bool{"by its own renewals": false, "by a session": true} {
		for next, wait := range map[string]time.Duration{"free": 0, "free, and it waits": time.Minute} {
			t.Run(kept+", "+next, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					first, _ := w.registry()
					second, net := w.registry()
					req := wants("a", wait)
					req.ID = "caller/1"
					if session {
						s, err := first.OpenSession(t.Context(), "a", ttl, nil)
						if err != nil {
							t.Fatal(err)
						}
						req.Session = s.Record.Key
					}
					was := granted(t, first, req)
					net.SetPlan(leasetest.Once(faulty.Fault{Delay: time.Second}, func(op faulty.Op) bool { // not its claim, which finds the term
						return leasetest.ByOwner("a")(op) && op.Record.Version == was.Version
					}))
					again := send(second, req)
					released(t, first, was)
					if <-again.done; again.err != nil || again.grant.Record.Token <= was.Token || w.Get("job").Token != again.grant.Record.Token {
						t.Errorf("%+v, %v", again.grant, again.err)
					}
				})
			})
		}
	}
}

// What another session keeps, or an operator broke, is not granted again to who asks for it under a session of its own.
func TestOnlyTheSameTermIsGrantedAgain(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, w *world, r *Registry, req *Request){
		"another session": func(t *testing.T, _ *world, r *Registry, req *Request) {
			s, err := r.OpenSession(t.Context(), "a", ttl, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Session = s.Record.Key
		},
		"no session": func(_ *testing.T, _ *world, _ *Registry, req *Request) { req.Session = "" },
		"broken": func(t *testing.T, w *world, _ *Registry, _ *Request) {
			if _, err := drive.Break(t.Context(), w.DB.Open(), "job", drive.EndTerm{Token: w.Get("job").Token, By: "op"}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r, _ := w.registry()
				s, err := r.OpenSession(t.Context(), "a", ttl, nil)
				if err != nil {
					t.Fatal(err)
				}
				req := wants("a", 0)
				req.ID, req.Session = "caller/1", s.Record.Key
				granted(t, r, req)
				change(t, w, r, &req)
				_, err = r.Acquire(t.Context(), req)
				heldBy(t, err, "a")
			})
		})
	}
}

// A request that is sent again is granted the term at once, also when it would wait, and when the answers of the store are lost: but it is
// never told that somebody else holds the name, nor of a grant that isn't certain.
func TestGrantedAgainInDoubt(t *testing.T) {
	for kept, session := range map[string]bool{"by its own renewals": false, "by a session": true} {
		for _, wait := range []time.Duration{0, time.Hour} {
			t.Run(fmt.Sprint(kept, ", it waits ", wait), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					r, _ := w.registry()
					req := wants("a", wait)
					req.ID, req.TTL = "caller/1", time.Hour
					if session {
						s, err := r.OpenSession(t.Context(), "a", time.Hour, nil)
						if err != nil {
							t.Fatal(err)
						}
						req.Session = s.Record.Key
					}
					was := granted(t, r, req)
					other, net := w.registry()
					begun := time.Now()
					g, err := other.Acquire(t.Context(), req)
					if err != nil || g.Record.Token != was.Token || g.Secret == "" || time.Since(begun) > time.Millisecond {
						t.Errorf("after %v: %+v, %v", time.Since(begun), g, err)
					}
					net.SetPlan(func(op faulty.Op) faulty.Fault {
						return faulty.Fault{LoseReply: leasetest.ByOwner("a")(op) && time.Since(begun) < time.Minute}
					})
					g, err = other.Acquire(t.Context(), req)
					switch {
					case wait == 0 && (!errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, lease.ErrHeld)):
						if session || err != nil {
							t.Errorf("without an answer: %+v, %v", g, err)
						}
					case wait != 0 && (err != nil || g.Record.Token != was.Token):
						t.Errorf("it waits: %+v, %v", g, err)
					}
				})
			})
		}
	}
}

// A request is sent again when its ID is the same and so is what proves it; one that brings another's secret is another request.
func TestWhatIsTheSameRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		req := wants("a", 0)
		req.ID, req.Secret = "caller/1", "a secret of its own"
		was := granted(t, r, req)
		if g, err := r.Acquire(t.Context(), req); err != nil || g.Record.Token != was.Token || g.Secret != req.Secret {
			t.Errorf("sent again: %+v, %v", g, err)
		}
		for name, other := range map[string]Request{
			"another ID":     {Key: "job", Owner: "a", TTL: ttl, ID: "caller/2", Secret: req.Secret},
			"no ID":          {Key: "job", Owner: "a", TTL: ttl, Secret: req.Secret},
			"another secret": {Key: "job", Owner: "a", TTL: ttl, ID: req.ID, Secret: "another"},
		} {
			if g, err := r.Acquire(t.Context(), other); !errors.Is(err, lease.ErrHeld) {
				t.Errorf("%s: %+v, %v", name, g, err)
			}
		}
	})
}
