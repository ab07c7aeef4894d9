package lessor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// queued sends requests, one after the other; those whose owner begins with a number bring it as their ID.
func queued(r *Registry, owners ...string) (all []*request) {
	for _, owner := range owners {
		req := wants(owner, time.Hour)
		if owner[0] < 'a' {
			req.ID = owner
		}
		all = append(all, send(r, req))
	}
	return all
}

// lined checks who waits, and ends it.
func lined(t *testing.T, r *Registry, all []*request, want ...string) {
	t.Helper()
	var order []string
	for _, q := range r.Waiting("job") {
		order = append(order, q.Owner)
	}
	if !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	for _, q := range all {
		q.cancel()
		<-q.done
	}
}

// closed closes a registry that has all waiting.
func closed(t *testing.T, r *Registry, all []*request) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, q := range all {
		if !q.over() || !errors.Is(q.err, ErrClosed) {
			t.Errorf("when the registry closed: %v", q.err)
		}
	}
}

// waited closes a registry at which those owners wait for a name that is held.
func waited(t *testing.T, w *world, owners ...string) {
	t.Helper()
	r, _ := w.registry()
	granted(t, r, Request{Key: "job", Owner: "holder", TTL: time.Hour})
	closed(t, r, queued(r, owners...))
}

// Who waited when a registry closed, and comes back to the next one, is before those who are new; but not for ever, and not twice.
func TestPlaces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, _ := w.registry()
		rec := granted(t, first, Request{Key: "job", Owner: "holder", TTL: time.Hour})
		closed(t, first, queued(first, "1", "a", "2", "3", "4"))
		time.Sleep(returning + time.Second) // the next one begins later
		second, _ := w.registry()
		all := queued(second, "b", "3", "c", "5", "1", "4")
		lined(t, second, all, "1", "3", "4", "b", "c", "5")
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		third, _ := w.registry()
		lined(t, third, queued(third, "3", "1"), "3", "1") // they had gone
		released(t, third, rec)
	})
}

func TestPlacesPass(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		waited(t, w, "1", "2")
		second, _ := w.registry()
		all := queued(second, "a", "2")
		time.Sleep(returning + time.Second)
		all = append(all, queued(second, "1")...)
		lined(t, second, all, "2", "a", "1")
	})
}

// A store that doesn't answer at once, or has nonsense, keeps nobody out of the queue.
func TestPlacesUnknown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		waited(t, w, "1", "2")
		second, net := w.registry()
		net.SetPlan(leasetest.Once(faulty.Fault{Err: errors.New("down")}, func(op faulty.Op) bool { return op.Key == placesKey }))
		lined(t, second, queued(second, "a", "3", "2", "1"), "1", "2", "a", "3")
		if _, err := w.DB.Open().Put(context.Background(), store.Record{Key: placesKey, Nonce: "n", Data: []byte("{")}); err != nil {
			t.Fatal(err)
		}
		third, net := w.registry()
		lined(t, third, queued(third, "2", "1"), "2", "1")
		reads := 0
		net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
			if op.Key == placesKey {
				reads++
			}
			return f
		})
		if lined(t, third, queued(third, "3"), "3"); reads != 0 {
			t.Errorf("nonsense was read %d times more", reads)
		}
	})
}

// A store that doesn't answer is not asked for the places by each who queues: after one look without an answer, the next is made a while later.
func TestPlacesAreNotAskedForInTurn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		granted(t, r, Request{Key: "job", Owner: "holder", TTL: time.Hour})
		looks := 0
		net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
			if op.Key == placesKey {
				looks++
				f.Drop = true
			}
			return f
		})
		all := queued(r, "1")
		time.Sleep(placesLimit + time.Millisecond)
		synctest.Wait()
		all = append(all, queued(r, "2")...)
		if got := len(r.Waiting("job")); got != len(all) || looks != 1 {
			t.Errorf("%d of %d wait, after %d looks; want one", got, len(all), looks)
		}
		time.Sleep(placesLimit + time.Millisecond)
		all = append(all, queued(r, "3")...)
		time.Sleep(placesLimit + time.Millisecond)
		synctest.Wait()
		if looks != 2 {
			t.Errorf("%d looks after a while, want 2", looks)
		}
		lined(t, r, all, "1", "2", "3")
	})
}

// Two who come back at the same moment both have their places: one looks, and the other waits for what it found.
func TestPlacesOfTwoAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		waited(t, w, "1", "2")
		second, net := w.registry()
		looks := 0
		net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
			if op.Key == placesKey && op.Kind == faulty.Get {
				looks++
				f.Delay = placesLimit / 4
			}
			return f
		})
		all := queued(second, "a", "2", "1")
		time.Sleep(placesLimit)
		synctest.Wait()
		if looks != 1 {
			t.Errorf("the places were read %d times", looks)
		}
		lined(t, second, all, "1", "2", "a")
	})
}

// Who has gone waits for nobody else's look at the places.
func TestFinding_L10_ALookAtThePlacesEndsWithItsCaller(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		net.SetPlan(func(op faulty.Op) faulty.Fault { return faulty.Fault{Drop: op.Key == placesKey} })
		looked := make(chan struct{})
		go func() {
			defer close(looked)
			r.rank(t.Context(), Request{Key: "job", ID: "1"})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), placesLimit/10)
		defer cancel()
		begun := time.Now()
		if rank := r.rank(ctx, Request{Key: "job", ID: "2"}); rank != 0 || time.Since(begun) != placesLimit/10 {
			t.Errorf("place %d after %v, though its caller had gone after %v", rank, time.Since(begun), placesLimit/10)
		}
		<-looked
		if took := time.Since(begun); took < placesLimit || took > placesLimit+time.Millisecond {
			t.Errorf("the look took %v, want %v", took, placesLimit)
		}
	})
}

// However many wait, what is written fits into a record.
func TestPlacesFit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		var all []*request
		for i := range 20 {
			key := strings.Repeat("<", 250) + fmt.Sprint(i)
			granted(t, r, Request{Key: key, Owner: "holder", TTL: time.Hour})
			for k := range 2 * mostPlaces {
				all = append(all, send(r, Request{Key: key, Owner: "w", TTL: ttl, Wait: time.Hour, ID: fmt.Sprint(i, k)}))
			}
		}
		closed(t, r, all)
		rec := w.Get(placesKey)
		var saved savedPlaces
		if err := json.Unmarshal(rec.Data, &saved); err != nil || len(saved.Queues) == 0 {
			t.Errorf("%d queues, %v", len(saved.Queues), err)
		}
		for _, ids := range saved.Queues {
			if len(ids) != mostPlaces {
				t.Errorf("%d places of one queue, want %d", len(ids), mostPlaces)
			}
		}
		if len(rec.Data) < mostPlacesBytes/2 || len(rec.Data) > mostPlacesBytes {
			t.Errorf("%d bytes: want up to %d", len(rec.Data), mostPlacesBytes)
		}
	})
}
