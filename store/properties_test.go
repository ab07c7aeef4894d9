package store_test

import (
	"encoding/json"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// The promises of a store are shown, and sent, as text. A text of a later version promises nothing.
func TestPromisesAreText(t *testing.T) {
	type promises struct {
		Fencing store.Fencing   `json:"fencing"`
		Read    store.ReadWorth `json:"read,omitempty"`
		Settle  store.Settling  `json:"settle,omitempty"`
	}
	for want, p := range map[string]promises{
		`{"fencing":""}`: {},
		`{"fencing":"per primary","read":"local","settle":"by a read"}`:           {store.FencingPerPrimary, store.ReadLocal, store.SettledByRead},
		`{"fencing":"linearizable","read":"leader","settle":"by a second write"}`: {store.FencingLinearizable, store.ReadLeader, store.SettledByWrite},
		`{"fencing":"linearizable","read":"durable"}`:                             {Fencing: store.FencingLinearizable, Read: store.ReadDurable},
	} {
		b, err := json.Marshal(p)
		if err != nil || string(b) != want {
			t.Errorf("%+v is %s, %v, want %s", p, b, err, want)
		}
		var read promises
		if err := json.Unmarshal([]byte(want), &read); err != nil || read != p {
			t.Errorf("%s is read as %+v, %v", want, read, err)
		}
	}
	later := promises{store.FencingLinearizable, store.ReadDurable, store.SettledByRead}
	if err := json.Unmarshal([]byte(`{"fencing":"total","read":"certain","settle":"by oath"}`), &later); err != nil || later != (promises{}) {
		t.Errorf("texts of a later version are read as %+v, %v", later, err)
	}
	if s := store.Fencing(-1).String() + store.ReadWorth(99).String(); s != "" {
		t.Errorf("values that don't exist are %q", s)
	}
}
