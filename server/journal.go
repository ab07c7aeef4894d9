package server

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

// Journal keeps what became of names, for longer than their records do: see [Options.Journal]. The
// server calls it from one goroutine at a time, but for Find, which may be called at any time. A
// journal that fails stops no request, and slows none down: the server says so in /readyz, by a
// metric and to [Options.OnJournal], tries again every 5 s, and then fills in from the records the
// last 8 terms of each name.
type Journal interface {
	// Standing returns the spans without an end, to continue with. After an error of Note it is
	// called before Note is called again. It blocks until they are read.
	Standing(ctx context.Context) ([]Span, error)
	// Note keeps spans, all of them or none. A span replaces the one with the same Name, Kind and
	// Token, and, unless it is a term or a share, the same From; what was known before of NameKind,
	// Session and Zone stays where it says nothing. Without spans it is called, too,
	// about once a second: the journal may look after itself. It blocks until they are kept.
	Note(ctx context.Context, spans []Span) error
	// Find returns spans. It blocks until they are read.
	Find(ctx context.Context, q SpanQuery) (SpanPage, error)
}

// SpanKind is what a span is about.
type SpanKind string

// The kinds of spans. The times of a term are those of the record, by the clocks of holders, and so
// is the beginning of a pause. The others are when the server saw it.
const (
	SpanTerm    = SpanKind(api.SpanTerm)    // a term of ownership
	SpanShare   = SpanKind(api.SpanShare)   // a share of a read/write lock or a semaphore
	SpanExpired = SpanKind(api.SpanExpired) // the holder had shown no sign of life for its TTL
	// An operator had ended the hold, and the holder hadn't let go.
	SpanBroken  = SpanKind(api.SpanBroken)
	SpanHanded  = SpanKind(api.SpanHanded)  // the name was handed over, and not yet taken
	SpanPaused  = SpanKind(api.SpanPaused)  // the election was paused
	SpanWaiting = SpanKind(api.SpanWaiting) // requests waited at this server
)

// Span is what a name was for a time.
type Span struct {
	Name   string
	Kind   SpanKind
	Holder string      // the holder's id; of a pause, who paused
	Token  fence.Token // of the term or the share; 0 where there is none
	From   time.Time
	Until  time.Time // zero while it lasts
	Ended  string    // why it ended, if that is known
	Note   string    // who intervened and why

	NameKind store.Kind // what the name was; "" for a lease, or when that isn't known
	// The id of the session that kept the term or the share; "" if none is known.
	Session string
	// Where the holder ran: what it says as a candidate, else by zone or region in its info; "" if
	// that isn't known. Of a term that began and ended between two looks, neither is known.
	Zone string
}

// SpanQuery says which spans [Journal.Find] returns.
type SpanQuery struct {
	Since, Until time.Time // spans that lasted at some time between; zero for no bound
	Name         string    // of that name; "" for any
	Prefix       string    // of names that begin so
	// Of that holder: its id, or what comes before the last slash of it; "" for any.
	Holder string
	Limit  int    // at most so many, and fewer if many others had to be passed over
	After  string // Next of the page before; "" for the first one
}

// SpanPage is a page of spans: those without an end first, then those that ended last.
type SpanPage struct {
	Spans []Span
	Next  string    // what continues; "" when there is no more
	From  time.Time // from when on the journal is complete: when it was begun, or what was swept
}

// JournalError is an error of a [Journal], in words for an operator.
type JournalError struct{ Err error }

// Error implements error.
func (e *JournalError) Error() string { return "the journal is not kept: " + e.Err.Error() }

// Unwrap returns what the journal said.
func (e *JournalError) Unwrap() error { return e.Err }

// PlaceError is the error of [Journal.Find] for an After that no page had.
type PlaceError struct{ After string }

// Error implements error.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("after %.80q: want what the page before gave as next", e.After)
}
