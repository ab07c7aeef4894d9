package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/wire"
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

// do sends body, if it isn't nil, and reads the answer into v, if that isn't. An answer that is a problem is its error.
func (c *caller) do(ctx context.Context, method, path string, body, v any, sequencer string) error {
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
	if sequencer != "" {
		req.Header.Set(fence.Header, sequencer)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	d := json.NewDecoder(resp.Body)
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		p := &wire.Problem{}
		if err := d.Decode(p); err != nil {
			return err
		}
		return p
	case v != nil:
		return d.Decode(v)
	}
	return nil
}
