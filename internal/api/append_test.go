package api

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// Each field alone: one that is new, and isn't appended, is missed here.
func TestAppendWritesEveryField(t *testing.T) {
	sameAsEncodingJSON(t, &Grant{})
	full := fullGrant("x<\u2028", 7, int64(90*time.Second)+1)
	sameAsEncodingJSON(t, full)
	for _, owner := range []func(*Grant) reflect.Value{
		func(g *Grant) reflect.Value { return reflect.ValueOf(&g.Lease).Elem() },
		func(g *Grant) reflect.Value { return reflect.ValueOf(g).Elem() },
	} {
		for i := range owner(full).NumField() {
			var one Grant
			if name := owner(full).Type().Field(i).Name; name != "Lease" && owner(full).Field(i).IsZero() {
				t.Errorf("the grant of this test has no %s", name)
			}
			owner(&one).Field(i).Set(owner(full).Field(i))
			sameAsEncodingJSON(t, &one)
		}
	}
}

func fullGrant(text string, n uint64, ns int64) *Grant {
	s, at := Seconds(ns), time.Unix(0, ns).UTC()
	return &Grant{
		Lease: Lease{
			Name: text, State: State(text), Holder: text, Token: fence.Token(n), TTL: &s, Session: text, Acquired: &at, ExpiresIn: &s, Silent: &s,
			Info: map[string]string{text: text, "b": ""}, Note: text, Waiters: int(ns), Kind: store.Kind(text), Limit: int(ns),
			Holders: []Share{{Holder: text}}, Waiting: []Share{{Holder: text}}, Paused: &Pause{By: text}, Pauses: []Pause{{ID: text}},
			Candidates: []Candidate{{Name: text}}, Past: []Term{{Holder: text}},
			Problem: &Problem{Code: CodeHeld, Detail: text}, Turn: &Turn{At: text}, CompletedTurn: &Turn{Zone: text},
		},
		ValidFor: &s, RenewEvery: &s, Sequencer: text, Secret: text, Waited: &s,
	}
}

func sameAsEncodingJSON(t *testing.T, g *Grant) {
	t.Helper()
	want, wantErr := json.Marshal(g)
	got, err := g.Append(nil)
	if (err == nil) != (wantErr == nil) || string(got) != string(want) {
		t.Errorf("%+v is written\n%s, %v, and by encoding/json\n%s, %v", g, got, err, want, wantErr)
	}
}

// FuzzAppend has grants written of any text, number and time.
func FuzzAppend(f *testing.F) {
	f.Add("name", uint64(1), int64(0), uint(0))
	f.Add("\x00\"\\<>&\x7f\xff\u2029é", uint64(1<<53), int64(-1), ^uint(0))
	f.Add("", uint64(0), int64(1<<62), uint(0x2a))
	f.Fuzz(func(t *testing.T, text string, n uint64, ns int64, without uint) {
		g := fullGrant(text, n, ns)
		g.Kind, g.Limit, g.Info, g.Holders, g.Waiting = "", 0, nil, nil, nil // those are written by encoding/json
		g.Paused, g.Pauses, g.Candidates, g.Past, g.Problem = nil, nil, nil, nil, nil
		g.Turn, g.CompletedTurn = nil, nil
		for i, p := range []**Seconds{&g.TTL, &g.ExpiresIn, &g.ValidFor, &g.RenewEvery, &g.Waited} {
			if without>>i&1 != 0 {
				*p = nil
			}
		}
		sameAsEncodingJSON(t, g)
		for _, at := range []time.Time{
			time.Unix(ns, int64(n>>40)), time.Unix(int64(n>>4), 5).UTC(), g.Acquired.In(time.FixedZone("", int(ns%100_000))),
		} {
			g.Acquired = &at
			sameAsEncodingJSON(t, g)
		}
		g.Acquired = nil
		sameAsEncodingJSON(t, g)
	})
}
