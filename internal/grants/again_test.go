package grants

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/lease"
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
			if puts("a")(op) {
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
		claim := w.get("job")
		g, err := second.Acquire(t.Context(), req)
		if err != nil || g.Record.Token != claim.Token || g.Record.Session != s.Record.Key || g.Secret == "" {
			t.Fatalf("%+v, %v: want the claim that was found, %+v", g, err, claim)
		}
		outage.End()
		time.Sleep(ttl)
		if rec := w.get("job"); rec.Owner != "a" || rec.Token != g.Record.Token {
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
					net.SetPlan(once(faulty.Fault{Delay: time.Second}, func(op faulty.Op) bool { // not its claim, which finds the term
						return puts("a")(op) && op.Record.Version == was.Version
					}))
					again := send(second, req)
					released(t, first, was)
					if <-again.done; again.err != nil || again.grant.Record.Token <= was.Token || w.get("job").Token != again.grant.Record.Token {
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
			if _, err := lease.Break(t.Context(), w.db.Open(), "job", lease.Eviction{Token: w.get("job").Token, By: "op"}); err != nil {
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
