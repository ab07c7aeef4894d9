// Package shardmap is the records of a sharded space: who owns which slice, who may change an
// entry, and by which token. It does no I/O. Package shard writes the records; the command reads
// them.
package shardmap

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Prefix begins the keys of all records of spaces; the name of the space follows.
const Prefix = ".shard/"

// Leader begins the name of the lease that the assigner of a space holds.
const Leader = "shard/"

// Format is that of the data of all records of a space.
const Format = 1

// Limits.
const (
	MaxSpace = 64       // bytes of the name of a space
	MaxName  = 120      // bytes of the name of a slice
	MaxBits  = 16       // of the number of chunks
	maxData  = 44 << 10 // bytes of the data of a chunk: an engine may write them as base64
)

// Space is what never changes of a space.
type Space struct {
	Format int    `json:"v"`
	Name   string `json:"-"`
	Hashed bool   `json:"hashed,omitempty"` // keys of 64 bits; else names
	Bits   int    `json:"bits"`             // there are 1<<Bits chunks
	Slices int    `json:"slices,omitempty"` // of each chunk of a hashed space, at first

	Placement Placement `json:"placement,omitzero"` // the exception: operators change it
}

// Placement says which worker may own what.
type Placement struct {
	Max int `json:"max,omitempty"` // slices of one worker at most; 0 is any number
	// Each zone gets its share of the slices, however many workers it has.
	Zones bool  `json:"zones,omitempty"`
	Pins  []Pin `json:"pins,omitempty"` // the first that names a slice counts
}

// Pin keeps slices on some workers.
type Pin struct {
	Prefix string            `json:"prefix,omitempty"` // of the names of the slices; "" is all
	Zone   string            `json:"zone,omitempty"`
	Worker string            `json:"worker,omitempty"` // name or address of the worker
	Labels map[string]string `json:"labels,omitempty"` // that the worker has
}

// BitsFor returns the number of bits of chunks for so many slices.
func BitsFor(slices int) int {
	chunks := min((slices+63)/64, 64)
	return min(bits.Len(uint(max(chunks, (slices+255)/256, 1)-1)), MaxBits)
}

// Chunks returns the number of chunks.
func (s Space) Chunks() int { return 1 << s.Bits }

// Key returns the key of the record of the space.
func (s Space) Key() string { return Prefix + s.Name }

// ChunkKey returns the key of the record of a chunk.
func (s Space) ChunkKey(i int) string { return fmt.Sprintf("%s%s/c/%05d", Prefix, s.Name, i) }

// ChunkPrefix begins the keys of chunks.
func (s Space) ChunkPrefix() string { return Prefix + s.Name + "/c/" }

// MemberPrefix begins the keys of members.
func (s Space) MemberPrefix() string { return Prefix + s.Name + "/m/" }

// MemberKey returns the key of the record of the member with that session.
func (s Space) MemberKey(session string) string {
	return s.MemberPrefix() + session[strings.LastIndex(session, "/")+1:]
}

// BellKey returns the key of the record that changes when a member comes or leaves.
func (s Space) BellKey() string { return Prefix + s.Name + "/bell" }

// NewsKey returns the key of the record that says which chunks have changed lately.
func (s Space) NewsKey() string { return Prefix + s.Name + "/news" }

// CheckpointKey returns the key of the record of a slice's checkpoint.
func (s Space) CheckpointKey(name string) string { return Prefix + s.Name + "/p/" + name }

// LeaderName returns the name of the lease that the assigner holds.
func (s Space) LeaderName() string { return Leader + s.Name }

// ChunkOf returns the chunk that a hash belongs to.
func (s Space) ChunkOf(hash uint64) int {
	if s.Bits == 0 {
		return 0
	}
	return int(hash >> (64 - s.Bits))
}

// Bounds returns the first and the last hash of a chunk.
func (s Space) Bounds(chunk int) (from, to uint64) {
	if s.Bits == 0 {
		return 0, ^uint64(0)
	}
	from = uint64(chunk) << (64 - s.Bits)
	return from, from | ^uint64(0)>>s.Bits
}

// Hash returns the place of a key in the space: FNV-1a of 64 bits, finished as MurmurHash3 does.
// Workers in any language can compute it. It allocates nothing.
func Hash(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// CheckSpace returns an error unless name may be the name of a space.
func CheckSpace(name string) error {
	if name == "" || len(name) > MaxSpace || !printable(name) || strings.Contains(name, "/") {
		return fmt.Errorf("space %.70q: want 1 to %d bytes of printable UTF-8 without a slash", name, MaxSpace)
	}
	if strings.HasPrefix(name, ".") { // its slices would have names that are Leasehold's own
		return fmt.Errorf("space %q: want a name that does not begin with a dot: those are Leasehold's own", name)
	}
	return nil
}

// CheckName returns an error unless name may be the name of a slice.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName || !printable(name) {
		return fmt.Errorf("slice %.130q: want 1 to %d bytes of printable UTF-8", name, MaxName)
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// ParseSpace reads the record of a space. The error matches [store.ErrNotFound] where there is
// none.
func ParseSpace(rec store.Record) (Space, error) {
	s := Space{}
	if len(rec.Data) == 0 {
		return s, fmt.Errorf("space %s: %w", strings.TrimPrefix(rec.Key, Prefix), store.ErrNotFound)
	}
	if err := json.Unmarshal(rec.Data, &s); err != nil {
		return s, driver.Corrupt(rec.Key, err)
	}
	if s.Format != Format || s.Bits < 0 || s.Bits > MaxBits {
		return s, driver.Corrupt(rec.Key, fmt.Errorf("format %d with %d bits: this version reads format %d", s.Format, s.Bits, Format))
	}
	s.Name = strings.TrimPrefix(rec.Key, Prefix)
	return s, nil
}
