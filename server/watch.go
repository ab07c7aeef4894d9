package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/wire"
)

// beat is how often a stream says that it lives, and how old what it says is.
const beat = 5 * time.Second

// watch sends server-sent events: "reset" and the state of every name and of the sessions that keep names, then each change as it
// comes, and every 5 s a "beat" with the age of what is known. A client that comes back with Last-Event-ID gets what it has missed.
func (s *Server) watch(c *call) (any, error) {
	prefix := c.r.URL.Query().Get("prefix")
	if err := c.may(Read, prefix+"*"); err != nil {
		return nil, err
	}
	leave, err := s.waiting.enter(s.payer(c.caller, c.r))
	if err != nil {
		return nil, err
	}
	defer leave()
	w := s.board.join()
	defer s.board.leave(w)
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	out := &stream{w: c.w, rc: http.NewResponseController(c.w), prefix: prefix, board: s.board, id: s.id}
	out.resume(c.r.Header.Get("Last-Event-ID"))
	for out.send() == nil {
		timer := clock.NewTimer(s.clk, beat)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-c.r.Context().Done():
		case <-s.closing.Done():
		}
		timer.Stop()
		if c.r.Context().Err() != nil || s.closing.Err() != nil {
			break
		}
	}
	return nil, errAnswered
}

// stream is what one watcher has been sent.
type stream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	board  *board
	prefix string
	id     string // of this server: another one's changes are numbered otherwise
	seq    uint64
}

// resume goes on after the event of that id, if this server sent it.
func (s *stream) resume(lastEvent string) {
	id, seq, _ := strings.Cut(lastEvent, ":")
	if n, err := strconv.ParseUint(seq, 10, 64); err == nil && id == s.id {
		s.seq = n
	}
}

// send sends what is new, and a beat.
func (s *stream) send() error {
	changes, last, reset, age, err := s.board.since(s.seq, s.prefix)
	var text strings.Builder
	if reset {
		fmt.Fprintf(&text, "event: reset\ndata: {}\n\n")
	}
	for _, e := range changes {
		body, err := json.Marshal(e.data)
		if err != nil {
			return err
		}
		if !reset { // who has heard a part of all names only has to hear all again
			fmt.Fprintf(&text, "id: %s:%d\n", s.id, e.seq)
		}
		fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", e.kind, body)
	}
	b := wire.Beat{Age: wire.Seconds(age)}
	if err != nil {
		b.Error = err.Error()
	}
	body, err := json.Marshal(b)
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "id: %s:%d\nevent: beat\ndata: %s\n\n", s.id, last, body)
	s.seq = last
	if _, err := s.w.Write([]byte(text.String())); err != nil {
		return err
	}
	return s.rc.Flush()
}
