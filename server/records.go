package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Records are the store itself, over HTTP: what package client makes a store of. A record's version
// is its ETag, and what a write has to match.

// contentLines is the content type of a list of records.
const contentLines = "application/x-ndjson"

// recordPage is how many records a list sends before it flushes them.
const recordPage = 256

func (s *Server) key(c *call) (string, error) {
	key := c.r.PathValue("key")
	c.event.Name = key
	if err := c.may(Records, key); err != nil {
		return "", err
	}
	return key, driver.CheckKey(key)
}

// getRecord reads a record. With the parameters version and wait it waits until the record has
// another version, for so long at most, and then answers 304. With the parameter confirm the read
// is durable.
func (s *Server) getRecord(c *call) (any, error) {
	key, err := s.key(c)
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	if !q.Has("wait") {
		st := s.st
		if q.Get("confirm") == "true" {
			st = store.Confirmed(st)
		}
		rec, err := st.Get(c.r.Context(), key)
		if err != nil {
			return nil, err
		}
		return nil, sendRecord(c, rec)
	}
	wait, err := api.ParseSeconds(q.Get("wait"))
	if err != nil || wait < 0 || time.Duration(wait) > s.opts.MaxWait {
		return nil, api.Invalid("wait", q.Get("wait"), "how many seconds to wait, "+s.opts.MaxWait.String()+" at most")
	}
	c.patience.extend(time.Duration(wait))
	ctx, cancel := s.until(c.r.Context(), time.Duration(wait))
	defer cancel()
	rec, err := store.Wait(ctx, s.st, key, q.Get("version"))
	switch {
	case err != nil && ctx.Err() != nil && c.r.Context().Err() == nil:
		c.w.WriteHeader(http.StatusNotModified)
		return nil, errAnswered
	case err != nil:
		return nil, err
	case rec.Version == "":
		return nil, driver.NotFound(key)
	}
	return nil, sendRecord(c, rec)
}

// until returns a context that ends with the request, with the server, and after d.
func (s *Server) until(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := clock.WithTimeout(ctx, s.clk, d)
	unlink := context.AfterFunc(s.closing, cancel)
	return ctx, func() { unlink(); cancel() }
}

func (s *Server) putRecord(c *call) (any, error) {
	key, err := s.key(c)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(c.r.Body)
	c.patience.extend(0) // what the client takes is not the store's
	if err != nil {
		return nil, c.unread(err, nil)
	}
	rec, err := driver.Unmarshal(text)
	if err != nil {
		return nil, api.NewProblem(api.CodeInvalid, "body: %v", err)
	}
	rec.Key, rec.Version = key, c.r.URL.Query().Get("version")
	if rec, err = s.st.Put(c.r.Context(), rec); err != nil {
		return nil, err
	}
	return nil, sendRecord(c, rec)
}

func (s *Server) deleteRecord(c *call) (any, error) {
	key, err := s.key(c)
	if err != nil {
		return nil, err
	}
	return nil, s.st.Delete(c.r.Context(), key, c.r.URL.Query().Get("version"))
}

// listRecords sends all records of a prefix, one JSON object a line, and at last {"end":true}:
// without it the list is not complete.
func (s *Server) listRecords(c *call) (any, error) {
	prefix := c.r.URL.Query().Get("prefix")
	if err := c.may(Records, prefix+"*"); err != nil {
		return nil, err
	}
	if err := driver.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	out := json.NewEncoder(c.w)
	sent := 0
	for rec, err := range s.st.List(c.r.Context(), prefix) {
		if err != nil && sent == 0 && !errors.Is(err, store.ErrCorrupt) {
			return nil, err
		}
		var line api.RecordLine
		if err == nil {
			line, err = api.NewRecordLine(rec)
		}
		if err != nil {
			line = api.RecordLine{Problem: s.problem(err)}
		}
		c.w.Header().Set("Content-Type", contentLines)
		if out.Encode(line) != nil || err != nil && !errors.Is(err, store.ErrCorrupt) {
			return nil, errAnswered
		}
		if sent++; sent%many == 0 {
			heard(c.r.Context())
		}
		if sent%recordPage == 0 {
			_ = http.NewResponseController(c.w).Flush()
		}
	}
	c.w.Header().Set("Content-Type", contentLines)
	_ = out.Encode(api.RecordLine{End: true})
	return nil, errAnswered
}

// describe says what the store promises.
func (s *Server) describe(*call) (any, error) {
	p := store.Describe(s.st)
	return api.Store{
		Engine: p.Engine, Consistency: p.Consistency, Fencing: p.Fencing, Read: p.Read, Settle: p.Settle, Age: p.Age, Guarantee: p.Guarantee,
		Journal: s.opts.Journal != nil,
	}, nil
}

func sendRecord(c *call, rec store.Record) error {
	line, err := api.NewRecordLine(rec)
	if err != nil {
		return err
	}
	reply(c.w, http.StatusOK, line)
	return errAnswered
}
