package shardmap

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Member is a worker of a space. Its session says whether it lives.
type Member struct {
	Format   int               `json:"v"`
	Session  string            `json:"session"`
	Name     string            `json:"name,omitempty"`
	Address  string            `json:"address,omitempty"`
	Zone     string            `json:"zone,omitempty"`
	Capacity float64           `json:"capacity"`
	Labels   map[string]string `json:"labels,omitempty"`
	Prepares bool              `json:"prepares,omitempty"` // it says when it is ready for a slice
	Leaving  bool              `json:"leaving,omitempty"`  // it wants to get rid of all
	Drained  bool              `json:"drained,omitempty"`  // an operator wants it to
	Since    time.Time         `json:"since"`              // by its wall clock; for people

	// Chunks are those of the map that the assigner has named it in. It reads those, and no others.
	Chunks []int `json:"chunks,omitempty"`
}

// Owner returns the owner id of the worker's manager.
func (m Member) Owner() string { return keyspace.OwnerOf(m.Session) }

// Goes reports whether the worker is to own nothing.
func (m Member) Goes() bool { return m.Leaving || m.Drained }

// ParseMember reads the record of a member. The error matches [store.ErrCorrupt].
func ParseMember(rec store.Record) (Member, error) {
	var m Member
	if err := json.Unmarshal(rec.Data, &m); err != nil {
		return m, driver.Corrupt(rec.Key, err)
	}
	if m.Format != Format || m.Session == "" || !(m.Capacity > 0) {
		return m, driver.Corrupt(rec.Key, fmt.Errorf("format %d, session %q, capacity %v: this version reads format %d", m.Format, m.Session, m.Capacity, Format))
	}
	return m, nil
}

// Record puts the member into its record.
func (m Member) Record(rec store.Record, nonce string) (store.Record, error) {
	m.Format = Format
	data, err := json.Marshal(m)
	rec.Data, rec.Nonce = data, nonce
	return rec, err
}
