package shardhttp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/leasehold/leasehold/internal/shardcall"
	"github.com/leasehold/leasehold/shard"
)

// ErrNoKey is the error for a request without a key, or with several. Nothing was sent.
var ErrNoKey = errors.New("the request has no key, or several: set one in the header " + KeyHeader)

// Transport returns a RoundTripper that sends each request to the worker that owns its key, through
// base or [http.DefaultTransport]. The request's URL says all but the host; its Host header stays.
//
// While nobody owns the key, RoundTrip waits for an owner, by the router's push, for Options.Wait.
// The transport sends the request again, if its body can be had again, only when a worker has
// refused it with 421, or when no connection to the worker could be made: at once where the key has
// another owner, and else within Options.Wait, when the router hears of another owner, or from time
// to time. Then the last answer stands. A request whose key nobody owns by then returns an error
// that matches [shard.ErrWrongOwner], and so does one whose name isn't in the space. Nothing was
// sent.
func Transport(base http.RoundTripper, router *shard.Router, opts Options) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base, router, opts}
}

// maxRefusal is how many bytes are read of an answer that is dropped.
const maxRefusal = 8 << 10

type transport struct {
	base   http.RoundTripper
	router *shard.Router
	opts   Options
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	call := &shardcall.Call{Router: t.router, Key: t.opts.key(r), Wait: t.opts.Wait}
	defer call.End()
	route, err := shard.Route{}, ErrNoKey
	if call.Key != "" {
		route, err = call.First(r.Context())
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, fmt.Errorf("not sent: %w", err)
	}
	again := to(r, route.Address)
	for {
		resp, err := t.base.RoundTrip(again)
		if !refused(resp, err) || r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
			return resp, err
		}
		named := ""
		if resp != nil {
			named = resp.Header.Get(OwnerHeader)
		}
		var ok bool
		if route, ok = call.Next(r.Context(), route, named); !ok {
			return resp, err
		}
		again = to(r, route.Address)
		if r.Body != nil && r.Body != http.NoBody {
			body, failed := r.GetBody()
			if failed != nil {
				return resp, err
			}
			again.Body = body
		}
		if resp != nil {
			// The connection can be used again.
			_, _ = io.CopyN(io.Discard, resp.Body, maxRefusal)
			_ = resp.Body.Close()
		}
	}
}

// refused reports whether a worker has certainly not carried a request out, and another one may.
func refused(resp *http.Response, err error) bool {
	if err != nil {
		var dial *net.OpError
		return errors.As(err, &dial) && dial.Op == "dial"
	}
	return resp.StatusCode == http.StatusMisdirectedRequest && resp.Header.Values(OwnerHeader) != nil
}

// to returns the request as it is sent to a worker.
func to(r *http.Request, address string) *http.Request {
	n := r.Clone(r.Context())
	if n.Host == "" {
		n.Host = r.URL.Host
	}
	n.URL.Host = address
	return n
}
