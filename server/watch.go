package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/wire"
)

const (
	// beat is how often a stream says that it lives, and how old what it says is.
	beat = 5 * time.Second
	// pieceSize is how much of a stream is sent at a time.
	pieceSize = 64 << 10
	// tellSize is what a telling of changes counts for at least: to wake a watcher and to write to its connection costs as much.
	tellSize = 16 << 10
	// pieceLimit is how long a client may take to accept a piece: one that reads nothing is cut off.
	pieceLimit = 30 * time.Second
)

// pieces are buffers for what is about to be sent.
var pieces = sync.Pool{New: func() any { b := make([]byte, 0, pieceSize+4<<10); return &b }}

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
	c.patience.lift()
	s.board.join()
	defer s.board.leave()
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	out := &stream{ctx: ctx, w: c.w, rc: http.NewResponseController(c.w), prefix: prefix, board: s.board, id: s.id}
	out.resume(c.r.Header.Get("Last-Event-ID"))
	out.run()
	_ = out.rc.SetWriteDeadline(time.Time{})
	return nil, errAnswered
}

// stream is what one watcher has been sent.
type stream struct {
	ctx     context.Context //nolint:containedctx // done when the watcher has gone, or the server closes
	w       http.ResponseWriter
	rc      *http.ResponseController
	board   *board
	prefix  string
	id      string          // of this server: another one's changes are numbered otherwise
	seq     uint64          // of the last change that was told; 0 for nothing
	keepers map[string]bool // sessions that the watcher has been told of; nil when that is not to be told apart

	piece *[]byte // what has yet to be sent; nil for nothing
	cost  int     // of the next piece, in bytes, as far as that is known
}

// resume goes on after the event of that id, if this server sent it.
func (s *stream) resume(lastEvent string) {
	id, seq, _ := strings.Cut(lastEvent, ":")
	if n, err := strconv.ParseUint(seq, 10, 64); err == nil && id == s.id {
		s.seq = n
	}
}

// run tells the news until the watcher has gone.
func (s *stream) run() {
	defer s.done()
	n := s.board.news.Load()
	due := n.known()
	for {
		if due && s.tell(n) != nil || s.rc.Flush() != nil || due && s.rest() != nil {
			return
		}
		timer := clock.NewTimer(s.board.s.clk, beat)
		select {
		case <-n.next:
			n = s.board.news.Load()
			due = n.known()
		case <-timer.C:
			due = true
		case <-s.ctx.Done():
		}
		timer.Stop()
		if s.ctx.Err() != nil {
			return
		}
	}
}

// rest lets changes gather once some have been told. Each watcher does that in its own time: while there are changes all the time, they are
// not all woken at once.
func (s *stream) rest() error {
	return clock.Sleep(s.ctx, s.board.s.clk, min(time.Duration(s.board.watched())*boardRestEach, boardPoll))
}

// tell sends what is new, and a beat.
func (s *stream) tell(n *news) error {
	s.cost = tellSize
	if err := s.begin(); err != nil {
		return err
	}
	if later := s.board.news.Load(); later.known() { // what has come while it was not this watcher's turn
		n = later
	}
	if n.view != nil {
		if err := s.changes(n); err != nil {
			return err
		}
	}
	return s.beat(n)
}

// changes tells what the watcher has not been told.
func (s *stream) changes(n *news) (err error) {
	changes, known := n.after(s.seq)
	reset := s.seq == 0 || !known
	if s.prefix != "" && (reset || s.keepers == nil || len(s.keepers) > boardMemory) {
		s.keepers = n.keepers(s.prefix)
	}
	if reset {
		s.board.resets.Add(1)
		*s.piece = append(*s.piece, "event: reset\ndata: {}\n\n"...)
		err = s.all(n)
		changes = nil
	}
	for _, i := range changes {
		if s.concerns(i) && err == nil {
			err = s.event(i, true)
		}
	}
	s.seq = n.seq
	return err
}

// all tells everything: the names, and the sessions that keep them. It has no ids: who has heard a part of it has to hear all of it again.
func (s *stream) all(n *news) (err error) {
	since, _ := n.after(n.view.seq)
	now := make(map[string]*item, len(since)) // what has changed since the view
	for _, i := range since {
		now[i.key] = i
	}
	told := map[string]bool{}
	tell := func(i *item) {
		if err == nil && (!i.gone || i.session) {
			err = s.event(i, false)
		}
	}
	name := func(i *item) {
		if session := cmp.Or(now[i.keeper], n.view.sessions[i.keeper]); session != nil && !told[i.keeper] {
			told[i.keeper] = true
			tell(session)
		}
		tell(i)
	}
	for _, i := range n.view.under(s.prefix) {
		if now[i.key] == nil {
			name(i)
		}
	}
	for _, i := range since {
		if now[i.key] == i && !i.session && strings.HasPrefix(i.key, s.prefix) {
			name(i)
		}
	}
	return err
}

// concerns reports whether a change is to be told to this watcher.
func (s *stream) concerns(i *item) bool {
	switch {
	case s.prefix == "":
		return true
	case i.session:
		return s.keepers[i.key]
	case !strings.HasPrefix(i.key, s.prefix):
		return false
	}
	if i.keeper != "" {
		s.keepers[i.keeper] = true
	}
	return true
}

// event adds an event to the piece, with an id or without, and sends the piece when it is large enough.
func (s *stream) event(i *item, id bool) error {
	if err := s.begin(); err != nil {
		return err
	}
	if id {
		s.appendID(i.seq)
	}
	*s.piece = i.appendTo(*s.piece, s.board.s.clk.Now())
	if len(*s.piece) < pieceSize {
		return nil
	}
	err := s.send()
	s.cost = pieceSize // the next one is as large, as far as can be known
	return err
}

func (s *stream) appendID(seq uint64) {
	b := append(append(append(*s.piece, "id: "...), s.id...), ':')
	*s.piece = append(strconv.AppendUint(b, seq, 10), '\n')
}

// beat sends what there is, and that what was told is all there is to tell.
func (s *stream) beat(n *news) error {
	at := wire.Beat{Age: wire.Seconds(s.board.s.clk.Now().Sub(n.at))}
	if n.err != nil {
		at.Error = plainly(n.err)
	}
	text, err := json.Marshal(at)
	if err == nil {
		err = s.begin()
	}
	if err != nil {
		return err
	}
	if n.view != nil {
		s.appendID(s.seq)
	}
	*s.piece = append(append(append(*s.piece, "event: beat\ndata: "...), text...), "\n\n"...)
	return s.send()
}

// begin begins a piece when it is this watcher's turn; until then a watcher has no memory for one. It is an error that the client has gone.
func (s *stream) begin() error {
	if s.piece != nil {
		return nil
	}
	if err := s.board.pace.take(s.ctx, s.cost); err != nil {
		return err
	}
	s.piece = pieces.Get().(*[]byte)
	*s.piece = (*s.piece)[:0]
	return nil
}

// send sends the piece.
func (s *stream) send() error {
	defer s.done()
	s.board.pace.owe(len(*s.piece) - s.cost)
	_ = s.rc.SetWriteDeadline(s.board.s.clk.Wall().Add(pieceLimit)) // where it can't be set there is none
	n, err := s.w.Write(*s.piece)
	s.board.sent.Add(int64(n))
	return err
}

// done gives the memory of the piece back.
func (s *stream) done() {
	if s.piece != nil {
		pieces.Put(s.piece)
		s.piece = nil
	}
}
