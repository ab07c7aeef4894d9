package shard

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// Space is what workers share: a list of names, or all hashes of keys. The first worker makes the
// space. Later ones use it as it is.
type Space struct {
	Name string // 1 to 64 bytes without a slash

	// Names are the slices of a space of names: partitions, tenants, streams. Join adds those that
	// aren't there, and removes none: see [AddNames] and [RemoveNames].
	Names []string

	// Hashed says that the space is the 64-bit hashes of keys, cut into slices. Names is empty
	// then.
	Hashed bool

	// Slices is how many slices a hashed space has at first: 256 by default, 1,048,576 at most.
	// Slices split and merge later.
	Slices int

	// Expect is how many slices the space may grow to, as far as that is known. The number of
	// records that hold the map follows from it, for good. It is at least the number of Names or
	// Slices.
	Expect int

	Placement Placement // of a space that is made; see [SetPlacement]
}

// Placement says which worker may own which slices.
type Placement = shardmap.Placement

// Pin keeps the slices whose names begin with Prefix on the workers that it describes. If none of
// them lives, nobody owns those slices.
type Pin = shardmap.Pin

// Hash returns the place of a key in a hashed space: FNV-1a of 64 bits, finished as MurmurHash3
// finishes. Workers and callers in other languages can compute it. Hash allocates nothing.
func Hash(key string) uint64 { return shardmap.Hash(key) }

// The bounds of Space.Slices and Space.Expect.
const (
	defaultSlices = 256
	maxSlices     = 1 << 20
)

func (s Space) check() error {
	if err := shardmap.CheckSpace(s.Name); err != nil {
		return err
	}
	if s.Hashed && len(s.Names) > 0 {
		return fmt.Errorf("space %s: %d names in a hashed space: want no Names, or Hashed false", s.Name, len(s.Names))
	}
	if s.Slices < 0 || s.Slices > maxSlices || s.Expect < 0 || s.Expect > 16*maxSlices {
		return fmt.Errorf("space %s: Slices %d, Expect %d: want 0 to %d, and 0 to %d", s.Name, s.Slices, s.Expect, maxSlices, 16*maxSlices)
	}
	for _, n := range s.Names {
		if err := shardmap.CheckName(n); err != nil {
			return fmt.Errorf("space %s: %w", s.Name, err)
		}
	}
	return nil
}

// open returns the space as it is stored, and makes it if nobody has.
func (s Space) open(ctx context.Context, st store.Store) (shardmap.Space, error) {
	made := shardmap.Space{Format: shardmap.Format, Name: s.Name, Hashed: s.Hashed, Placement: s.Placement}
	if s.Hashed && s.Slices == 0 {
		s.Slices = defaultSlices
	}
	made.Bits = shardmap.BitsFor(max(s.Expect, s.Slices, len(s.Names)))
	if s.Hashed {
		made.Slices = (s.Slices + made.Chunks() - 1) / made.Chunks()
	}
	err := store.Update(ctx, st, made.Key(), func(rec *store.Record) (bool, error) {
		if len(rec.Data) > 0 {
			stored, err := shardmap.ParseSpace(*rec)
			made = stored
			return false, err
		}
		data, err := json.Marshal(made)
		rec.Data = data
		return true, err
	})
	if err != nil {
		return made, fmt.Errorf("open space %s: %w", s.Name, err)
	}
	if made.Hashed != s.Hashed {
		return made, fmt.Errorf("space %s: hashed %t, wanted %t: %w", s.Name, made.Hashed, s.Hashed, ErrMismatch)
	}
	return made, addNames(ctx, st, made, s.Names)
}

// AddNames adds names to a space of names. Names that are there stay as they are; a removal of one
// that is still under way is withdrawn. AddNames blocks until the store has answered, or ctx is
// done. After an error it can be called again.
func AddNames(ctx context.Context, st store.Store, space string, names ...string) error {
	s, err := load(ctx, st, space)
	if err == nil {
		err = addNames(ctx, st, s, names)
	}
	return err
}

func addNames(ctx context.Context, st store.Store, s shardmap.Space, names []string) error {
	byChunk := map[int][]string{}
	for _, n := range names {
		if err := shardmap.CheckName(n); err != nil {
			return err
		}
		i := s.ChunkOf(shardmap.Hash(n))
		byChunk[i] = append(byChunk[i], n)
	}
	if s.Hashed && len(names) > 0 {
		return fmt.Errorf("add names to %s: %w", s.Name, ErrMismatch)
	}
	for i, names := range byChunk {
		err := change(ctx, st, s, i, func(c *shardmap.Chunk) (bool, error) { return c.Add(names...), nil })
		if err != nil {
			return fmt.Errorf("add names to %s: %w", s.Name, err)
		}
	}
	return nil
}

// RemoveNames removes names from a space of names. A name that nobody owns goes at once. The owner
// of another one first drains and stops it. RemoveNames blocks until the store has answered, not
// until the owners have. A name that isn't there is no error.
func RemoveNames(ctx context.Context, st store.Store, space string, names ...string) error {
	s, err := load(ctx, st, space)
	if err != nil {
		return err
	}
	for _, n := range names {
		err := change(ctx, st, s, s.ChunkOf(shardmap.Hash(n)), func(c *shardmap.Chunk) (bool, error) {
			i := c.Find(n, 0)
			if i < 0 {
				return false, nil
			}
			if err := c.Request(i, shardmap.AskRemove, 0); err != nil {
				return false, err
			}
			if c.Slices[i].Owner == "" {
				return true, c.Do(i, "", nil, wall())
			}
			return true, nil
		})
		if err != nil {
			return fmt.Errorf("remove names of %s: %w", space, err)
		}
	}
	return nil
}

// SetPlacement replaces the placement of a space. The assigner follows within its next look, a
// third of the TTL. It blocks until the store has answered or ctx is done.
func SetPlacement(ctx context.Context, st store.Store, space string, p Placement) error {
	key := shardmap.Space{Name: space}.Key()
	return store.Update(ctx, st, key, func(rec *store.Record) (bool, error) {
		s, err := shardmap.ParseSpace(*rec)
		if err != nil {
			return false, err
		}
		s.Placement = p
		rec.Data, err = json.Marshal(s)
		return true, err
	})
}

// load returns a space that is stored.
func load(ctx context.Context, st store.Store, space string) (shardmap.Space, error) {
	if err := shardmap.CheckSpace(space); err != nil {
		return shardmap.Space{}, err
	}
	rec, err := store.Load(ctx, st, shardmap.Space{Name: space}.Key())
	if err != nil {
		return shardmap.Space{}, err
	}
	return shardmap.ParseSpace(rec)
}

// change lets f change a chunk of the map, and writes it.
func change(ctx context.Context, st store.Store, s shardmap.Space, i int, f func(*shardmap.Chunk) (bool, error)) error {
	written := false
	err := store.Update(ctx, st, s.ChunkKey(i), func(rec *store.Record) (bool, error) {
		c, err := shardmap.ParseChunk(s, i, *rec)
		if err != nil {
			return false, err
		}
		write, err := f(c)
		if err != nil || !write {
			return false, err
		}
		written = true
		*rec, err = c.Record(rand.Text())
		return true, err
	})
	if err == nil && written {
		_ = announce(ctx, st, s, i) // else the others find it later
	}
	return err
}
