package admiral

import (
	"io"
	"net/http"
	"sync"
)

// RoundTripper returns a transport that always passes requests that only read (GET, HEAD, OPTIONS,
// TRACE) to next. It passes every other request (POST, PUT, PATCH, DELETE) only while s is active.
// Otherwise it returns an error that matches [ErrReadOnly], and sends nothing. The context of a
// running write ends with the term.
//
// It works under any client that takes an http.RoundTripper, client-go's included
// (rest.Config.Wrap). next is http.DefaultTransport when nil.
func RoundTripper(s *State, next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &gated{s, next}
}

type gated struct {
	s    *State
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (g *gated) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return g.next.RoundTrip(req)
	}
	term, err := g.s.Guard(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // the contract of RoundTripper
		}
		return nil, err
	}
	ctx, done := term.Bind(req.Context())
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		done()
		if term.Check() != nil && req.Context().Err() == nil {
			err = &cutError{term.Check(), err}
		}
		return nil, err
	}
	resp.Body = bound(resp.Body, done)
	return resp, nil
}

// cutError says that a request was ended because the term did: the server may have done it.
type cutError struct{ term, request error }

func (e *cutError) Error() string {
	return "the term ended while the request was under way, which may have been carried out: " + e.term.Error() + ": " + e.request.Error()
}

// Unwrap returns both causes.
func (e *cutError) Unwrap() []error { return []error{e.term, e.request} }

// bound returns body, which ends the write when it is closed or has been read to its end. One that
// can be written to, of a connection that was upgraded, still can.
func bound(body io.ReadCloser, done func()) io.ReadCloser {
	b := &boundBody{ReadCloser: body, done: sync.OnceFunc(done)}
	if w, ok := body.(io.Writer); ok {
		return struct {
			*boundBody
			io.Writer
		}{b, w}
	}
	return b
}

type boundBody struct {
	io.ReadCloser
	done func()
}

// Read implements [io.Reader].
func (b *boundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

// Close implements [io.Closer].
func (b *boundBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
