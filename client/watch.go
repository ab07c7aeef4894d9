package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
)

const (
	// silence is after how long without a word a stream is taken for dead: the server says
	// something every 5 s.
	silence = 15 * time.Second
	// maxLine bounds a line of a stream, in bytes.
	maxLine = 1 << 20
)

// Event is an event of a watch.
type Event struct {
	// Reset says that all earlier events are void. Every name comes again, and a name that doesn't
	// is gone.
	Reset bool
	// Lease is the state of a name now; nil in other events. Gone says that it has no record any
	// more.
	Lease *Lease
	Gone  bool
	// Session is the state of a session that keeps some of the names; nil in other events. Its
	// remaining time is that of each of its leases.
	Session *SessionState
	// Freshness is the age of what the watch has reported; nil in other events.
	Freshness *Freshness
}

// SessionState is how a session stands.
type SessionState struct {
	ID        string
	TTL       time.Duration
	ExpiresIn *time.Duration // unless it is renewed; nil when the store doesn't know
	Gone      bool           // it is over for good, and so are its holds
}

// Freshness is the age of what a watch has reported.
type Freshness struct {
	Age time.Duration // at the most
	Err string        // why the store couldn't be looked at; "" when it could
}

// Watch yields the state of every name that begins with prefix, and then each change as the server
// sees it. A server sees its own changes at once, and changes of others in its store within a
// second or so. States in between may be left out.
//
// Watch connects again when the stream breaks off, or has been silent for 15 s. It yields the error
// once, and the sequence continues where it was, or with a Reset. It ends with ctx, and after an
// error that another try would not change, such as [ErrForbidden].
func (c *Client) Watch(ctx context.Context, prefix string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := &watch{c: c, yield: yield}
		q := request{method: http.MethodGet, path: "/v1/watch", query: url.Values{"prefix": {prefix}}, header: http.Header{}}
		for pause := c.retry.MinPause; ; pause = min(2*pause, c.retry.MaxPause) {
			if w.last != "" {
				q.header["Last-Event-Id"] = []string{w.last}
			}
			err := w.stream(ctx, q)
			switch {
			case w.left || ctx.Err() != nil:
				return
			case w.heard:
				pause, w.heard = c.retry.MinPause, false
			}
			again := (unanswered(err) || passing(err)) && !stray(err) && c.ctx.Err() == nil
			if !yield(Event{}, fmt.Errorf("watch %q: %w", prefix, err)) || !again || clock.Sleep(ctx, c.clk, pause) != nil {
				return
			}
		}
	}
}

// watch is what has been heard.
type watch struct {
	c     *Client
	yield func(Event, error) bool
	last  string // id to go on after
	heard bool   // something, on this stream
	left  bool   // nobody wants more
}

// stream reads one stream until it ends, with an error.
func (w *watch) stream(ctx context.Context, q request) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := w.c.clk.AfterFunc
	stop := timer(silence, func() { cancel(errSilent) })
	defer func() { stop() }()
	resp, done, err := w.c.do(ctx, q)
	if err != nil {
		return err
	}
	defer done()
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxLine)) // what there is of it
		return problem(resp, text)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxLine)
	var m message
	for lines.Scan() {
		if stop(); ctx.Err() != nil {
			break
		}
		stop = timer(silence, func() { cancel(errSilent) })
		if !m.add(lines.Bytes()) {
			continue
		}
		if err := w.tell(m); err != nil || w.left {
			return err
		}
		m = message{}
	}
	err = lines.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return sent{error: w.c.why(ctx, err)}
}

var errSilent = errors.New("the server has said nothing for " + silence.String())

// message is one of a stream of server-sent events.
type message struct{ id, event, data string }

// add takes a line of it, and reports whether it was the last.
func (m *message) add(line []byte) bool {
	field, value, _ := bytes.Cut(line, []byte(":"))
	text := string(bytes.TrimPrefix(value, []byte(" ")))
	switch string(field) {
	case "id":
		m.id = text
	case "event":
		m.event = text
	case "data":
		m.data += text
	case "":
		return len(line) == 0 && m.event != ""
	}
	return false
}

// tell yields what a message says. What isn't known is left out: it may be of a later version.
func (w *watch) tell(m message) error {
	var e Event
	var err error
	switch m.event {
	case "reset":
		e.Reset = true
	case "lease":
		var said api.Event
		err = json.Unmarshal([]byte(m.data), &said)
		l := leaseOf(said.Lease)
		e.Lease, e.Gone = &l, said.Gone
	case "session":
		var said api.SessionEvent
		err = json.Unmarshal([]byte(m.data), &said)
		e.Session = &SessionState{ID: said.Session, TTL: time.Duration(said.TTL), ExpiresIn: (*time.Duration)(said.ExpiresIn), Gone: said.Gone}
	case "beat":
		var said api.Freshness
		err = json.Unmarshal([]byte(m.data), &said)
		e.Freshness = &Freshness{Age: time.Duration(said.Age), Err: said.Error}
	default:
		return nil
	}
	if err != nil {
		return sent{error: fmt.Errorf("an event %s: %w", m.event, err)}
	}
	w.heard = true
	if m.id != "" {
		w.last = m.id
	}
	w.left = !w.yield(e, nil)
	return nil
}
