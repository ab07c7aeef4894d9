package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// Info is what a space is, for people and for tools.
type Info struct {
	Name      string
	Hashed    bool // 64-bit hashes of keys; else names
	Records   int  // that hold the map
	Placement Placement
	Assigner  string // owner id of the worker that assigns; "" for none
}

// Describe returns what a space is. The error matches [store.ErrNotFound] where there is none.
// Describe blocks until the store has answered, or ctx is done.
func Describe(ctx context.Context, st store.Store, space string) (Info, error) {
	s, err := load(ctx, st, space)
	if err != nil {
		return Info{}, err
	}
	leader, err := store.Load(ctx, st, s.LeaderName())
	return Info{Name: s.Name, Hashed: s.Hashed, Records: s.Chunks(), Placement: s.Placement, Assigner: leader.Owner}, err
}

// LookupHash is [Lookup] for a hash in a hashed space.
func LookupHash(ctx context.Context, st store.Store, space string, hash uint64) (Entry, error) {
	return Await(ctx, st, space, "", hash, func(Entry) bool { return true })
}

// Await returns the slice of a key, or of a hash if key is "", as soon as ok says that it is as
// wanted. It blocks until then or until ctx is done: the error is then the cause of ctx, beside the
// slice as it was. It matches [ErrNoSlice] when there is no such name.
func Await(ctx context.Context, st store.Store, space, key string, hash uint64, ok func(Entry) bool) (Entry, error) {
	s, err := load(ctx, st, space)
	if err != nil {
		return Entry{}, err
	}
	if key != "" {
		hash = shardmap.Hash(key)
	}
	n := s.ChunkOf(hash)
	for {
		c, err := chunkOf(ctx, st, s, n)
		if err != nil {
			return Entry{}, err
		}
		i := c.Find(key, hash)
		if i < 0 {
			return Entry{}, fmt.Errorf("%q in space %s: %w", key, space, ErrNoSlice)
		}
		e := entryOf(c.Slices[i])
		if ok(e) {
			return e, nil
		}
		if _, err := store.Wait(ctx, st, s.ChunkKey(n), c.Version()); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return e, err
		}
	}
}

// Change is a change of who owns a slice, for people and for tools.
type Change struct {
	Name     string // of a slice of a space of names
	From, To uint64 // of a slice of a hashed space
	Token    fence.Token
	At       time.Time // by the wall clock of who wrote the change; for people
	Owner    string    // key of the session; "" for nobody
	Before   string    // the one before
	Why      string    // given, passed on, freed, taken, split, merged
}

// ID returns the name of the slice, or its range.
func (c Change) ID() string { return shardmap.Slice{Name: c.Name, From: c.From, To: c.To}.ID() }

// History returns the last changes in a space, the newest first: 16 for each record of the map. It
// is for people: an earlier version of this package that writes a record forgets them.
func History(ctx context.Context, st store.Store, space string) ([]Change, error) {
	s, err := load(ctx, st, space)
	if err != nil {
		return nil, err
	}
	var all []Change
	for rec, err := range st.List(ctx, s.ChunkPrefix()) {
		if err != nil {
			return nil, err
		}
		c, err := parseListed(s, rec)
		if err != nil {
			return nil, err
		}
		for _, p := range c.Past {
			all = append(all, Change{
				Name: p.Name, From: p.From, To: p.To, Token: p.Token, At: shardmap.TokenTime(p.Token), Owner: p.Owner, Before: p.Before, Why: string(p.Why),
			})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return b.At.Compare(a.At) })
	return all, nil
}

// parseListed reads a chunk that a List has found.
func parseListed(s shardmap.Space, rec store.Record) (*shardmap.Chunk, error) {
	i, err := strconv.Atoi(strings.TrimPrefix(rec.Key, s.ChunkPrefix()))
	if err != nil || i < 0 || i >= s.Chunks() {
		return nil, &store.CorruptError{Key: rec.Key, Err: errors.New("it is no record of the map")}
	}
	return shardmap.ParseChunk(s, i, rec)
}

// All returns all slices of a space, in the order of the map, by one List of the store: quicker
// than [Map] for many records.
func All(ctx context.Context, st store.Store, space string) ([]Entry, error) {
	s, err := load(ctx, st, space)
	if err != nil {
		return nil, err
	}
	chunks := make([]*shardmap.Chunk, s.Chunks())
	for rec, err := range st.List(ctx, s.ChunkPrefix()) {
		if err != nil {
			return nil, err
		}
		c, err := parseListed(s, rec)
		if err != nil {
			return nil, err
		}
		chunks[c.Index] = c
	}
	var all []Entry
	for i, c := range chunks {
		if c == nil { // nobody has written it yet
			if c, err = shardmap.ParseChunk(s, i, store.Record{}); err != nil {
				return nil, err
			}
		}
		for _, e := range c.Slices {
			all = append(all, entryOf(e))
		}
	}
	return all, nil
}

// Find returns the member of that name, address, owner id or session. The error matches
// [ErrNoWorker] when there is none, and [ErrManyWorkers] when several have that name or address.
func Find(ctx context.Context, st store.Store, space, worker string) (Member, error) {
	all, err := Members(ctx, st, space)
	if err != nil {
		return Member{}, err
	}
	return Pick(all, space, worker)
}

// Pick is [Find] among members that were read before.
func Pick(all []Member, space, worker string) (Member, error) {
	var found []Member
	for _, m := range all {
		if worker == m.Session || worker == m.Holder {
			return m, nil
		}
		if worker != "" && (m.Name == worker || m.Address == worker) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return Member{}, fmt.Errorf("worker %q of space %s: %w", worker, space, ErrNoWorker)
	case 1:
		return found[0], nil
	}
	return Member{}, fmt.Errorf("worker %q of space %s: %w: say which by its holder's id: %s, %s", worker, space, ErrManyWorkers, found[0].Holder, found[1].Holder)
}
