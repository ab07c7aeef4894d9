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
	"github.com/leasehold/leasehold/internal/api"
)

const (
	// watchBytes is how many bytes a second all watchers together are sent of whole states, and as
	// many of changes: a crowd of them is told everything one after the other, while leases are
	// granted and renewed as ever.
	watchBytes = 32 << 20
	// doorRest is how long after a watcher the next one is let in, or less for a crowd so large
	// that not all would be in within a beat: to begin the streams of one that comes at once takes
	// a core for a while.
	doorRest = 4 * time.Millisecond
	// beat is how often a stream says that it lives, and how old what it says is.
	beat = 5 * time.Second
	// pieceSize is how much of a stream is sent at a time.
	pieceSize = 64 << 10
	// tellSize is what a telling of changes counts for at least: to wake a watcher and to write to
	// its connection costs as much.
	tellSize = 16 << 10
	// turnLimit is how long a client may take to accept a piece without losing its turn: it is
	// behind all others in the line then.
	turnLimit = 20 * time.Millisecond
	// pieceLimit is how long it may take at all: one that reads nothing is cut off.
	pieceLimit = 30 * time.Second
)

// pieces are buffers for what is about to be sent.
var pieces = sync.Pool{New: func() any { b := make([]byte, 0, pieceSize+4<<10); return &b }}

// watch sends server-sent events: "reset" and the state of every name and of the sessions that keep
// names, then each change as it comes, and every 5 s a "beat" with the age of what is known. A
// client that comes back with Last-Event-ID gets what it has missed.
func (s *Server) watch(c *call) (any, error) {
	prefix := c.r.URL.Query().Get("prefix")
	if err := c.may(Read, prefix+"*"); err != nil {
		return nil, err
	}
	leave, err := s.waiting.enter(c.payer)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.patience.lift()
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	if err := s.board.enter(ctx); err != nil {
		return nil, err
	}
	s.board.join()
	defer s.board.leave()
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	out := &stream{ctx: ctx, w: c.w, rc: http.NewResponseController(c.w), prefix: prefix, board: s.board, id: s.id}
	out.resume(c.r.Header.Get("Last-Event-ID"))
	out.run()
	_ = out.rc.SetWriteDeadline(time.Time{})
	return nil, errAnswered
}

// enter blocks until the watcher may come in: for a beat at most, since by then it is to hear
// something. Those who have gone before their turn keep nobody waiting.
func (b *board) enter(ctx context.Context) error {
	begun, turn := b.s.clk.Now(), b.door.join()
	timer := clock.NewTimer(b.s.clk, beat)
	defer timer.Stop()
	select {
	case <-turn.come:
		if ctx.Err() == nil {
			b.s.clk.AfterFunc(b.doorRest(beat-b.s.clk.Now().Sub(begun)), turn.end)
			return nil
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	turn.end()
	return context.Cause(ctx)
}

// doorRest is how long the next watcher waits, if those behind it have that long until they are let
// in at the latest: nine tenths of that are shared among them.
func (b *board) doorRest(left time.Duration) time.Duration {
	return min(doorRest, left*9/10/time.Duration(max(b.door.length(), 1)))
}

// stream is what one watcher has been sent.
type stream struct {
	ctx    context.Context //nolint:containedctx // done when the watcher has gone, or the server closes
	w      http.ResponseWriter
	rc     *http.ResponseController
	board  *board
	prefix string
	id     string // of this server: another one's changes are numbered otherwise
	seq    uint64 // of the last change that was told; 0 for nothing
	// Sessions that the watcher has been told of; nil when that is not to be told apart.
	keepers map[string]bool

	piece *[]byte       // what has yet to be sent; nil for nothing
	now   clock.Instant // when that was begun
	long  bool          // what is told takes more than a piece: only in turn
	turn  *turn         // nil for none
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
	if s.rc.Flush() != nil { // that it is heard, though it may be long before it is told anything
		return
	}
	n := s.board.news.Load()
	due := n.known()
	for {
		if due {
			var err error
			if n, err = s.tell(); err != nil || s.rc.Flush() != nil || s.rest() != nil {
				return
			}
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

// rest lets changes gather once some have been told. Each watcher does that in its own time: while
// there are changes all the time, they are not all woken at once.
func (s *stream) rest() error {
	return clock.Sleep(s.ctx, s.board.s.clk, min(time.Duration(s.board.watched())*boardRestEach, boardPoll))
}

// tell sends what is new, and a beat, when it is this watcher's turn: what has come until then is
// told, too. It returns what was told.
func (s *stream) tell() (n *news, err error) {
	defer s.yield()
	n = s.board.news.Load()
	if s.long = n.view != nil && !s.knows(n); s.long {
		err = s.await()
	} else {
		err = s.board.changes.take(s.ctx, tellSize)
	}
	if err != nil {
		return n, err
	}
	if later := s.board.news.Load(); later.known() && (s.long || later.view == nil || s.knows(later)) {
		n = later
	}
	if n.view != nil {
		if err := s.told(n); err != nil {
			return n, err
		}
	}
	return n, s.beat(n)
}

// knows reports whether the watcher has been told so much that changes are enough.
func (s *stream) knows(n *news) bool {
	_, known := n.after(s.seq)
	return known && s.seq != 0
}

// told tells what the watcher has not been told.
func (s *stream) told(n *news) (err error) {
	changes, _ := n.after(s.seq)
	reset := !s.knows(n)
	if s.prefix != "" && (reset || s.keepers == nil || len(s.keepers) > boardMemory) {
		s.keepers = n.keepers(s.prefix)
	}
	if reset {
		s.board.resets.Add(1)
		if err := s.begin(); err != nil {
			return err
		}
		*s.piece = append(*s.piece, "event: reset\ndata: {}\n\n"...)
		err = s.all(n)
		changes = nil
	}
	for _, i := range changes {
		s.meets(i)
	}
	for _, i := range changes {
		if err == nil && s.concerns(i) && !n.old(i) {
			err = s.event(i, true)
		}
	}
	s.seq = n.seq
	return err
}

// all tells everything: the names, and the sessions that keep them. It has no ids: who has heard a
// part of it has to hear all of it again.
func (s *stream) all(n *news) (err error) {
	since, _ := n.after(n.view.seq)
	// Those that have changed since the view; those that were told.
	sessions, told := map[string]*item{}, map[string]bool{}
	for _, i := range since {
		if i.session {
			sessions[i.key] = i
		}
	}
	tell := func(i *item) {
		if err == nil && (!i.gone || i.session) {
			err = s.event(i, false)
		}
	}
	for _, list := range [][]*item{n.view.under(s.prefix), since} {
		for _, i := range list {
			if i.session || n.old(i) || !strings.HasPrefix(i.key, s.prefix) {
				continue
			}
			if i.keeper != "" && !told[i.keeper] {
				told[i.keeper] = true
				if session := cmp.Or(sessions[i.keeper], n.view.sessions[i.keeper]); session != nil {
					tell(session)
				}
			}
			tell(i)
		}
	}
	return err
}

// meets notes the session that keeps a name of this watcher's.
func (s *stream) meets(i *item) {
	if s.prefix != "" && i.keeper != "" && strings.HasPrefix(i.key, s.prefix) {
		s.keepers[i.keeper] = true
	}
}

// concerns reports whether a change is to be told to this watcher.
func (s *stream) concerns(i *item) bool {
	if i.session {
		return s.prefix == "" || s.keepers[i.key]
	}
	return strings.HasPrefix(i.key, s.prefix)
}

// event adds an event to the piece, with an id or without, and sends the piece when it is large
// enough.
func (s *stream) event(i *item, id bool) error {
	if err := s.begin(); err != nil {
		return err
	}
	if id {
		s.appendID(i.seq)
	}
	*s.piece = i.appendTo(*s.piece, s.now)
	if len(*s.piece) < pieceSize {
		return nil
	}
	err := s.send()
	s.long = true
	return err
}

func (s *stream) appendID(seq uint64) {
	b := append(append(append(*s.piece, "id: "...), s.id...), ':')
	*s.piece = append(strconv.AppendUint(b, seq, 10), '\n')
}

// beat sends what there is, and that what was told is all there is to tell.
func (s *stream) beat(n *news) error {
	at := api.Freshness{Age: api.Seconds(s.board.s.clk.Now().Sub(n.at))}
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

// begin begins a piece, if there is none. Until it is its turn, a watcher has no memory for one.
func (s *stream) begin() error {
	if s.piece != nil {
		return nil
	}
	if s.long {
		if err := s.await(); err != nil {
			return err
		}
	}
	s.piece, s.now = pieces.Get().(*[]byte), s.board.s.clk.Now()
	*s.piece = (*s.piece)[:0]
	return nil
}

// send sends the piece. Whoever doesn't accept it soon loses the turn.
func (s *stream) send() error {
	defer s.done()
	if turn := s.turn; turn != nil {
		if err := s.board.whole.take(s.ctx, len(*s.piece)); err != nil {
			return err
		}
		stop := s.board.s.clk.AfterFunc(turnLimit, turn.end)
		defer func() {
			if !stop() {
				s.yield()
			}
		}()
	} else if more := len(*s.piece) - tellSize; more > 0 {
		if err := s.board.changes.take(s.ctx, more); err != nil {
			return err
		}
	}
	// Where it can't be set there is none.
	_ = s.rc.SetWriteDeadline(s.board.s.clk.Wall().Add(pieceLimit))
	n, err := s.w.Write(*s.piece)
	s.board.sent.Add(int64(n))
	return err
}

// await blocks until it is this watcher's turn to be told what takes more than a piece. Now and
// then it says that the stream lives.
func (s *stream) await() error {
	if s.turn == nil {
		s.turn = s.board.line.join()
	}
	for {
		timer := clock.NewTimer(s.board.s.clk, beat)
		select {
		case <-s.turn.come:
			timer.Stop()
			return nil
		case <-timer.C:
			_ = s.rc.SetWriteDeadline(s.board.s.clk.Wall().Add(pieceLimit))
			if _, err := s.w.Write([]byte(":\n\n")); err != nil {
				return err
			}
			if err := s.rc.Flush(); err != nil {
				return err
			}
		case <-s.ctx.Done():
			timer.Stop()
			return context.Cause(s.ctx)
		}
	}
}

// yield ends the turn, if there is one.
func (s *stream) yield() {
	if s.turn != nil {
		s.turn.end()
		s.turn = nil
	}
}

// done gives the memory of the piece back.
func (s *stream) done() {
	if s.piece != nil {
		pieces.Put(s.piece)
		s.piece = nil
	}
}
