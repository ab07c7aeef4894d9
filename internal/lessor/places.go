package lessor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/store"
)

// placesKey is the record of who waited when a registry was closed.
const placesKey = ".places"

const (
	// returning is for how long a registry that has just begun gives those who waited at the one
	// before their places back.
	returning = 30 * time.Second
	// placesLimit bounds the requests of one look at that record, or of writing it.
	placesLimit = 2 * time.Second
	// Bounds of the record: of one queue the first 200 are kept, and in all what fits. The others
	// queue anew.
	mostPlaces      = 200
	mostPlacesBytes = 40 << 10
)

// places are the places in the queues of the registry before this one. They only order who comes
// back: nobody is held off for somebody who doesn't, and who never comes back is forgotten.
type places struct {
	turn chan struct{} // of capacity 1: full while somebody looks at what follows, or at the record

	until clock.Instant // after that there are none
	known bool          // the record was read
	again clock.Instant // when it is asked for again, after the store has not answered
	ranks map[string]map[string]uint64
}

// savedPlaces is the data of the record: the ids of those who waited, as digests, by name and in
// order.
type savedPlaces struct {
	Queues map[string][]string `json:"queues"`
}

func digest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// rank returns the place that a request had at the registry before, from 1, or 0 if it had none. It
// blocks while the record is read, until ctx is done.
func (r *Registry) rank(ctx context.Context, req Request) uint64 {
	p := &r.places
	if req.ID == "" {
		return 0
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	defer func() { <-p.turn }()
	if r.clk.Now() > p.until {
		p.ranks = nil
		return 0
	}
	if begun := r.clk.Now(); !p.known && begun >= p.again {
		p.known, p.ranks = r.recall(ctx)
		if now := r.clk.Now(); now >= begun.Add(placesLimit) {
			// Who queued behind this look doesn't wait for another one.
			p.again = now.Add(placesLimit)
		}
	}
	return p.ranks[req.Key][digest(req.ID)]
}

// recall reads the record and deletes it. It reports false if the store has not answered: then it
// is to be asked again.
func (r *Registry) recall(ctx context.Context) (bool, map[string]map[string]uint64) {
	ctx, cancel := clock.WithTimeout(ctx, r.clk, placesLimit)
	defer cancel()
	rec, err := store.Load(ctx, r.st, placesKey)
	if err != nil {
		return errors.Is(err, store.ErrCorrupt), nil
	}
	var saved savedPlaces
	if json.Unmarshal(rec.Data, &saved) != nil {
		return true, nil // there is none, or nothing that could be used
	}
	// Else the next registry recalls it once more, for nobody.
	_ = r.st.Delete(ctx, placesKey, rec.Version)
	ranks := map[string]map[string]uint64{}
	for key, ids := range saved.Queues {
		ranks[key] = map[string]uint64{}
		for i, id := range ids {
			ranks[key][id] = uint64(i) + 1
		}
	}
	return true, ranks
}

// queues returns who waits, as far as they can be known again and it fits into a record. r.mu is
// held.
func (r *Registry) queues() (saved savedPlaces) {
	size := 0
	for key, n := range r.names {
		var ids []string
		n.mu.Lock()
		for e := n.queue.Front(); e != nil && len(ids) < mostPlaces; e = e.Next() {
			if w := e.Value.(*waiter); w.req.ID != "" {
				ids = append(ids, digest(w.req.ID))
			}
		}
		n.mu.Unlock()
		if len(ids) == 0 {
			continue
		}
		quoted, _ := json.Marshal(key) // a string
		if size += len(quoted) + len(ids)*len(`"0123456789abcdef",`) + len(`:[],`); size > mostPlacesBytes {
			break
		}
		if saved.Queues == nil {
			saved.Queues = map[string][]string{}
		}
		saved.Queues[key] = ids
	}
	return saved
}

// save writes down who waited, for the next registry. If it can't, they queue anew.
func (r *Registry) save(saved savedPlaces) {
	data, err := json.Marshal(saved)
	if err != nil || saved.Queues == nil {
		return
	}
	ctx, cancel := clock.WithTimeout(context.Background(), r.clk, placesLimit)
	defer cancel()
	if rec, err := store.Load(ctx, r.st, placesKey); err == nil {
		_, _ = r.st.Put(ctx, store.Record{Key: placesKey, Version: rec.Version, Token: rec.Token, Nonce: drive.Nonce(), Data: data})
	}
}
