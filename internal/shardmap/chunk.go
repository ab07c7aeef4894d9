package shardmap

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Ask is what the owner of a slice is asked to do with it. Nobody else may while the owner's
// session is open.
type Ask string

// What may be asked.
const (
	AskNothing Ask = ""
	AskSplit   Ask = "split"  // at Slice.At
	AskMerge   Ask = "merge"  // with the slice after it, once both have one owner
	AskRemove  Ask = "remove" // of a name
)

// Slice is an entry of the map.
type Slice struct {
	Name     string // of a space of names
	From, To uint64 // of a hashed space: the first and the last hash; of a name, both are its hash
	Owner    string // key of the session; "" when nobody owns it
	Token    fence.Token
	Next     string // key of the session that it is to go to; "" when it is to stay
	Ready    bool   // Next has prepared
	Ask      Ask
	At       uint64 // where the upper part of a split begins
	Deaths   int    // how many owners in a row ended soon after the slice had come to them
	Until    int64  // of a quarantine, in seconds of the Unix epoch; 0 when there is none
}

// ID returns what tells the slice of a map from the others: its name, or its range.
func (s Slice) ID() string {
	if s.Name != "" {
		return s.Name
	}
	var b [33]byte
	hexadecimal(b[:16], s.From)
	b[16] = '-'
	hexadecimal(b[17:], s.To)
	return string(b[:])
}

// hexadecimal writes n into 16 digits.
func hexadecimal(b []byte, n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
}

// Chunk is a part of the map that is written at once.
type Chunk struct {
	Space  Space
	Index  int
	Token  fence.Token // the highest of any slice that was ever in it
	Slices []Slice     // by From, or by Name
	Past   []Past      // the last changes, the newest last
	rec    store.Record
	noted  *Chunk // that has added to Past
}

// Version returns the version of the record that the chunk was read from.
func (c *Chunk) Version() string { return c.rec.Version }

// Nonce returns that of the write that made the record.
func (c *Chunk) Nonce() string { return c.rec.Nonce }

type chunkJSON struct {
	Format   int         `json:"v"`
	Sessions []string    `json:"s,omitempty"`
	Slices   []sliceJSON `json:"e,omitempty"`
	Past     []pastJSON  `json:"h,omitempty"`
}

type sliceJSON struct {
	Name  string      `json:"n,omitempty"`
	From  uint64      `json:"f,omitempty"`
	Owner int         `json:"o,omitempty"` // 1 is the first of Sessions
	Token fence.Token `json:"k,omitempty"`
	Next  int         `json:"t,omitempty"`
	Ready bool        `json:"r,omitempty"`
	Ask   Ask         `json:"a,omitempty"`
	At    uint64      `json:"x,omitempty"`

	Deaths int   `json:"d,omitempty"`
	Until  int64 `json:"q,omitempty"`
}

// ParseChunk reads the record of a chunk. One that isn't stored is as a chunk is at first. The
// error matches [store.ErrCorrupt].
func ParseChunk(s Space, index int, rec store.Record) (*Chunk, error) {
	c := &Chunk{Space: s, Index: index, Token: rec.Token, rec: rec}
	rec.Key = s.ChunkKey(index)
	c.rec.Key = rec.Key
	if len(rec.Data) == 0 {
		c.begin()
		return c, nil
	}
	var j chunkJSON
	if err := json.Unmarshal(rec.Data, &j); err != nil {
		return nil, driver.Corrupt(rec.Key, err)
	}
	if j.Format != Format {
		return nil, driver.Corrupt(rec.Key, fmt.Errorf("format %d: this version reads format %d", j.Format, Format))
	}
	session := func(i int) string {
		if i < 1 || i > len(j.Sessions) {
			return ""
		}
		return j.Sessions[i-1]
	}
	c.Slices = make([]Slice, len(j.Slices))
	for i, e := range j.Slices {
		if e.Owner > len(j.Sessions) || e.Next > len(j.Sessions) || e.Owner != 0 && e.Token == 0 || e.Token > c.Token {
			return nil, driver.Corrupt(rec.Key, fmt.Errorf("entry %d: owner %d of %d under token %d of %d", i, e.Owner, len(j.Sessions), e.Token, c.Token))
		}
		c.Slices[i] = Slice{
			Name: e.Name, From: e.From, Owner: session(e.Owner), Token: e.Token, Next: session(e.Next), Ready: e.Ready, Ask: e.Ask, At: e.At,
			Deaths: e.Deaths, Until: e.Until,
		}
	}
	c.parsePast(j.Past, session)
	return c, c.close()
}

// begin makes the entries that a chunk has at first.
func (c *Chunk) begin() {
	if !c.Space.Hashed {
		return
	}
	from, to := c.Space.Bounds(c.Index)
	n := uint64(max(c.Space.Slices, 1))
	width := (to-from)/n + 1
	if width == 0 { // one slice of all
		width = to
	}
	for i := range n {
		c.Slices = append(c.Slices, Slice{From: from + i*width})
	}
	_ = c.close()
}

// close sets the ends of the ranges, and returns an error if the entries are no chunk.
func (c *Chunk) close() error {
	from, to := c.Space.Bounds(c.Index)
	if c.Space.Hashed && (len(c.Slices) == 0 || c.Slices[0].From != from) {
		return driver.Corrupt(c.rec.Key, fmt.Errorf("its entries don't begin at %x", from))
	}
	for i := range c.Slices {
		s := &c.Slices[i]
		if !c.Space.Hashed {
			s.From = Hash(s.Name)
			s.To = s.From
			if s.Name == "" || c.Space.ChunkOf(s.From) != c.Index || i > 0 && c.Slices[i-1].Name >= s.Name {
				return driver.Corrupt(c.rec.Key, fmt.Errorf("name %q is not in its place", s.Name))
			}
			continue
		}
		s.To = to
		if i+1 < len(c.Slices) {
			s.To = c.Slices[i+1].From - 1
		}
		if s.Name != "" || s.To < s.From || s.From > to || s.To > to {
			return driver.Corrupt(c.rec.Key, fmt.Errorf("range %x to %x is not in its place", s.From, s.To))
		}
	}
	return nil
}

// ErrFull is the error for a chunk that has no room left.
var ErrFull = errors.New("chunk of the map is full: make the space again with a larger Expect")

// Record returns the record to be written in the place of the one that the chunk was read from.
func (c *Chunk) Record(nonce string) (store.Record, error) {
	j := chunkJSON{Format: Format, Slices: make([]sliceJSON, len(c.Slices))}
	known := map[string]int{"": 0}
	number := func(session string) int {
		n, ok := known[session]
		if !ok {
			j.Sessions = append(j.Sessions, session)
			n = len(j.Sessions)
			known[session] = n
		}
		return n
	}
	for i, s := range c.Slices {
		e := sliceJSON{Name: s.Name, Owner: number(s.Owner), Token: s.Token, Next: number(s.Next), Ready: s.Ready, Ask: s.Ask, At: s.At, Deaths: s.Deaths, Until: s.Until}
		if c.Space.Hashed {
			e.From = s.From
		}
		j.Slices[i] = e
	}
	named := j.Sessions
	j.Past = c.writePast(number)
	data, err := json.Marshal(j)
	if err == nil && len(data) > maxData { // the map goes before what it was
		j.Past, j.Sessions = nil, named
		data, err = json.Marshal(j)
	}
	if err != nil {
		return store.Record{}, err
	}
	if len(data) > maxData {
		return store.Record{}, fmt.Errorf("chunk %d of space %s: %d bytes: %w", c.Index, c.Space.Name, len(data), ErrFull)
	}
	rec := c.rec.Clone()
	rec.Token, rec.Data, rec.Nonce = c.Token, data, nonce
	return rec, nil
}

// Find returns the index of the slice with that hash, or of that name; -1 for a name that isn't
// there.
func (c *Chunk) Find(name string, hash uint64) int {
	if !c.Space.Hashed {
		i, ok := slices.BinarySearchFunc(c.Slices, name, func(s Slice, n string) int { return cmp.Compare(s.Name, n) })
		if !ok {
			return -1
		}
		return i
	}
	i, ok := slices.BinarySearchFunc(c.Slices, hash, func(s Slice, h uint64) int { return cmp.Compare(s.From, h) })
	if !ok {
		i--
	}
	if i < 0 || hash > c.Slices[i].To {
		return -1
	}
	return i
}
