package shard

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// Entry is a slice of the map, for people and for tools.
type Entry struct {
	Name     string // of a slice of a space of names
	From, To uint64 // of a slice of a hashed space
	Token    fence.Token
	Owner    string // key of the session; "" when nobody owns the slice
	Next     string // key of the session that the slice is to go to; "" when it is to stay
	Asked    string // split, merge, remove; "" for nothing

	// Deaths is how many owners in a row ended, other than by leaving, within 4 TTLs after the
	// slice had come to them. From the third on, nobody gets the slice until Quarantined, unless
	// somebody moves it ([RequestMove]). Quarantined is the zero time when the slice isn't.
	Deaths      int
	Quarantined time.Time
}

func entryOf(e shardmap.Slice) Entry {
	entry := Entry{Name: e.Name, From: e.From, To: e.To, Token: e.Token, Owner: e.Owner, Next: e.Next, Asked: string(e.Ask), Deaths: e.Deaths}
	if e.Quarantined(wall()) {
		entry.Quarantined = time.Unix(e.Until, 0)
	}
	return entry
}

// ID returns the name of the slice, or its range.
func (e Entry) ID() string { return shardmap.Slice{Name: e.Name, From: e.From, To: e.To}.ID() }

// Member is a worker, for people and for tools. Its process may have died lately.
type Member struct {
	Session  string
	Holder   string // owner id
	Name     string
	Address  string
	Zone     string
	Capacity float64
	Labels   map[string]string
	Leaving  bool // it hands over all that it owns
	Drained  bool // an operator wants it to
	Since    time.Time
}

// Map yields all slices of a space, in the order of the map. It reads the map's records one by one,
// so that a slice on the move between two may be seen in the one place or the other. After an error
// the sequence ends; the error matches [store.ErrNotFound] where there is no such space.
func Map(ctx context.Context, st store.Store, space string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s, err := load(ctx, st, space)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for i := range s.Chunks() {
			c, err := chunkOf(ctx, st, s, i)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range c.Slices {
				if !yield(entryOf(e), nil) {
					return
				}
			}
		}
	}
}

func chunkOf(ctx context.Context, st store.Store, s shardmap.Space, i int) (*shardmap.Chunk, error) {
	rec, err := store.Load(ctx, st, s.ChunkKey(i))
	if err != nil {
		return nil, err
	}
	return shardmap.ParseChunk(s, i, rec)
}

// Members returns the workers of a space, the oldest first. It blocks until the store has answered
// or ctx is done.
func Members(ctx context.Context, st store.Store, space string) ([]Member, error) {
	s, err := load(ctx, st, space)
	if err != nil {
		return nil, err
	}
	var all []Member
	for rec, err := range st.List(ctx, s.MemberPrefix()) {
		if err != nil {
			return nil, err
		}
		m, err := shardmap.ParseMember(rec)
		if err != nil {
			return nil, err
		}
		all = append(all, Member{
			Session: m.Session, Holder: m.Owner(), Name: m.Name, Address: m.Address, Zone: m.Zone, Capacity: m.Capacity, Labels: m.Labels,
			Leaving: m.Leaving, Drained: m.Drained, Since: m.Since,
		})
	}
	slices.SortFunc(all, func(a, b Member) int { return a.Since.Compare(b.Since) })
	return all, nil
}

// Lookup returns the slice of a key: of a name, or of any key of a hashed space. It reads the map;
// a [Router] doesn't for each key.
func Lookup(ctx context.Context, st store.Store, space, key string) (Entry, error) {
	s, err := load(ctx, st, space)
	if err != nil {
		return Entry{}, err
	}
	h := shardmap.Hash(key)
	c, err := chunkOf(ctx, st, s, s.ChunkOf(h))
	if err != nil {
		return Entry{}, err
	}
	i := c.Find(key, h)
	if i < 0 {
		return Entry{}, fmt.Errorf("%q in space %s: %w", key, space, ErrNoSlice)
	}
	return entryOf(c.Slices[i]), nil
}

// request changes the entry of a key.
func request(ctx context.Context, st store.Store, space, key string, hash uint64, f func(c *shardmap.Chunk, i int) error) error {
	s, err := load(ctx, st, space)
	if err != nil {
		return err
	}
	return change(ctx, st, s, s.ChunkOf(hash), func(c *shardmap.Chunk) (bool, error) {
		i := c.Find(key, hash)
		if i < 0 {
			return false, fmt.Errorf("%q in space %s: %w", key, space, ErrNoSlice)
		}
		return true, f(c, i)
	})
}

// RequestMove asks the owner of a key's slice to hand it over to a worker, by name, address, owner
// id or session. It blocks until the request is written, not until the slice has moved. The
// assigner may move it on later: a pin keeps it where it is.
func RequestMove(ctx context.Context, st store.Store, space, key, worker string) error {
	return RequestMoveHash(ctx, st, space, key, shardmap.Hash(key), worker)
}

// RequestMoveHash is [RequestMove] of the slice of a hash, where key is "".
func RequestMoveHash(ctx context.Context, st store.Store, space, key string, hash uint64, worker string) error {
	m, err := Find(ctx, st, space, worker)
	if err != nil {
		return err
	}
	if key != "" {
		hash = shardmap.Hash(key)
	}
	return request(ctx, st, space, key, hash, func(c *shardmap.Chunk, i int) error {
		if c.Slices[i].Owner == "" {
			return c.Give(i, "", m.Session, nil, wall())
		}
		c.Propose(i, m.Session, false)
		return nil
	})
}

// RequestSplit asks the owner of the slice of a hash to split the slice there: the hash is the
// first of the upper part. The owner stays, and both parts have higher tokens. It blocks until the
// request is written. The error matches [store.ErrInvalid] when the hash isn't inside a slice.
func RequestSplit(ctx context.Context, st store.Store, space string, hash uint64) error {
	return requestAsk(ctx, st, space, hash, shardmap.AskSplit, hash)
}

// RequestMerge asks the owner of the slice of a hash to merge it with the slice after it, which
// first moves to the same owner. The merged slice has a higher token than both. It blocks until the
// request is written. Slices of two records of the map don't merge: the last of each can't. The
// error matches [store.ErrInvalid] then.
func RequestMerge(ctx context.Context, st store.Store, space string, hash uint64) error {
	return requestAsk(ctx, st, space, hash, shardmap.AskMerge, 0)
}

// requestAsk asks the owner of the slice of a hash for a change of the slice.
func requestAsk(ctx context.Context, st store.Store, space string, hash uint64, ask shardmap.Ask, at uint64) error {
	return request(ctx, st, space, "", hash, func(c *shardmap.Chunk, i int) error {
		if err := c.Request(i, ask, at); err != nil {
			return &invalidError{err}
		}
		return nil
	})
}

// Drain has a worker hand over all that it owns, and own nothing, until drained is set to false. It
// blocks until that is written, not until the worker owns nothing.
func Drain(ctx context.Context, st store.Store, space, worker string, drained bool) error {
	m, err := Find(ctx, st, space, worker)
	if err != nil {
		return err
	}
	s := shardmap.Space{Name: space}
	err = store.Update(ctx, st, s.MemberKey(m.Session), func(rec *store.Record) (bool, error) {
		if len(rec.Data) == 0 {
			return false, fmt.Errorf("worker %q of space %s: %w", worker, space, ErrNoWorker)
		}
		own, err := shardmap.ParseMember(*rec)
		if err != nil {
			return false, err
		}
		own.Drained = drained
		*rec, err = own.Record(*rec, rand.Text())
		return true, err
	})
	if err != nil {
		return err
	}
	return ring(ctx, st, s)
}

// Spaces returns the names of all spaces of a store, sorted.
func Spaces(ctx context.Context, st store.Store) ([]string, error) {
	var all []string
	for rec, err := range st.List(ctx, shardmap.Prefix) {
		if err != nil {
			return nil, err
		}
		if name := strings.TrimPrefix(rec.Key, shardmap.Prefix); !strings.Contains(name, "/") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all, nil
}
