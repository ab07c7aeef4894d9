package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
)

// caller asks a server.
type caller struct {
	base string
	http *http.Client
}

func newCaller(base string) *caller {
	return &caller{strings.TrimSuffix(base, "/"), &http.Client{Transport: &http.Transport{}}}
}

func (c *caller) close() { c.http.CloseIdleConnections() }

// path is where a name is.
func path(name string) string { return "/v1/leases/" + url.PathEscape(name) }

// proofOf is what a request proves a term by, or a session, which has no sequencer.
func proofOf(sequencer, secret string) http.Header {
	h := http.Header{}
	h.Set(api.HeaderSecret, secret)
	if sequencer != "" {
		h.Set(fence.Header, sequencer)
	}
	return h
}

// do sends body, if it isn't nil, in the name of a holder if it has a proof, and reads the answer
// into v, if that isn't. An answer that is a problem is its error.
func (c *caller) do(ctx context.Context, method, path string, body, v any, proof http.Header) error {
	text := []byte{}
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	maps.Copy(req.Header, proof)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	d := json.NewDecoder(resp.Body)
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		p := &api.Problem{}
		if err := d.Decode(p); err != nil {
			return err
		}
		return p
	case v != nil:
		return d.Decode(v)
	}
	return nil
}
