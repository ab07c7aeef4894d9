package sim

import (
	"maps"
	"strconv"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// server is the store: one copy, linearizable, each request applied at one instant.
type server struct {
	rows    map[string]row
	version int // never used twice, whatever comes back from a backup
	down    bool
	life    int // restarts so far: a request of an earlier life is lost
	backup  map[string]row
	replica *replica // that is cut off; nil while it has all that this has
}

type row struct {
	rec     store.Record
	written int64 // true time
	writer  int   // the process that wrote it; a mark leaves it
}

func newServer() *server {
	return &server{rows: map[string]row{}, backup: map[string]row{}}
}

func (s *server) get(key string, now int64, age bool) store.Record {
	r, ok := s.rows[key]
	if !ok {
		return store.Record{Key: key}
	}
	rec := r.rec
	if age {
		rec.Age = duration(now - r.written)
	}
	return rec
}

func (s *server) put(rec store.Record, writer int, now int64, age bool) (store.Record, error) {
	old, ok := s.rows[rec.Key]
	switch {
	case !ok && rec.Version != "":
		return store.Record{}, driver.NotFound(rec.Key)
	case ok && rec.Version != old.rec.Version:
		return store.Record{}, &store.ConflictError{Current: s.get(rec.Key, now, age)}
	}
	s.version++
	rec.Version = strconv.Itoa(s.version)
	rec.Age = 0
	s.rows[rec.Key] = row{rec: rec, written: now, writer: writer}
	return rec, nil
}

func (s *server) save()    { s.backup = maps.Clone(s.rows) }
func (s *server) wipe()    { s.rows = map[string]row{} }
func (s *server) restart() { s.life++ }

// restored is the writer of a row that came back with a backup, and wasn't written since.
const restored = -1

// restore brings the backup back. Its rows get versions that were never used, as the contract
// demands of an engine.
func (s *server) restore(now int64) {
	s.rows = map[string]row{}
	for key, r := range s.backup {
		s.version++
		r.rec.Version = strconv.Itoa(s.version)
		r.written, r.writer = now, restored
		s.rows[key] = r
	}
}
