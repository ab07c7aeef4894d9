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

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

// Options of [Open] and [New].
type Options struct {
	// HTTP sends the requests; its Transport has the TLS configuration. A client of its own by
	// default. It must have no Timeout: a wait may take as long as its caller likes.
	HTTP *http.Client
	// Token, if set, is sent as a bearer token.
	Token string
	// Retry bounds how a call of a [Client] is sent again. A [Store] leaves that to its caller.
	Retry Retry
	// Clock measures the validity of grants: [clock.System] by default.
	Clock clock.Clock
}

// conn sends requests to one server.
type conn struct {
	base  *url.URL
	http  *http.Client
	own   bool // http is this one's
	token string
	retry Retry
	clk   clock.Clock

	ctx  context.Context // done when it is closed
	stop context.CancelCauseFunc
	wg   sync.WaitGroup
	mu   sync.Mutex
}

func newConn(base string, opts Options) (*conn, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("lock server %q: want its URL, such as https://locks.example.com", base)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	retry, err := opts.Retry.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &conn{base: u, http: opts.HTTP, token: opts.Token, retry: retry, clk: opts.Clock}
	if c.clk == nil {
		c.clk = clock.System()
	}
	if c.http == nil {
		t, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			t = &http.Transport{Proxy: http.ProxyFromEnvironment}
		}
		t = t.Clone()
		t.MaxIdleConnsPerHost = 100
		c.http, c.own = &http.Client{Transport: t}, true
	}
	c.ctx, c.stop = context.WithCancelCause(context.Background())
	return c, nil
}

// close ends the requests under way, and waits for them to return.
func (c *conn) close() {
	c.mu.Lock()
	c.stop(store.ErrClosed)
	c.mu.Unlock()
	c.wg.Wait()
	if c.own {
		c.http.CloseIdleConnections()
	}
}

// request is one to the server.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         []byte
}

// sent is a failure of a request that may have been carried out.
type sent struct {
	error
	stray bool // what answered is no lock server, nor something in front of one that may do better
}

func (e sent) Unwrap() error { return e.error }

// begin counts a request, or returns an error if none may be sent any more.
func (c *conn) begin(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return store.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.wg.Add(1)
	return nil
}

// do sends a request. The caller closes the answer's body, and calls done after that.
func (c *conn) do(ctx context.Context, q request) (resp *http.Response, done func(), err error) {
	if err := c.begin(ctx); err != nil {
		return nil, nil, err
	}
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(c.ctx, func() { cancel(store.ErrClosed) })
	done = func() {
		unlink()
		cancel(nil)
		c.wg.Done()
	}
	var wrote atomic.Bool // set by the transport, which may go on when Do has returned
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, q.method, c.base.String()+q.path, bytes.NewReader(q.body))
	if err != nil {
		done()
		return nil, nil, err
	}
	req.URL.RawQuery = q.query.Encode()
	for name, values := range q.header {
		req.Header[name] = values
	}
	if q.method != http.MethodGet {
		req.GetBody = nil // so that it is never sent twice
	}
	if len(q.body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err = c.http.Do(req)
	if err == nil {
		return resp, done, nil
	}
	err = c.why(caller, err)
	done()
	if wrote.Load() {
		err = sent{error: err}
	}
	return nil, nil, err
}

// why returns the reason of a failure: the closing, the end of the caller's context, or what the
// network said.
func (c *conn) why(ctx context.Context, err error) error {
	switch {
	case c.ctx.Err() != nil:
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

// maxAnswer bounds what is read of one answer, in bytes.
const maxAnswer = 64 << 20

// ask sends a request, and reads a JSON answer into v. It returns the status.
func (c *conn) ask(ctx context.Context, q request, v any) (int, error) {
	resp, done, err := c.do(ctx, q)
	if err != nil {
		return 0, err
	}
	defer done()
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return resp.StatusCode, sent{error: c.why(ctx, err)}
	}
	switch {
	case resp.StatusCode >= 400:
		return resp.StatusCode, problem(resp, text)
	case resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified:
		return resp.StatusCode, nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return resp.StatusCode, sent{fmt.Errorf("%s %s: no answer of a lock server: %.100q", q.method, q.path, text), true}
	}
	return resp.StatusCode, nil
}

// problem is the error that an answer stands for. Only the server's own say that something was not
// done.
func problem(resp *http.Response, text []byte) error {
	var p api.Problem
	if resp.Header.Get("Content-Type") == api.ContentProblem && json.Unmarshal(text, &p) == nil && p.Code != "" {
		return p.Err()
	}
	passing := resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout
	return sent{fmt.Errorf("%s, and no answer of a lock server: %.100q", resp.Status, text), !passing}
}

// segment writes a name as one segment of a path. Dots that a proxy might take for a step up are
// written otherwise.
func segment(name string) string {
	if strings.Trim(name, ".") == "" {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
