package file

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// The statements. Each finds its row by the key; the version in the condition is the compare of
// compare-and-swap.
const (
	selectRow   = "SELECT key, version, boot, written, body FROM records WHERE key = ?1"
	selectFrom  = "SELECT key, version, boot, written, body FROM records WHERE key >= ?1 ORDER BY key LIMIT ?2"
	selectAfter = "SELECT key, version, boot, written, body FROM records WHERE key > ?1 ORDER BY key LIMIT ?2"
	insertRow   = "INSERT INTO records (key, version, boot, written, body) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING"
	updateRow   = "UPDATE records SET version = ?2, boot = ?3, written = ?4, body = ?5 WHERE key = ?1 AND version = ?6"
	keepHolder  = "UPDATE records SET version = ?2, boot = substr(boot, 1, max(instr(boot, '|'), 1) - 1) || ?3, " +
		"written = ?4, body = ?5 WHERE key = ?1 AND version = ?6"
	deleteRow = "DELETE FROM records WHERE key = ?1 AND version = ?2"
)

// row is a row of the table.
type row struct {
	key, version string
	mark         string // see mark
	written      clock.Instant
	body         string
	read         reading // not after the row was read
}

// reading is one of both clocks.
type reading struct {
	now  clock.Instant
	wall int64 // Unix time in milliseconds
}

func (s *Store) reading() reading {
	return reading{now: s.clock.Now(), wall: s.clock.Wall().UnixMilli()}
}

func scan(values []driver.Value) (r row, err error) {
	var ok [5]bool
	var written int64
	r.key, ok[0] = values[0].(string)
	r.version, ok[1] = values[1].(string)
	r.mark, ok[2] = values[2].(string)
	written, ok[3] = values[3].(int64)
	r.body, ok[4] = values[4].(string)
	r.written = clock.Instant(written)
	if ok != [5]bool{true, true, true, true, true} {
		return r, fmt.Errorf("a column has the wrong type: %T, %T, %T, %T, %T", values[0], values[1], values[2], values[3], values[4])
	}
	return r, nil
}

// rows reads what a SELECT of rows finds. The clocks were read before.
func (c *conn) rows(read reading, query string, args ...any) (found []row, err error) {
	err = c.query(func(values []driver.Value) error {
		r, err := scan(values)
		r.read = read
		if len(found) == 1 {
			found = slices.Grow(found, page)
		}
		found = append(found, r)
		return err
	}, query, args...)
	return found, err
}

// keepsTerm reports whether a write of rec renews or releases the term that it replaces: the
// version, which names the token of the record that bears it, says so without a read.
func keepsTerm(rec store.Record) bool {
	token, _, ok := strings.Cut(rec.Version, ".")
	var own [20]byte
	return ok && token == string(strconv.AppendUint(own[:0], uint64(rec.Token), 10))
}

// newVersion returns a version for a record of that token. It holds an id of this Open and a count,
// so that no record ever has it again, and the token, for keepsTerm.
func (s *Store) newVersion(rec store.Record) string {
	var room [64]byte
	b := append(strconv.AppendUint(room[:0], uint64(rec.Token), 10), '.')
	b = append(append(b, s.id...), '.')
	return string(strconv.AppendUint(b, s.count.Add(1), 36))
}
