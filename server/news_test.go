package server

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
)

// What is put together by hand for the stream reads as the types' tags say: each field of an event and of a lease alone, with and without
// what is left.
func TestEventsReadAsTheirTypesSay(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 33, 14, 5, time.UTC)
	ttl, left := api.Seconds(20*time.Second), api.Seconds(7*time.Second)
	full := api.Lease{
		Name: "a", State: api.StateHeld, Holder: "h/1", Token: 7, TTL: &ttl, Session: ".session/h/1/1", Acquired: &at, Silent: &left,
		Info: map[string]string{"a": "<b>"}, Note: "why", Waiters: 2, Kind: "semaphore", Limit: 3,
		Holders: []api.Share{{Holder: "h/1", Since: at}}, Waiting: []api.Share{{Holder: "h/2", Since: at}},
		Paused: &api.Pause{By: "ops", Since: at}, Pauses: []api.Pause{{ID: "x", Since: at, Until: at}},
		Candidates: []api.Candidate{{Name: "c", Since: at}}, Past: []api.Term{{Holder: "h/0", From: at, Until: at}},
		Problem: &api.Problem{Code: api.CodeCorrupt, Detail: "d"}, Turn: &api.Turn{At: "2026-11-21 10:00", Begun: at},
		CompletedTurn: &api.Turn{Code: new(7), Begun: at, Ended: at, Next: at},
	}
	all := []api.Lease{full, {}}
	for f := range reflect.TypeFor[api.Lease]().Fields() {
		one := api.Lease{}
		if value := reflect.ValueOf(full).FieldByIndex(f.Index); !value.IsZero() {
			reflect.ValueOf(&one).Elem().FieldByIndex(f.Index).Set(value)
		} else if f.Name != "ExpiresIn" { // which the stream adds
			t.Errorf("the lease of this test has no %s", f.Name)
		}
		all = append(all, one)
	}
	for _, expires := range []*api.Seconds{nil, &left} {
		for _, gone := range []bool{false, true} {
			for _, l := range all {
				want := api.Event{Seq: 9, Lease: l, Gone: gone}
				want.Lease.ExpiresIn = nil
				i := &item{seq: 9, left: expires}
				i.encode(api.Event{Lease: want.Lease, Gone: gone})
				want.Lease.ExpiresIn = expires
				told(t, i, &want, &api.Event{})
			}
			want := api.SessionEvent{Seq: 9, Session: ".session/h/1/1", TTL: ttl, ExpiresIn: expires, Gone: gone}
			i := &item{seq: 9, left: expires, session: true}
			i.encode(&api.SessionEvent{Session: want.Session, TTL: ttl, Gone: gone})
			told(t, i, &want, &api.SessionEvent{})
		}
	}
}

// told sees that an item is told as want; got is of the same type.
func told(t *testing.T, i *item, want, got any) {
	t.Helper()
	text := i.appendTo(nil, clock.Instant(0))
	_, data, _ := bytes.Cut(bytes.TrimSuffix(text, []byte("\n\n")), []byte("\ndata: "))
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(got); err != nil || d.More() || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nreads as %+v, %v; want %+v", text, got, err, want)
	}
}
