package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/wire"
	"github.com/leasehold/leasehold/store"
)

// Options of [Open].
type Options struct {
	// HTTP sends the requests; its Transport has the TLS configuration. A client of its own by default. It must have no Timeout:
	// a Wait may take as long as its caller likes.
	HTTP *http.Client
	// Token, if set, is sent as a bearer token.
	Token string
}

// Store is the store of a lock server. It implements [store.Store] and [store.Waiter], and is safe for concurrent use.
type Store struct {
	base  *url.URL
	http  *http.Client
	own   bool // http is this store's
	token string
	props wire.Store

	ctx  context.Context // done when the store is closed
	stop context.CancelCauseFunc
	wg   sync.WaitGroup
	mu   sync.Mutex
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Waiter    = (*Store)(nil)
	_ store.Describer = (*Store)(nil)
)

// Open returns the store of the server at that URL, after asking it once what it promises. It blocks until the server has
// answered or ctx is done. Its errors say what to do about the URL, the token and the certificate.
func Open(ctx context.Context, base string, opts Options) (*Store, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("lock server %q: want its URL, such as https://locks.example.com", base)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	s := &Store{base: u, http: opts.HTTP, token: opts.Token}
	if s.http == nil {
		t, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			t = &http.Transport{Proxy: http.ProxyFromEnvironment}
		}
		t = t.Clone()
		t.MaxIdleConnsPerHost = 100
		s.http, s.own = &http.Client{Transport: t}, true
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	if _, err := s.ask(ctx, request{method: http.MethodGet, path: "/v1/store"}, &s.props); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("lock server %s: %w", u.Redacted(), advised(err))
	}
	return s, nil
}

// advised adds what to do.
func advised(err error) error {
	var p *wire.Problem
	if errors.As(err, &p) && p.Code == wire.CodeUnauthenticated {
		return fmt.Errorf("%w: give the token of a caller that its policy knows", err)
	}
	if errors.As(err, &p) && p.Code == wire.CodeForbidden {
		return fmt.Errorf(`%w: its policy has to allow the action "records" or "read"`, err)
	}
	return err
}

// Properties implements [store.Describer]: they are those of the store behind the server.
func (s *Store) Properties() store.Properties {
	return store.Properties{
		Engine: s.props.Engine + " over HTTP", Consistency: s.props.Consistency, Fencing: s.props.Fencing, Push: true,
		Age: s.props.Age, Guarantee: s.props.Guarantee, CheapRefusal: true,
	}
}

// Close implements [store.Store]. It waits for requests under way to return.
func (s *Store) Close() error {
	s.mu.Lock()
	s.stop(store.ErrClosed)
	s.mu.Unlock()
	s.wg.Wait()
	if s.own {
		s.http.CloseIdleConnections()
	}
	return nil
}

// request is one to the server.
type request struct {
	method, path string
	query        url.Values
	body         []byte
}

// sent is a failure of a request that may have been carried out.
type sent struct{ error }

func (e sent) Unwrap() error { return e.error }

// begin counts a request, or returns an error if none may be sent any more.
func (s *Store) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return store.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.wg.Add(1)
	return nil
}

// do sends a request. The caller closes the answer's body, and calls done after that.
func (s *Store) do(ctx context.Context, q request) (resp *http.Response, done func(), err error) {
	if err := s.begin(ctx); err != nil {
		return nil, nil, err
	}
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(s.ctx, func() { cancel(store.ErrClosed) })
	done = func() {
		unlink()
		cancel(nil)
		s.wg.Done()
	}
	var wrote atomic.Bool // set by the transport, which may go on when Do has returned
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, q.method, s.base.String()+q.path, bytes.NewReader(q.body))
	if err != nil {
		done()
		return nil, nil, err
	}
	req.URL.RawQuery = q.query.Encode()
	if q.method == http.MethodPut {
		req.GetBody = nil // so that it is never sent twice
		req.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err = s.http.Do(req)
	if err == nil {
		return resp, done, nil
	}
	err = s.why(caller, err)
	done()
	if wrote.Load() {
		err = sent{err}
	}
	return nil, nil, err
}

// why returns the reason of a failure: the store's closing, the end of the caller's context, or what the network said.
func (s *Store) why(ctx context.Context, err error) error {
	switch {
	case s.ctx.Err() != nil:
		return store.ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err // the URL may have a password
	}
	return err
}

// ask sends a request, and reads a JSON answer into v. It returns the status.
func (s *Store) ask(ctx context.Context, q request, v any) (int, error) {
	resp, done, err := s.do(ctx, q)
	if err != nil {
		return 0, err
	}
	defer done()
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return resp.StatusCode, sent{s.why(ctx, err)}
	}
	switch {
	case resp.StatusCode >= 400:
		return resp.StatusCode, problem(resp, text)
	case resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified:
		return resp.StatusCode, nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return resp.StatusCode, sent{fmt.Errorf("%s %s: no answer of a lock server: %.100q", q.method, q.path, text)}
	}
	return resp.StatusCode, nil
}

// problem is the error that an answer stands for. Only the server's own say that something was not done.
func problem(resp *http.Response, text []byte) error {
	var p wire.Problem
	if resp.Header.Get("Content-Type") == wire.ContentProblem && json.Unmarshal(text, &p) == nil && p.Code != "" {
		return p.Err()
	}
	return sent{fmt.Errorf("%s, and no answer of a lock server: %.100q", resp.Status, text)}
}

// write sends a write, whose outcome is unknown if the request may have been carried out.
func (s *Store) write(ctx context.Context, key string, q request, v any) error {
	_, err := s.ask(ctx, q, v)
	var failed sent
	if errors.As(err, &failed) {
		return store.Unknown(key, failed.error)
	}
	return err
}

// path returns the path of a record. Dots that a proxy might take for a step up are written otherwise.
func path(key string) string {
	segment := url.PathEscape(key)
	if strings.Trim(key, ".") == "" {
		segment = strings.ReplaceAll(key, ".", "%2E")
	}
	return "/v1/records/" + segment
}

// waitStep is how long one request of a Wait takes at most.
const waitStep = 50 * time.Second
