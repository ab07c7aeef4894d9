package drive

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// A renewal whose reply is lost is looked for before the request is answered: whether it landed or not, the term is renewed once.
func TestCarryFindsOutAboutALostReply(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{"landed": {LoseReply: true}, "did not": {Drop: true}} {
		inRig(t, func(t *testing.T, r rig) {
			was := r.acquire(protocol.Claim{Owner: "me", TTL: ttl}).Hold.Term
			r.net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
				if op.Kind == faulty.Put && op.Nth == 2 {
					f = fault
				}
				return f
			})
			d := Named("job", "me", was.Token, 0, time.Second, Recollection{})
			if err := r.Carry(t.Context(), &d); err != nil || !d.Hold.Renewed() || d.Hold.Term.Nonce != r.stored().Nonce || d.Hold.InDoubt() {
				t.Errorf("%s: %v, %v", name, d.Hold.Phase, err)
			}
		})
	}
}

// The term of a holder elsewhere is freed, and one that is over is not: the error shows what the name is then.
func TestCarryLetsGo(t *testing.T) {
	inRig(t, func(t *testing.T, r rig) {
		was := r.acquire(protocol.Claim{Owner: "me", TTL: ttl}).Hold.Term
		release := func(token fence.Token) error {
			d := Named("job", "me", token, 0, time.Second, Recollection{})
			d.Hold.Stop(r.Env(), protocol.Exit{Why: protocol.WhyReleased, By: r.Clock.Now().Add(ttl)})
			return r.Carry(t.Context(), &d)
		}
		conflict := new(store.ConflictError)
		if err := release(was.Token - 1); !errors.As(err, &conflict) || conflict.Current.Token != was.Token || r.stored().Owner != "me" {
			t.Errorf("a term before: %v", err)
		}
		if err := release(was.Token); err != nil || r.stored().Owner != "" {
			t.Errorf("the term: %v; %q has the name", err, r.stored().Owner)
		}
	})
}

// What a server has seen of a term outlives the request: the next one doesn't read, and a term that is older than it was seen came back
// with a restored store. A term that began here is the newest there is, whatever was known before: the store has forgotten that.
func TestLookAndGranted(t *testing.T) {
	inRig(t, func(t *testing.T, r rig) {
		was := r.acquire(protocol.Claim{Owner: "me", TTL: ttl}).Hold.Term
		var past Recollection
		renew := func() *Driver {
			d := Named("job", "me", was.Token, 0, time.Second, past)
			if err := r.Carry(t.Context(), &d); err != nil {
				t.Fatal(err)
			}
			past.Look(&d.Hold)
			return &d
		}
		backup := renew().Hold.Term
		reads := r.net.Count(faulty.Get)
		if d := renew(); !d.Hold.Renewed() || r.net.Count(faulty.Get) != reads {
			t.Errorf("%v after %d reads of what was seen", d.Hold.Phase, r.net.Count(faulty.Get)-reads)
		}
		backup.Version = r.stored().Version
		if _, err := r.db.Open().Put(t.Context(), backup); err != nil {
			t.Fatal(err)
		}
		if d := renew(); !d.Hold.Restored() {
			t.Errorf("a term older than it was seen: %v", d.Hold.Phase)
		}
		past.Granted(backup)
		if d := renew(); !d.Hold.Renewed() {
			t.Errorf("a term that began here: %v", d.Hold.Phase)
		}
	})
}

// What an attempt has seen of the name, and of the session that keeps it, the next one knows from its beginning.
func TestRecollection(t *testing.T) {
	const session = ".session/s"
	inRig(t, func(t *testing.T, r rig) {
		st := r.db.Open()
		for _, rec := range []store.Record{
			{Key: session, Owner: "you", Token: 1, TTL: ttl, Nonce: "s"}, {Key: "job", Owner: "you", Token: 1, TTL: ttl, Session: session, Nonce: "j"},
		} {
			if _, err := st.Put(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
		}
		d := Want("job", protocol.Claim{Owner: "me", TTL: ttl}, timing, true, Recollection{})
		act := d.Next(r.Env(), true)
		for ; act.Kind == protocol.Read; act = d.Next(r.Env(), true) {
			r.Do(t.Context(), &d, nil, act)
		}
		if act.Kind != protocol.Refuse {
			t.Fatalf("%v, want the name taken", act.Kind)
		}
		var m Memory
		m.Remember(&d.Hold)
		next := Want("job", protocol.Claim{Owner: "me", TTL: ttl}, timing, true, m.Recall("job"))
		if seen := next.Hold.Seen(); seen.Rec.Nonce != "j" || seen.Since != d.Hold.Seen().Since {
			t.Errorf("of the name: %+v", seen)
		}
		if seen := next.Hold.SeenSession(); seen.Rec.Nonce != "s" || seen.Since != d.Hold.SeenSession().Since {
			t.Errorf("of its session: %+v", seen)
		}
		var past Recollection
		past.Look(&d.Hold)
		next = Want("job", protocol.Claim{Owner: "me", TTL: ttl}, timing, true, past)
		if next.Hold.Seen().Rec.Nonce != "j" || next.Hold.SeenSession().Rec.Nonce != "s" {
			t.Errorf("at a server: %+v, %+v", next.Hold.Seen(), next.Hold.SeenSession())
		}
	})
}

// Of two holds that end one after the other both may be found in the record: what they have in common takes no room.
func TestOrphansOfTwoHolds(t *testing.T) {
	var past Recollection
	orphan := func(nonce string, begun Recollection) {
		d := Want("job", protocol.Claim{Owner: "me", TTL: ttl}, protocol.Timing{TTL: ttl}, false, begun)
		d.Hold.Term.Nonce = nonce
		past.Orphan(&d.Hold)
	}
	for i := range 2 * maxOrphans {
		orphan("old"+strconv.Itoa(i), past)
	}
	begun := past
	orphan("of a release", begun)
	orphan("of its heir", begun)
	if n := len(past.mine); n != maxOrphans || !slices.Contains(past.mine, "of a release") || !slices.Contains(past.mine, "of its heir") {
		t.Errorf("remembered: %d, %v", n, past.mine)
	}
}
