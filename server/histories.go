package server

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/incident"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store/driver"
)

// spanPage is how many spans an answer has unless the request says otherwise.
const spanPage = 1000

// reportSpans bounds what a report is made of.
const reportSpans = 50_000

// readJournal answers what became of names, to those who may read all names that are asked about.
func (s *Server) readJournal(c *call) (any, error) {
	query, err := s.journalQuery(c)
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	if q.Has("limit") {
		text := q.Get("limit")
		if query.Limit, err = strconv.Atoi(text); err != nil || query.Limit < 1 || query.Limit > maxPage {
			return nil, api.Invalid("limit", text, "a number from 1 to "+strconv.Itoa(maxPage))
		}
	}
	query.After = q.Get("after")
	page, err := s.findSpans(c, query)
	if err != nil {
		return nil, err
	}
	answer := api.Journal{Spans: make([]api.Span, 0, len(page.Spans)), Next: page.Next, From: page.From}
	for _, one := range page.Spans {
		answer.Spans = append(answer.Spans, shownSpan(one))
	}
	return answer, nil
}

// reportJournal answers the same as a report in Markdown.
func (s *Server) reportJournal(c *call) (any, error) {
	query, err := s.journalQuery(c)
	if err != nil {
		return nil, err
	}
	if query.Until.IsZero() {
		query.Until = s.clk.Wall()
	}
	if !query.Since.Before(query.Until) || query.Since.IsZero() {
		return nil, api.Invalid("since", c.r.URL.Query().Get("since"), "a time such as 2026-11-21T18:29:05Z, before the end of the report")
	}
	var spans []api.Span
	var from time.Time
	for query.Limit = maxPage; ; {
		page, err := s.findSpans(c, query)
		if err != nil {
			return nil, err
		}
		c.patience.extend(0)
		from = page.From
		for _, one := range page.Spans {
			spans = append(spans, shownSpan(one))
		}
		if query.After = page.Next; query.After == "" {
			break
		}
		// The last one of a page ended before all others.
		if len(spans) >= reportSpans {
			from = cmp.Or(spans[len(spans)-1].Until, query.Until)
			break
		}
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/markdown; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(http.StatusOK)
	// Whoever has gone needs no answer.
	_, _ = io.WriteString(c.w, incident.Report(spans, query.Since, query.Until, from))
	return nil, errAnswered
}

// journalQuery reads which spans are asked for.
func (s *Server) journalQuery(c *call) (query SpanQuery, err error) {
	q := c.r.URL.Query()
	query = SpanQuery{Name: q.Get("name"), Prefix: q.Get("prefix"), Holder: q.Get("holder"), Limit: spanPage}
	c.event.Name = query.Name
	about := query.Prefix + "*"
	switch {
	case query.Name != "" && q.Has("prefix"):
		return query, api.Invalid("prefix", query.Prefix, "name or prefix, not both")
	case query.Name != "":
		if keyspace.Reserved(query.Name) {
			return query, reserved(query.Name)
		}
		about = query.Name
	}
	if err := c.may(Read, about); err != nil {
		return query, err
	}
	if err := driver.CheckPrefix(query.Prefix + query.Name); err != nil {
		return query, err
	}
	for field, at := range map[string]*time.Time{"since": &query.Since, "until": &query.Until} {
		if text := q.Get(field); text != "" {
			if *at, err = time.Parse(time.RFC3339Nano, text); err != nil {
				return query, api.Invalid(field, text, "a time such as 2026-11-21T18:29:05Z")
			}
		}
	}
	if s.opts.Journal == nil {
		return query, api.NewProblem(api.CodeNoJournal, "this server keeps no journal: start it with --journal FILE; GET /v1/leases/{name}/history has the last 8 terms of a name")
	}
	return query, nil
}

// findSpans reads a page of the journal.
func (s *Server) findSpans(c *call, query SpanQuery) (SpanPage, error) {
	page, err := s.opts.Journal.Find(c.r.Context(), query)
	switch {
	case errors.As(err, new(*PlaceError)):
		return page, api.Invalid("after", query.After, "what the page before gave as next")
	case err != nil:
		return page, api.NewProblem(api.CodeNoAnswer, "%v", &JournalError{err})
	}
	return page, nil
}

func shownSpan(one Span) api.Span {
	return api.Span{
		Name: one.Name, Kind: api.SpanKind(one.Kind), Holder: one.Holder, Token: one.Token,
		From: one.From, Until: one.Until, Ended: one.Ended, Note: one.Note,
		NameKind: one.NameKind, Session: one.Session, Zone: one.Zone,
	}
}
