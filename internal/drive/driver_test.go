package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

const ttl = 15 * time.Second

var timing = protocol.Timing{TTL: ttl}.WithDefaults()

// rig is a runner on a store in memory, beside a bad network.
type rig struct {
	*testing.T
	Runner
	db  *memory.DB
	net *faulty.Store
}

// inRig runs f in virtual time.
func inRig(t *testing.T, f func(t *testing.T, r rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		db := memory.NewDB(memory.Options{Clock: clk})
		net := faulty.Wrap(db.Open(), nil)
		defer func() { _ = net.Close() }()
		f(t, rig{t, Runner{Store: net, Clock: clk}, db, net})
	})
}

// drive runs d until it asks for something after done.
func (r rig) drive(d *Driver, wanted func() bool, done func() bool) {
	r.Helper()
	var session *Term
	if d.Hold.Claim.Session != "" {
		session = term(clock.NoDeadline, nil)
	}
	for env := r.EnvIn(session); ; {
		act := d.Next(env, wanted())
		switch {
		case done():
			return
		case d.Hold.Phase == protocol.Ended:
			r.Fatalf("the hold has ended: %v", d.Hold.Err)
		}
		env = r.Do(r.Context(), d, session, act)
	}
}

func always() bool { return true }

func (r rig) acquire(c protocol.Claim) *Driver {
	r.Helper()
	d := Want("job", c, timing, false, Recollection{})
	r.drive(&d, always, func() bool { return d.Hold.Phase == protocol.Held })
	return &d
}

func (r rig) stored() store.Record {
	r.Helper()
	rec, err := store.Load(r.Context(), r.db.Open(), "job")
	if err != nil {
		r.Fatal(err)
	}
	return rec
}

// program notes what is done to it.
type program struct {
	d     *Driver
	env   protocol.Env
	notes []string
}

func (p *program) Stop()             { p.notes = append(p.notes, "stop") }
func (p *program) Retire() *Driver   { p.notes = append(p.notes, "retire"); return p.d }
func (p *program) Env() protocol.Env { return p.env }

// The program has stopped before its renewals end, and these before the name is freed.
func TestLeave(t *testing.T) {
	inRig(t, func(t *testing.T, r rig) {
		d := r.acquire(protocol.Claim{Owner: "me", TTL: ttl})
		if rec := r.stored(); rec.Owner != "me" || d.Hold.Term.Token != rec.Token {
			t.Fatalf("%+v", rec)
		}
		p := &program{d: d, env: r.Env()}
		left, env := Leave(p, protocol.Exit{Why: protocol.WhyReleased})
		if !slices.Equal(p.notes, []string{"stop", "retire"}) || left != d || r.stored().Owner != "me" {
			t.Errorf("%v, and %q has the name", p.notes, r.stored().Owner)
		}
		if err := r.Finish(t.Context(), left, env); err != nil || r.stored().Owner != "" {
			t.Errorf("%v; %q has the name", err, r.stored().Owner)
		}
	})
}

// A claim that nobody wants any more is given up, and what may have landed is freed.
func TestGiveUp(t *testing.T) {
	inRig(t, func(t *testing.T, r rig) {
		r.net.SetPlan(func(op faulty.Op) faulty.Fault { return faulty.Fault{LoseReply: op.Kind == faulty.Put && op.Nth == 1} })
		d := Want("job", protocol.Claim{Owner: "me", TTL: ttl}, timing, false, Recollection{})
		wanted := func() bool { return r.net.Count(faulty.Put) == 0 }
		r.drive(&d, wanted, func() bool { return d.Hold.Phase != protocol.Waiting })
		if r.stored().Owner != "me" {
			t.Fatal("the claim has not landed")
		}
		if err := r.Finish(t.Context(), &d, r.Env()); !errors.Is(err, store.ErrUnknownOutcome) && err != nil || r.stored().Owner != "" {
			t.Errorf("%v; %q has the name", err, r.stored().Owner)
		}
	})
}

// unsettled returns a hold whose release was not answered for as long as it was to be tried.
func (r rig) unsettled(c protocol.Claim) *Driver {
	r.Helper()
	d := r.acquire(c)
	r.net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Drop: true} })
	d.Hold.Stop(r.Env(), protocol.Exit{Why: protocol.WhyReleased, By: r.Clock.Now().Add(time.Second)})
	if err := r.Finish(r.Context(), d, r.Env()); !errors.Is(err, store.ErrUnknownOutcome) || d.Hold.Phase != protocol.Ended {
		r.Fatalf("%v, %v", err, d.Hold.Phase)
	}
	r.net.SetPlan(nil)
	return d
}

// What a session keeps is let go for as long as that lives, and then for a last TTL; what keeps itself expires.
func TestSettle(t *testing.T) {
	const session = ".session/s"
	inRig(t, func(t *testing.T, r rig) {
		d := r.unsettled(protocol.Claim{Owner: "me", TTL: ttl})
		for range 2 {
			if d.Settle(r.Env(), true) || d.Insists() {
				t.Error("a hold that keeps itself is tried on")
			}
		}
	})
	inRig(t, func(t *testing.T, r rig) {
		d := r.unsettled(protocol.Claim{Owner: "me", TTL: ttl, Session: session})
		r.Store.(*faulty.Store).SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Drop: true} })
		if !d.Settle(r.Env(), true) || !d.Insists() {
			t.Fatal("it is not tried while its session lives")
		}
		short, cancel := clock.WithTimeout(t.Context(), r.Clock, 10*ttl)
		if err := r.Finish(short, d, r.Env()); !errors.Is(err, store.ErrUnknownOutcome) || d.Hold.Phase != protocol.Leaving {
			t.Errorf("after ten TTLs of an outage: %v, %v", err, d.Hold.Phase)
		}
		cancel()
		began := r.Clock.Now()
		if !d.Settle(r.Env(), false) || d.Insists() {
			t.Error("it is not tried once more when its session is over")
		}
		if err := r.Finish(t.Context(), d, r.Env()); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Error(err)
		}
		if took := r.Clock.Now().Sub(began); took < ttl || took > ttl+time.Second {
			t.Errorf("the last tries took %v, want the TTL", took)
		}
		if d.Settle(r.Env(), true) || d.Settle(r.Env(), false) {
			t.Error("it is tried for ever")
		}
	})
	inRig(t, func(t *testing.T, r rig) {
		d := r.unsettled(protocol.Claim{Owner: "me", TTL: ttl, Session: session})
		if !d.Settle(r.Env(), true) {
			t.Fatal("it is not tried while its session lives")
		}
		if err := r.Finish(t.Context(), d, r.Env()); err != nil || r.stored().Owner != "" || d.Insists() || d.Settle(r.Env(), true) {
			t.Errorf("when the store answers again: %v; %q has the name", err, r.stored().Owner)
		}
	})
	inRig(t, func(t *testing.T, r rig) {
		d := r.unsettled(protocol.Claim{Owner: "me", TTL: ttl, Session: session})
		if !d.Settle(r.Env(), false) || d.Insists() {
			t.Error("its session is over: want it tried for a last TTL")
		}
	})
	inRig(t, func(t *testing.T, r rig) { // what trying again doesn't mend isn't tried for ever
		d := r.unsettled(protocol.Claim{Owner: "me", TTL: ttl, Session: session})
		r.net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Err: store.ErrCorrupt} })
		for range 2 {
			if !d.Settle(r.Env(), true) {
				t.Error("it is not tried while its session lives")
			}
			if err := r.Finish(t.Context(), d, r.Env()); !errors.Is(err, store.ErrCorrupt) || !errors.Is(err, store.ErrUnknownOutcome) {
				t.Error(err)
			}
		}
		if d.Settle(r.Env(), true) {
			t.Error("it is tried for ever")
		}
	})
}

// A hold that is over for its program stays as it is until that has stopped, and leaves as it was told to.
func TestWhatIsHeldIsNotGivenUp(t *testing.T) {
	begin := func(began bool) (d *Driver, now clock.Instant) {
		d = new(Want("job", protocol.Claim{Owner: "me", TTL: ttl}, timing, false, Recollection{}))
		d.Hold.SupposeNew()
		act := d.Next(protocol.Env{Nonce: Nonce}, true)
		d.Hold.Tell(protocol.Env{Nonce: Nonce}, act, act.Rec, nil)
		if began { // as a program does, which doesn't ask what is next then
			d.Begin(&Term{}, nil)
		} else {
			d.Next(protocol.Env{Nonce: Nonce}, true)
		}
		if d.Hold.Phase != protocol.Held {
			t.Fatal(d.Hold.Phase)
		}
		return d, d.Hold.Deadline
	}
	for _, began := range []bool{true, false} {
		d, over := begin(began)
		env := protocol.Env{Now: over, Nonce: Nonce}
		if !d.Hold.Expire(env) || d.Next(env, false).Kind != protocol.Idle || d.Hold.Phase != protocol.Lost {
			t.Errorf("it is lost, and %v: the program has not stopped", d.Hold.Phase)
		}
	}
	d, _ := begin(false)
	d.Hold.Stop(protocol.Env{Nonce: Nonce}, protocol.Exit{Why: protocol.WhyReleased, By: 1})
	if d.Next(protocol.Env{Nonce: Nonce}, false); d.Hold.Phase != protocol.Leaving || d.Next(protocol.Env{Now: 2, Nonce: Nonce}, false).Kind != protocol.Idle || d.Hold.Phase != protocol.Ended {
		t.Errorf("it has %v, want it tried as long as it was told to", d.Hold.Phase)
	}
}

// An attempt that nobody waits for any more ends; but a try that is refused was refused.
func TestNobodyWaits(t *testing.T) {
	inRig(t, func(t *testing.T, r rig) {
		r.acquire(protocol.Claim{Owner: "you", TTL: ttl})
		for _, try := range []bool{false, true} {
			d := Want("job", protocol.Claim{Owner: "me", TTL: ttl}, timing, try, Recollection{})
			r.Do(t.Context(), &d, nil, d.Next(r.Env(), true))
			if act := d.Next(r.Env(), false); (act.Kind == protocol.Refuse) != try || (d.Hold.Phase == protocol.Ended) == try {
				t.Errorf("try %v: %v, %v", try, act.Kind, d.Hold.Phase)
			}
		}
		d := Open(".session/s", protocol.Claim{Owner: "me", TTL: ttl}, timing)
		if act := d.Next(r.Env(), false); act.Kind != protocol.Idle || d.Hold.Phase != protocol.Ended {
			t.Errorf("a session: %v, %v", act.Kind, d.Hold.Phase)
		}
	})
}

// The model check tells holds apart by whether they are wanted, and by how far letting go of them has come.
func TestStatesAreToldApart(t *testing.T) {
	names := func(b []byte, name string) []byte { return append(b, name...) }
	states := map[string]Driver{}
	for _, d := range []Driver{{}, {wanted: true}, {tried: insisting}, {tried: insisting, wanted: true}, {tried: finally}, {tried: finally, wanted: true}} {
		states[string(d.AppendState(nil, 0, time.Second, names))] = d
	}
	if len(states) != 6 {
		t.Errorf("6 drivers have %d states", len(states))
	}
}

// What is worth too little is not sent: neither claims nor renewals. Releases are.
func TestWorth(t *testing.T) {
	inRig(t, func(t *testing.T, r rig) {
		worthless := errors.New("a standby is missing")
		d := r.acquire(protocol.Claim{Owner: "me", TTL: ttl})
		was := r.stored()
		r.Worth = func() error { return worthless }
		act := protocol.Action{Kind: protocol.Write, Key: "job", Until: clock.NoDeadline}
		act.Rec = was
		if _, err := r.Request(t.Context(), act, nil); err != worthless || r.stored().Version != was.Version {
			t.Errorf("a renewal: %v", err)
		}
		d.Hold.Stop(r.Env(), protocol.Exit{Why: protocol.WhyReleased, By: r.Clock.Now().Add(ttl)})
		if err := r.Finish(t.Context(), d, r.Env()); err != nil || r.stored().Owner != "" {
			t.Errorf("a release: %v; %q has the name", err, r.stored().Owner)
		}
	})
}

// A request ends when its time is over.
func TestRequestsAreBounded(t *testing.T) {
	inRig(t, func(t *testing.T, r rig) {
		r.net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Drop: true} })
		for _, kind := range []protocol.Kind{protocol.Read, protocol.Write, protocol.Wait} {
			began := r.Clock.Now()
			act := protocol.Action{Kind: kind, Key: "job", Rec: store.Record{Key: "job"}, Until: began.Add(time.Second)}
			if _, err := r.Request(t.Context(), act, nil); err == nil || r.Clock.Now().Sub(began).Truncate(time.Millisecond) != time.Second {
				t.Errorf("%v: %v after %v", kind, err, r.Clock.Now().Sub(began))
			}
		}
	})
}

// A term of a holder elsewhere is renewed once, or lost, or the error says whether that is known.
func TestCarry(t *testing.T) {
	named := func(owner string, token fence.Token) *Driver {
		d := Named("job", owner, token, 0, time.Second, Recollection{})
		return &d
	}
	inRig(t, func(t *testing.T, r rig) {
		r.acquire(protocol.Claim{Owner: "me", TTL: ttl})
		was := r.stored()
		d := named("me", was.Token)
		if err := r.Carry(t.Context(), d); err != nil || !d.Hold.Renewed() || r.stored().Version == was.Version {
			t.Errorf("renewed: %v, %v", err, d.Hold.Phase)
		}
		for _, d := range []*Driver{named("me", was.Token+1), named("you", was.Token)} {
			if err := r.Carry(t.Context(), d); err != nil || d.Hold.Phase != protocol.Lost {
				t.Errorf("of another: %v, %v", err, d.Hold.Phase)
			}
		}
		writes := r.net.Count(faulty.Put)
		r.net.SetPlan(func(op faulty.Op) faulty.Fault {
			return faulty.Fault{LoseReply: op.Kind == faulty.Put, Drop: op.Kind != faulty.Put && r.net.Count(faulty.Put) > writes}
		})
		short, cancel := clock.WithTimeout(t.Context(), r.Clock, 500*time.Millisecond)
		defer cancel()
		if err := r.Carry(short, named("me", was.Token)); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("no answer: %v, want an unknown outcome", err)
		}
		refused := errors.New("refused")
		r.net.SetPlan(func(op faulty.Op) faulty.Fault { return faulty.Fault{Err: refused} })
		if err := r.Carry(t.Context(), named("me", was.Token)); !errors.Is(err, refused) || errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("refused: %v", err)
		}
		over, stop := context.WithCancelCause(t.Context())
		stop(refused)
		r.net.SetPlan(nil)
		if err := r.Carry(over, named("me", was.Token)); err == nil || errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("without time: %v", err)
		}
	})
}

func TestNotice(t *testing.T) {
	d := Driver{Hold: protocol.Hold{Notice: []byte("n")}}
	if got := d.Notice(); string(got) != "n" || d.Notice() != nil {
		t.Errorf("%q, want the notice once", got)
	}
}

// The memory has room for so many names, and one that is noted takes nobody's place.
func TestMemory(t *testing.T) {
	var m Memory
	for i := range MaxNames {
		m.Note(store.Record{Key: fmt.Sprint(i), Version: "v", Token: 1}, clock.Instant(i))
	}
	m.Note(store.Record{Key: "one more", Version: "v"}, 1)
	if m.Len() != MaxNames || m.Recall("one more").Seen.Known {
		t.Errorf("%d names are remembered", m.Len())
	}
	m.Note(store.Record{Key: "7", Version: "w"}, 99)
	if got := m.Recall("7").Seen; got.Rec.Version != "w" || got.Since != 99 {
		t.Errorf("%+v: want what was noted last", got)
	}
	h := protocol.New("one more", protocol.Claim{}, timing, false, protocol.Seen{Rec: store.Record{Version: "v"}, Known: true}, nil)
	m.Remember(&h)
	if m.Len() != MaxNames || !m.Recall("one more").Seen.Known {
		t.Errorf("%d names, %+v: want the last one remembered in another's place", m.Len(), m.Recall("one more"))
	}
	c := m.Clone()
	m.Forget("one more")
	if m.Recall("one more").Seen.Known || !c.Recall("one more").Seen.Known {
		t.Error("want it forgotten here, and not in the clone")
	}
}

// Of the nonces that a record may still show, the last ones are remembered.
func TestOrphansAreBounded(t *testing.T) {
	var mine []string
	for i := range maxOrphans + 4 {
		mine = append(mine, fmt.Sprint(i))
	}
	h := protocol.New("k", protocol.Claim{}, timing, false, protocol.Seen{}, mine)
	want := mine[4:]
	if got := After(&h).mine; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r := Recollection{mine: []string{"before"}}
	r.Orphan(&h)
	if !slices.Equal(r.mine, want) {
		t.Errorf("%v, want %v", r.mine, want)
	}
	few := protocol.New("k", protocol.Claim{}, timing, false, protocol.Seen{}, []string{"mine"})
	r = Recollection{mine: []string{"before"}}
	if r.Orphan(&few); !slices.Equal(r.mine, []string{"before", "mine"}) || len(After(&few).mine) != 1 {
		t.Errorf("%v, %v: want all of the few", r.mine, After(&few).mine)
	}
}
