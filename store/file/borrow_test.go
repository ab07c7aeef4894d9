package file

import (
	"testing"
	"time"
)

// made returns how many connections the pool has made.
func (p *pool) made() (n int) {
	for range readers {
		c := <-p.free
		if c != nil {
			n++
		}
		p.free <- c
	}
	return n
}

// rests blocks until nothing is written: a write is answered before its turn is over.
func rests(s *Store) {
	for !s.turn.TryLock() {
		time.Sleep(time.Millisecond)
	}
	s.turn.Unlock()
}

// A short run reads by the connection that it writes by. While that is busy, a read has one of its own.
func TestBriefReadsBorrowTheWritersConnection(t *testing.T) {
	s := testOpen(t, testPath(t))
	rec, err := s.Put(t.Context(), full("a"))
	if err != nil {
		t.Fatal(err)
	}
	rests(s)
	if _, err := s.Get(t.Context(), rec.Key); err != nil {
		t.Fatal(err)
	}
	if n := s.readers.made(); n != 0 {
		t.Errorf("%d connections were made for reading", n)
	}
	s.turn.Lock()
	_, err = s.Get(t.Context(), rec.Key)
	s.turn.Unlock()
	if err != nil {
		t.Error(err)
	}
	if n := s.readers.made(); n != 1 {
		t.Errorf("%d connections were made beside a busy writer: want 1", n)
	}
}
