package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

// SpanKind is what a [Span] is about.
type SpanKind string

// The kinds of spans.
const (
	SpanTerm    = SpanKind(api.SpanTerm)    // a term of ownership
	SpanShare   = SpanKind(api.SpanShare)   // a share of a read/write lock or a semaphore
	SpanExpired = SpanKind(api.SpanExpired) // the holder had shown no sign of life for its TTL
	// An operator had ended the hold, and the holder hadn't let go.
	SpanBroken  = SpanKind(api.SpanBroken)
	SpanHanded  = SpanKind(api.SpanHanded)  // the name was handed over, and not yet taken
	SpanPaused  = SpanKind(api.SpanPaused)  // the election was paused
	SpanWaiting = SpanKind(api.SpanWaiting) // requests waited at the server
)

// Span is what a name was for a time. The times of a term and the beginning of a pause are by the
// wall clocks of their writers; the others are when the server saw it.
type Span struct {
	Name   string
	Kind   SpanKind
	Holder string      // the holder's id; of a pause, who paused
	Token  fence.Token // of the term or the share; 0 where there is none
	From   time.Time
	Until  time.Time // zero while it lasts
	Ended  string    // why it ended, if that is known
	Note   string    // who intervened, and why

	NameKind store.Kind // what the name was; "" for a lease, or when that isn't known
	// The id of the session that kept the term or the share; "" if none is known.
	Session string
	Zone    string // where the holder ran, as it said itself; "" if it didn't
}

// JournalQuery says which spans [Client.Journal] yields.
type JournalQuery struct {
	Since, Until time.Time // spans that lasted at some time between; zero for no bound
	Name         string    // of that name; "" for any
	Prefix       string    // of names that begin so; only without a Name
	// Of that holder: its id, or what comes before the last slash of it; "" for any.
	Holder string
	// OnFrom, if set, is called with each answer of the server: from when on its journal is
	// complete.
	OnFrom func(time.Time)
}

// ErrNoJournal says that the server keeps no journal.
var ErrNoJournal = api.ErrNoJournal

// Journal yields what became of names, from the server's journal: spans without an end first, then
// those that ended last. After an error the sequence ends. The error matches [ErrNoJournal] when
// the server keeps none, and [ErrForbidden] when the caller may not read all the names that are
// asked about.
func (c *conn) Journal(ctx context.Context, q JournalQuery) iter.Seq2[Span, error] {
	query := url.Values{"limit": {strconv.Itoa(listPage)}}
	for name, text := range map[string]string{"name": q.Name, "prefix": q.Prefix, "holder": q.Holder, "since": stamp(q.Since), "until": stamp(q.Until)} {
		if text != "" {
			query.Set(name, text)
		}
	}
	return func(yield func(Span, error) bool) {
		for query.Del("after"); ; {
			var page api.Journal
			if err := c.read(ctx, "history", "/v1/history", query, &page); err != nil {
				yield(Span{}, err)
				return
			}
			if q.OnFrom != nil {
				q.OnFrom(page.From)
			}
			for _, s := range page.Spans {
				if !yield(spanOf(s), nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("after", page.Next)
		}
	}
}

func spanOf(s api.Span) Span {
	return Span{
		Name: s.Name, Kind: SpanKind(s.Kind), Holder: s.Holder, Token: s.Token, From: s.From, Until: s.Until, Ended: s.Ended, Note: s.Note,
		NameKind: s.NameKind, Session: s.Session, Zone: s.Zone,
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
