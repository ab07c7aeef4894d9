package file

import (
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// standing is what is known of a process by the name of its life.
type standing uint8

const (
	unknown standing = iota // the name says nothing here
	alive
	gone // for good: no process ever has the name again
)

// mark is what a row says of two processes: the one that its holder lives in, "" if the record
// doesn't say, and the one that wrote it. They are the same as a rule. An operator's break, a
// notice and a server's write leave the holder as it is.
//
// It is kept in the column boot, where versions before this one write the name of a boot and a
// slash. They take a text without a slash for one that they know nothing of.
type mark struct {
	holder string // name of a life
	term   string // which term of the record the holder is of: see termOf
	writer string // name of a life
	space  string // name of the clock of the writer: see clockSpace
	// Unix time in milliseconds, in base 36, not before that of the write; "" in versions before
	// this one.
	wall string
}

const (
	markSides = "|" // between holder and writer
	markParts = ":"
)

func (m mark) String() string {
	text := markSides
	if m.holder != "" {
		text = m.holder + markParts + m.term + text
	}
	if m.writer != "" {
		text += m.writer + markParts + m.space + markParts + m.wall
	}
	return text
}

// parseMark returns a mark that says nothing for a text of another form.
func parseMark(text string) (m mark) {
	holder, writer, ok := strings.Cut(text, markSides)
	if ok {
		m.holder, m.term, _ = strings.Cut(holder, markParts)
		m.writer, writer, _ = strings.Cut(writer, markParts)
		m.space, m.wall, _ = strings.Cut(writer, markParts)
	}
	return m
}

// termOf names a term, so that a mark isn't taken for one of a later term, in which somebody else
// holds the name.
func termOf(rec store.Record) string {
	var room [128]byte
	return strconv.FormatUint(hash(strconv.AppendUint(append(append(room[:0], rec.Owner...), ' '), uint64(rec.Token), 10)), 36)
}

// mark returns what this store writes into a row: with own, the holder lives in this process.
func (s *Store) mark(rec store.Record, own bool) string {
	if s.life == nil {
		return mark{}.String()
	}
	m := mark{writer: s.life.name, space: s.space, wall: strconv.FormatInt(s.clock.Wall().UnixMilli()+1, 36)}
	if own {
		m.holder, m.term = s.life.name, termOf(rec)
	}
	return m.String()
}

// holderOf returns the name of the life of the record's holder, or "".
func (m mark) holderOf(rec store.Record) string {
	if rec.Owner == "" || m.holder == "" || m.term != termOf(rec) {
		return ""
	}
	return m.holder
}

// age returns how long ago, at least, the row was written that holds rec. While the writer lives,
// that is the difference of two readings of one clock. After its end the boot may be another one. A
// clock that began again shows less than has passed, so that difference is still a lower bound,
// unless the row is read on another machine, or in a time namespace that was given the number of
// the writer's. The wall clock bounds it then. It alone would count a step of the wall clock; of
// the two, the smaller one counts.
func (s *Store) age(r row, rec store.Record) time.Duration {
	m := parseMark(r.mark)
	writer := s.standing(m.writer)
	holder := writer
	if name := m.holderOf(rec); name != m.writer {
		holder = s.standing(name)
	}
	if holder == gone {
		return store.AgeGone
	}
	if m.space == "" || m.space != s.space {
		return 0
	}
	age := r.read.now.Sub(r.written)
	if writer != alive {
		age = min(age, m.since(r.read.wall))
	}
	return max(age, 0)
}

// since returns the difference of two readings of the wall clock.
func (m mark) since(now int64) time.Duration {
	written, err := strconv.ParseInt(m.wall, 36, 64)
	if err != nil || written > now || written < 0 {
		return 0
	}
	return time.Duration(min(now-written, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// standing tells how the process stands that has a life of that name. What is read before the call
// and names the process as its holder is abandoned if it is gone.
func (s *Store) standing(name string) standing {
	switch {
	case s.life == nil:
		return unknown
	case name == s.life.name: // this process runs
		return alive
	}
	return s.family.standing(name)
}

// record turns a row into the record that callers see.
func (s *Store) record(r row) (store.Record, error) {
	// Unmarshal only reads.
	rec, err := driver.Unmarshal(unsafe.Slice(unsafe.StringData(r.body), len(r.body)))
	if err != nil {
		return store.Record{}, driver.Corrupt(r.key, err)
	}
	rec.Key, rec.Version = r.key, r.version
	rec.Age = s.age(r, rec)
	return rec, nil
}

// Proof implements [driver.Witness].
func (s *Store) Proof() []*os.File {
	if s.life == nil {
		return nil
	}
	return s.life.proof(s.wakeDir)
}

// lifePoll is the pause between two looks at a life where nothing tells of its end.
const lifePoll = 25 * time.Millisecond

// sleepUntil is a pause that ends with stop; it reports whether it ended by itself.
func sleepUntil(c clock.Clock, d time.Duration, stop <-chan struct{}) bool {
	timer := clock.NewTimer(c, d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}
