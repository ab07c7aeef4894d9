package drive

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

type member struct {
	key   string
	token fence.Token
}

func (m member) Key() string        { return m.key }
func (m member) Token() fence.Token { return m.token }

func enlist(t *testing.T, r *Roster[member], m member, want Entry[member]) {
	t.Helper()
	if got := r.Enlist(m); got != want {
		t.Errorf("%v: %+v, want %+v", m, got, want)
	}
}

// Of two terms of a name the later one is kept, in whichever order they come.
func TestRosterEnlist(t *testing.T) {
	var r Roster[member]
	older, later := member{"k", 1}, member{"k", 2}
	enlist(t, &r, older, Entry[member]{})
	enlist(t, &r, later, Entry[member]{Older: older, Another: true})
	enlist(t, &r, older, Entry[member]{Older: older, Another: true})
	enlist(t, &r, member{"j", 1}, Entry[member]{})
	if got := r.Members(); len(got) != 2 || !slices.Contains(got, later) {
		t.Errorf("%v", got)
	}
	r.Forget(older)
	if got := r.Members(); !slices.Contains(got, later) {
		t.Errorf("%v: the later term was forgotten with the one before", got)
	}
	r.Forget(later)
	if got := r.Members(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// What ends with a session is listed once; what comes afterwards is over at once.
func TestRosterClose(t *testing.T) {
	var r Roster[member]
	b, a := member{"b", 1}, member{"a", 2}
	enlist(t, &r, b, Entry[member]{})
	enlist(t, &r, a, Entry[member]{})
	if got := r.Close(); !slices.Equal(got, []member{a, b}) {
		t.Errorf("%v", got)
	}
	enlist(t, &r, member{"c", 3}, Entry[member]{Over: true})
	if got := append(r.Members(), r.Close()...); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// A notice ends the term that it names and no other; one of a claim whose answer is on its way is remembered for that, once.
func TestRosterTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		held  fence.Token // of k; 0 for none
		told  string
		ended bool
		comes fence.Token // enlisted afterwards
		want  Entry[member]
	}{
		{"of the term that is held", 5, `{"broken":{"k":5}}`, true, 6, Entry[member]{Older: member{"k", 5}, Another: true}},
		{"of a term before", 5, `{"broken":{"k":4}}`, false, 6, Entry[member]{Older: member{"k", 5}, Another: true}},
		{"of a term to come", 5, `{"broken":{"k":6}}`, false, 6, Entry[member]{Broken: true, Older: member{"k", 5}, Another: true}},
		{"of a name to come", 0, `{"broken":{"k":6}}`, false, 6, Entry[member]{Broken: true}},
		{"of another term to come", 0, `{"broken":{"k":6}}`, false, 7, Entry[member]{}},
		{"of another name", 5, `{"broken":{"j":5}}`, false, 6, Entry[member]{Older: member{"k", 5}, Another: true}},
	} {
		var r Roster[member]
		if c.held != 0 {
			r.Enlist(member{"k", c.held})
		}
		broken, err := r.Told([]byte(c.told))
		if err != nil || slices.Contains(broken, member{"k", c.held}) != c.ended || len(broken) > 1 {
			t.Errorf("%s: %v, %v", c.name, broken, err)
		}
		enlist(t, &r, member{"k", c.comes}, c.want)
		if again := r.Enlist(member{"k", c.comes}); again.Broken {
			t.Errorf("%s: a notice was met twice", c.name)
		}
	}
	var r Roster[member]
	for _, bad := range []string{"", "}{", "{}", `{"broken":{}}`, `{"broken":7}`} {
		if broken, err := r.Told([]byte(bad)); err == nil || broken != nil {
			t.Errorf("%q: %v, %v; want an error", bad, broken, err)
		}
	}
}

// Leases are pointers: of a name that the session does not keep there is none, and nothing is asked of it.
func TestRosterOfPointers(t *testing.T) {
	var r Roster[*member]
	k := &member{"k", 5}
	if e := r.Enlist(k); e != (Entry[*member]{}) {
		t.Errorf("%+v", e)
	}
	if broken, err := r.Told([]byte(`{"broken":{"j":2,"k":5}}`)); err != nil || !slices.Equal(broken, []*member{k}) {
		t.Errorf("%v, %v", broken, err)
	}
	if got, ok := r.Member("k"); got != k || !ok {
		t.Errorf("%v, %v: want the lease of the name", got, ok)
	}
	if got, ok := r.Member("j"); got != nil || ok {
		t.Errorf("%v, %v: want none", got, ok)
	}
	if e := r.Enlist(&member{"j", 2}); !e.Broken || e.Another {
		t.Errorf("%+v, want it broken", e)
	}
}

func TestRosterClone(t *testing.T) {
	var r Roster[member]
	r.Enlist(member{"k", 1})
	if _, err := r.Told([]byte(`{"broken":{"j":2}}`)); err != nil {
		t.Fatal(err)
	}
	c := r.Clone(func(m member) member { return member{m.key, m.token + 10} })
	if got := c.Members(); !slices.Equal(got, []member{{"k", 11}}) {
		t.Errorf("%v", got)
	}
	enlist(t, c, member{"j", 2}, Entry[member]{Broken: true})
	enlist(t, &r, member{"j", 2}, Entry[member]{Broken: true})
	c.Close()
	if got := r.Members(); len(got) != 2 {
		t.Errorf("%v: the clone's end ended the other's", got)
	}
	if over := r.Clone(func(m member) member { return m }).over || !c.Clone(func(m member) member { return m }).over; over {
		t.Error("a clone is over when what it is of is")
	}
}

// A session that lives and has the lease is told, beside what it was told before; others need not be.
func TestNotify(t *testing.T) {
	session := store.Record{Key: ".session/s", Version: "v", Owner: "me", Token: 1, Nonce: "n"}
	rec := store.Record{Key: "k", Owner: "me", Token: 7, Session: session.Key}
	told, needed := Notify(session, rec, "operator", "one")
	if !needed || told.Intervention != store.InterventionNotice || told.Note != "operator" || told.Owner != "me" || told.Version != "v" {
		t.Fatalf("%+v, %v", told, needed)
	}
	told, needed = Notify(told, store.Record{Key: "j", Owner: "me", Token: 8, Session: session.Key}, "operator", "two")
	if !needed {
		t.Fatal("a second notice is not needed")
	}
	var r Roster[member]
	for _, m := range []member{{"k", 7}, {"j", 8}, {"i", 9}} {
		r.Enlist(m)
	}
	if broken, err := r.Told(told.Data); err != nil || !slices.Equal(broken, []member{{"j", 8}, {"k", 7}}) {
		t.Errorf("%v, %v: want both", broken, err)
	}
	for name, s := range map[string]store.Record{"closed": {Key: session.Key, Version: "v"}, "another's": {Key: session.Key, Version: "v", Owner: "you"}} {
		if told, needed := Notify(s, rec, "operator", "n"); needed {
			t.Errorf("%s: %+v", name, told)
		}
	}
}
