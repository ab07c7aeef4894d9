package main

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/memory"
)

// unreadable is a store in which the record of one key can't be read.
type unreadable struct {
	store.Store
	key string
}

func (u unreadable) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for rec, err := range u.Store.List(ctx, prefix) {
			if rec.Key == u.key {
				rec, err = store.Record{}, driver.Corrupt(u.key, errors.New("no JSON"))
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// One record that can't be read is listed as such among the others, and is an error all the same.
func TestListOfARecordThatCannotBeRead(t *testing.T) {
	st := memory.NewDB(memory.Options{}).Open()
	defer func() { _ = st.Close() }()
	for _, key := range []string{"a", "b", "c"} {
		if _, err := st.Put(t.Context(), store.Record{Key: key, Owner: "x", Token: 1, TTL: time.Minute, Nonce: "n"}); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{clk: clock.System()}
	for prefix, states := range map[string]string{"": "a held b unreadable c held ", "b": "b unreadable ", "c": "c held "} {
		views, err := a.views(t.Context(), unreadable{st, "b"}, prefix, false)
		var got string
		for _, v := range views {
			got += v.Name + " " + string(v.State) + " "
		}
		if got != states || errors.Is(err, store.ErrCorrupt) != (prefix != "c") {
			t.Errorf("%q: %s, %v", prefix, got, err)
		}
	}
}
