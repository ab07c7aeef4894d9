package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/enginekit/outcome"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Store is the store of a lock server. It implements [store.Store] and [store.Waiter], and is safe
// for concurrent use.
type Store struct {
	*conn
	props api.Store
	// Where a read doesn't settle them: the server that answers next may not be the one that wrote.
	doubts outcome.Writes
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Waiter    = (*Store)(nil)
	_ store.Describer = (*Store)(nil)
	_ store.Confirmer = (*Store)(nil)
)

// Open returns the store of the server at that URL. It first asks the server for the store's
// properties, and blocks until the server has answered or ctx is done. Its errors say what to do
// about the URL, the token and the certificate.
func Open(ctx context.Context, base string, opts Options) (*Store, error) {
	c, err := newConn(base, opts)
	if err != nil {
		return nil, err
	}
	s := &Store{conn: c}
	if _, err := s.ask(ctx, request{method: http.MethodGet, path: "/v1/store"}, &s.props); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("lock server %s: %w", c.base.Redacted(), advised(err))
	}
	return s, nil
}

// advised adds what to do.
func advised(err error) error {
	var p *api.Problem
	if errors.As(err, &p) && p.Code == api.CodeUnauthenticated {
		return fmt.Errorf("%w: give the token of a caller that its policy knows", err)
	}
	if errors.As(err, &p) && p.Code == api.CodeForbidden {
		return fmt.Errorf(`%w: its policy has to allow the action "records" or "read"`, err)
	}
	return err
}

// Properties implements [store.Describer]. It returns the properties of the store behind the
// server.
func (s *Store) Properties() store.Properties {
	return store.Properties{
		Engine: s.props.Engine + " over HTTP", Consistency: s.props.Consistency, Fencing: s.props.Fencing, Push: true,
		Read: s.props.Read, Settle: s.props.Settle,
		Age: s.props.Age, Guarantee: s.props.Guarantee, CheapRefusal: true, OverHTTP: true,
	}
}

// Close implements [store.Store]. It blocks until running requests return.
func (s *Store) Close() error {
	s.close()
	return nil
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := s.get(ctx, key, nil)
	return s.sure(ctx, key, rec, err)
}

// Confirm implements [store.Confirmer]: the server confirms.
func (s *Store) Confirm(ctx context.Context, key string) (store.Record, error) {
	rec, err := s.get(ctx, key, url.Values{"confirm": {"true"}})
	if err == nil || errors.Is(err, store.ErrNotFound) {
		s.doubts.Confirmed(key, rec.Nonce)
	}
	return rec, err
}

// sure returns what a read brought, or what the server confirms where that shows a write whose
// outcome is unknown.
func (s *Store) sure(ctx context.Context, key string, rec store.Record, err error) (store.Record, error) {
	if (err == nil || errors.Is(err, store.ErrNotFound)) && s.props.Settle == store.SettledByWrite && s.doubts.Shows(key, rec.Nonce) {
		return s.Confirm(ctx, key)
	}
	return rec, err
}

func (s *Store) get(ctx context.Context, key string, query url.Values) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	var line api.RecordLine
	if _, err := s.ask(ctx, request{method: http.MethodGet, path: path(key), query: query}, &line); err != nil {
		return store.Record{}, named(key, err)
	}
	return line.Rec()
}

// named adds the key to an error that doesn't say it.
func named(key string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return driver.NotFound(key)
	}
	return fmt.Errorf("%s: %w", key, err)
}

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	text, err := driver.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	q := request{method: http.MethodPut, path: path(rec.Key), query: url.Values{"version": {rec.Version}}, body: text}
	var line api.RecordLine
	if err := s.write(ctx, rec.Key, rec.Nonce, q, &line); err != nil {
		return store.Record{}, err
	}
	put, err := line.Rec()
	// What landed then has no owner and no kind: nobody holds a share by it.
	if err == nil && rec.Kind.Shared() && put.Kind != rec.Kind {
		return store.Record{}, &store.InvalidError{
			Field: "Kind", Value: string(rec.Kind),
			Want: fmt.Sprintf("a lock server that keeps what a name is; the version at %s does not: upgrade the server before its callers", s.base.Redacted()),
		}
	}
	return put, err
}

// refused is the error of a write.
func (s *Store) refused(ctx context.Context, key, nonce string, err error) error {
	var conflict *store.ConflictError
	switch {
	case errors.Is(err, store.ErrUnknownOutcome):
		s.doubts.Unknown(key, nonce)
		return err
	case errors.As(err, &conflict):
		sure, err := s.sure(ctx, key, conflict.Current, nil)
		if err != nil && !errors.Is(err, store.ErrNotFound) { // the record may show this very write
			return driver.Unknown(key, err)
		}
		if err != nil {
			return err
		}
		return &store.ConflictError{Current: sure}
	case errors.Is(err, store.ErrNotFound):
		if _, err := s.sure(ctx, key, store.Record{}, named(key, err)); !errors.Is(err, store.ErrNotFound) {
			return driver.Unknown(key, errors.Join(errGone, err))
		}
	}
	return named(key, err)
}

// errGone says that a write was refused since there was no record, which the store didn't confirm.
var errGone = errors.New("whether the record is gone isn't certain")

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	q := request{method: http.MethodDelete, path: path(key), query: url.Values{"version": {version}}}
	return s.write(ctx, key, "", q, nil)
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := driver.CheckPrefix(prefix); err != nil {
			yield(store.Record{}, err)
			return
		}
		resp, done, err := s.do(ctx, request{method: http.MethodGet, path: "/v1/records", query: url.Values{"prefix": {prefix}}})
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		defer done()
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // what there is of it
			yield(store.Record{}, problem(resp, text))
			return
		}
		s.lines(ctx, json.NewDecoder(resp.Body), yield)
	}
}

// lines yields the records of a list, until its last line.
func (s *Store) lines(ctx context.Context, d *json.Decoder, yield func(store.Record, error) bool) {
	for {
		var line api.RecordLine
		if err := d.Decode(&line); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // the last line is missing
			}
			yield(store.Record{}, s.why(ctx, err))
			return
		}
		switch {
		case line.End:
			return
		case line.Problem != nil:
			if err := line.Problem.Err(); !yield(store.Record{}, err) || !errors.Is(err, store.ErrCorrupt) {
				return
			}
		default:
			if !yield(line.Rec()) {
				return
			}
		}
	}
}

// Wait implements [store.Waiter].
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	query := url.Values{"version": {version}, "wait": {strconv.FormatFloat(waitStep.Seconds(), 'f', -1, 64)}}
	for {
		var line api.RecordLine
		status, err := s.ask(ctx, request{method: http.MethodGet, path: path(key), query: query}, &line)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return store.Record{Key: key}, nil
		case err != nil:
			return store.Record{}, named(key, err)
		case status != http.StatusNotModified:
			rec, err := line.Rec()
			return s.sure(ctx, key, rec, err)
		}
	}
}

// write sends a write, whose outcome is unknown if the request may have been carried out.
func (s *Store) write(ctx context.Context, key, nonce string, q request, v any) error {
	defer s.doubts.Begin(key, "", nonce)()
	since := s.doubts.Now()
	_, err := s.ask(ctx, q, v)
	var failed sent
	switch {
	case err == nil:
		s.doubts.Done(key, since)
		return nil
	case errors.As(err, &failed):
		err = driver.Unknown(key, failed.error)
	}
	return s.refused(ctx, key, nonce, err)
}

// path returns the path of a record.
func path(key string) string { return "/v1/records/" + segment(key) }

// waitStep is how long one request of a Wait takes at most.
const waitStep = 50 * time.Second
