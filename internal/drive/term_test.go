package drive

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// term returns a term that began with that deadline; one that a session keeps has none of its own.
func term(deadline clock.Instant, session *Term) *Term {
	var t Term
	d := Driver{Hold: protocol.Hold{Deadline: deadline}}
	d.Begin(&t, session)
	return &t
}

func TestTermUntil(t *testing.T) {
	alone := term(100, nil)
	kept := term(50, alone)
	for _, c := range []struct {
		name string
		t    *Term
		want clock.Instant
	}{{"of its own", alone, 100}, {"of its session", kept, 100}} {
		if got := c.t.Until(); got != c.want {
			t.Errorf("%s: until %v, want %v", c.name, got, c.want)
		}
	}
	if _, ok := kept.Limited(); ok {
		t.Error("a term that its session keeps has a limit at once")
	}
	if !kept.Limit(80) || kept.Until() != 80 {
		t.Errorf("until %v, want the limit, 80", kept.Until())
	}
	if d, ok := kept.Limited(); d != 80 || !ok {
		t.Errorf("limit %v, %v", d, ok)
	}
	if !kept.Limit(120) || kept.Until() != 100 {
		t.Errorf("until %v, want the session's deadline, 100: it comes before the limit", kept.Until())
	}
}

// Each deadline ends a term from its own instant on, and names whose it was; what is over stays over.
func TestTermOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit clock.Instant // of the kept term; 0 for none
		now   clock.Instant
		want  string
	}{
		{"before", 0, 99, ""},
		{"at the session's deadline", 0, 100, "session"},
		{"before its limit", 80, 79, ""},
		{"at its limit", 80, 80, "kept"},
		{"after its limit, while the session lives", 80, 99, "kept"},
		{"after both", 80, 100, "kept"},
		{"at the session's deadline, before its limit", 120, 100, "session"},
	} {
		session := term(100, nil)
		kept := term(0, session)
		if c.limit != 0 {
			kept.Limit(c.limit)
		}
		got := map[*Term]string{nil: "", session: "session", kept: "kept"}[kept.Over(c.now)]
		if got != c.want {
			t.Errorf("%s: over by %q, want %q", c.name, got, c.want)
		}
		if want := min(kept.own(), session.own()); kept.Until() != want || (c.want != "") != (want == clock.Ended) {
			t.Errorf("%s: until %v afterwards", c.name, kept.Until())
		}
	}
	alone := term(100, nil)
	if alone.Over(99) != nil || alone.Over(100) != alone || alone.Until() != clock.Ended || alone.Over(100) != alone {
		t.Errorf("a term of its own: until %v", alone.Until())
	}
	if alone.Extend(200) || alone.Limit(200) || alone.Until() != clock.Ended {
		t.Errorf("a term that is over was made valid until %v", alone.Until())
	}
	if _, ok := alone.Limited(); ok {
		t.Error("a term that is over has a limit")
	}
}

func TestTermEndsOnce(t *testing.T) {
	session := term(100, nil)
	kept := term(0, session)
	if !kept.End() || kept.End() {
		t.Error("want the end once")
	}
	if kept.Until() != clock.Ended || kept.Over(1) != kept || session.Over(1) != nil {
		t.Error("want the term over by itself, and the session as it was")
	}
}

func TestTermExtend(t *testing.T) {
	alone := term(100, nil)
	if !alone.Extend(200) || alone.Until() != 200 || alone.Over(100) != nil {
		t.Errorf("until %v, want 200", alone.Until())
	}
}

func TestTermCopy(t *testing.T) {
	session, twin := term(100, nil), term(90, nil)
	kept := term(0, session)
	kept.Limit(80)
	kept.End()
	var c Term
	kept.Copy(&c, twin)
	if c.own() != clock.Ended || c.session != twin || c.End() {
		t.Errorf("%+v: want what the other is, with the session of the clone", &c)
	}
}

// What a renewal brings counts for the program unless its term is over by then.
func TestShow(t *testing.T) {
	begin := func() (*Driver, *Term) {
		d, got := &Driver{Hold: protocol.Hold{Phase: protocol.Held, Deadline: 100}}, new(Term)
		d.Begin(got, nil)
		return d, got
	}
	d, got := begin()
	d.Hold.Deadline = 200
	if d.Show(got); got.Until() != 200 || d.Hold.Phase != protocol.Held {
		t.Errorf("renewed: until %v, %v", got.Until(), d.Hold.Phase)
	}
	if d.Show(got); got.Until() != 200 || d.Hold.Phase != protocol.Held {
		t.Errorf("not renewed since: until %v, %v", got.Until(), d.Hold.Phase)
	}
	d.Hold.Deadline = 300
	if d.Show(got); got.Until() != 300 || d.Hold.Phase != protocol.Held {
		t.Errorf("renewed once more: until %v, %v", got.Until(), d.Hold.Phase)
	}
	d, got = begin()
	d.Hold.Phase, d.Hold.Deadline = protocol.Leaving, 200
	if d.Show(got); got.Until() != 100 {
		t.Errorf("let go: until %v", got.Until())
	}
	d, got = begin()
	got.Over(100)
	d.Hold.Deadline = 200
	if d.Show(got); got.Until() != clock.Ended || d.Hold.Deadline != clock.Ended || d.Hold.Phase != protocol.Lost {
		t.Errorf("over before the renewal was known: until %v, hold until %v, %v", got.Until(), d.Hold.Deadline, d.Hold.Phase)
	}
	d, got = begin()
	got.End()
	if d.Show(got); d.Hold.Phase != protocol.Lost {
		t.Errorf("ended by the program: %v", d.Hold.Phase)
	}
	session := term(100, nil)
	kept := new(Term)
	d = &Driver{Hold: protocol.Hold{Phase: protocol.Held, Deadline: 50}}
	d.Begin(kept, session)
	d.Hold.Deadline = clock.NoDeadline
	if d.Show(kept); kept.Until() != 100 || d.Hold.Phase != protocol.Held {
		t.Errorf("kept by a session: until %v, %v", kept.Until(), d.Hold.Phase)
	}
}

func TestKept(t *testing.T) {
	info := map[string]string{"host": "a"}
	small := store.Record{Key: "k", Version: "v", Info: info, Past: make([]store.Term, keptPast), Data: make([]byte, keptData)}
	if got := Kept(small); got.Info != nil || len(got.Past) != keptPast || len(got.Data) != keptData || got.Version != "v" {
		t.Errorf("%+v", got)
	}
	for _, large := range []store.Record{
		{Key: "k", Version: "v", Past: make([]store.Term, keptPast+1)},
		{Key: "k", Version: "v", Data: make([]byte, keptData+1)},
	} {
		if got := Kept(large); got.Past != nil || got.Data != nil || got.Version != "" || got.Key != "k" {
			t.Errorf("%+v: want it read again by the release", got)
		}
	}
}

func TestPatience(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{time.Second: time.Second, 3 * time.Second: time.Second, time.Minute: 20 * time.Second} {
		if got := Patience(protocol.Timing{TTL: ttl}); got != want {
			t.Errorf("TTL %v: %v, want %v", ttl, got, want)
		}
	}
}
