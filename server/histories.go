package server

import (
	"errors"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store/driver"
)

// spanPage is how many spans an answer has unless the request says otherwise.
const spanPage = 1000

// readJournal answers what became of names, to those who may read all names that are asked about.
func (s *Server) readJournal(c *call) (any, error) {
	q := c.r.URL.Query()
	query := SpanQuery{Name: q.Get("name"), Prefix: q.Get("prefix"), Holder: q.Get("holder"), After: q.Get("after"), Limit: spanPage}
	c.event.Name = query.Name
	about := query.Prefix + "*"
	switch {
	case query.Name != "" && q.Has("prefix"):
		return nil, api.Invalid("prefix", query.Prefix, "name or prefix, not both")
	case query.Name != "":
		if keyspace.Reserved(query.Name) {
			return nil, reserved(query.Name)
		}
		about = query.Name
	}
	if err := c.may(Read, about); err != nil {
		return nil, err
	}
	if err := driver.CheckPrefix(query.Prefix + query.Name); err != nil {
		return nil, err
	}
	if q.Has("limit") {
		var err error
		text := q.Get("limit")
		if query.Limit, err = strconv.Atoi(text); err != nil || query.Limit < 1 || query.Limit > maxPage {
			return nil, api.Invalid("limit", text, "a number from 1 to "+strconv.Itoa(maxPage))
		}
	}
	for field, at := range map[string]*time.Time{"since": &query.Since, "until": &query.Until} {
		if text := q.Get(field); text != "" {
			var err error
			if *at, err = time.Parse(time.RFC3339Nano, text); err != nil {
				return nil, api.Invalid(field, text, "a time such as 2026-11-21T18:29:05Z")
			}
		}
	}
	if s.opts.Journal == nil {
		return nil, api.NewProblem(api.CodeNoJournal, "this server keeps no journal: start it with --journal FILE; GET /v1/leases/{name}/history has the last 8 terms of a name")
	}
	page, err := s.opts.Journal.Find(c.r.Context(), query)
	switch {
	case errors.As(err, new(*PlaceError)):
		return nil, api.Invalid("after", query.After, "what the page before gave as next")
	case err != nil:
		return nil, api.NewProblem(api.CodeNoAnswer, "%v", &JournalError{err})
	}
	answer := api.Journal{Spans: make([]api.Span, 0, len(page.Spans)), Next: page.Next, From: page.From}
	for _, one := range page.Spans {
		answer.Spans = append(answer.Spans, api.Span{
			Name: one.Name, Kind: api.SpanKind(one.Kind), Holder: one.Holder, Token: one.Token,
			From: one.From, Until: one.Until, Ended: one.Ended, Note: one.Note,
		})
	}
	return answer, nil
}
