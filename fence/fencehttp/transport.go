package fencehttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/leasehold/leasehold/fence"
)

// Transport returns a RoundTripper that sends the sequencer with every request, through base or
// [http.DefaultTransport]. It calls sequencer before each request. If that returns an error, such
// as that of a lost lease, the request returns it and nothing is sent. A 412 whose body is a
// guard's refusal is returned as a *[fence.StaleError].
func Transport(base http.RoundTripper, sequencer func() (string, error)) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base, sequencer}
}

type transport struct {
	base      http.RoundTripper
	sequencer func() (string, error)
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := t.sequencer()
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, fmt.Errorf("not sent: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set(fence.Header, text)
	resp, err := t.base.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusPreconditionFailed {
		return resp, err
	}
	return stale(resp)
}

// maxRefusal bounds what is read of an answer to see whether it is a refusal.
const maxRefusal = 8 << 10

// stale returns the error of a guard's refusal, or the answer as it is when it is another 412.
func stale(resp *http.Response) (*http.Response, error) {
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return resp, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	var body staleRefusal
	if err != nil || json.Unmarshal(text, &body) != nil || body.Error != codeStale {
		resp.Body = rest{io.MultiReader(bytes.NewReader(text), resp.Body), resp.Body}
		return resp, nil
	}
	_ = resp.Body.Close() // it was read
	return nil, &fence.StaleError{Name: body.Name, Got: body.Got, Current: body.Current, Holder: body.Holder}
}

// rest is a body of which a part was read already.
type rest struct {
	io.Reader
	io.Closer
}
