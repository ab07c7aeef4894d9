package fencehttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/leasehold/leasehold/fence"
)

// Options of a [Handler].
type Options struct {
	// Keys, if set, verify sequencers: one without a signature of theirs is refused.
	Keys fence.Keys

	// Open says which requests need no sequencer: those that change nothing, GET, HEAD and OPTIONS, when it is nil. One
	// that bears a sequencer is checked all the same.
	Open func(*http.Request) bool
}

// The codes of refusals, in the field "error".
const (
	codeStale     = "stale_token"       // 412
	codeMissing   = "sequencer_missing" // 428
	codeMalformed = "sequencer_invalid" // 400
	codeForged    = "sequencer_forged"  // 403
	codeUnknown   = "guard_unavailable" // 503: whether the term is current can't be told
)

// refusal is the body of an answer that refuses a request.
type refusal struct {
	Error   string      `json:"error"`
	Name    string      `json:"name,omitempty"`
	Got     fence.Token `json:"got,omitempty"`
	Current fence.Token `json:"current,omitempty"`
	Holder  string      `json:"holder,omitempty"`
	Message string      `json:"message"`
}

type contextKey struct{}

// From returns the sequencer of a request that [Handler] let through.
func From(ctx context.Context) (fence.Sequencer, bool) {
	s, ok := ctx.Value(contextKey{}).(fence.Sequencer)
	return s, ok
}

// doer is a guard that keeps requests of different terms apart: [fence.Offline].
type doer interface {
	Do(ctx context.Context, s fence.Sequencer, f func(context.Context) error) error
}

// Handler lets a request through to next if guard admits its sequencer. With a *[fence.Offline] as the guard, a request of a
// later term waits until those of earlier ones have been answered, and their contexts are cancelled.
func Handler(guard fence.Guard, next http.Handler, opts Options) http.Handler {
	open := opts.Open
	if open == nil {
		open = readOnly
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := r.Header.Get(fence.Header)
		if text == "" && open(r) {
			next.ServeHTTP(w, r)
			return
		}
		s, err := read(text, len(r.Header.Values(fence.Header)), opts.Keys)
		if err != nil {
			refuse(w, err)
			return
		}
		serve := func(ctx context.Context) error {
			next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, contextKey{}, s)))
			return nil
		}
		if d, ok := guard.(doer); ok {
			err = d.Do(r.Context(), s, serve)
		} else if err = guard.Check(r.Context(), s); err == nil {
			err = serve(r.Context())
		}
		if err != nil {
			refuse(w, err)
		}
	})
}

func readOnly(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

var errMissing = errors.New("the request has no " + fence.Header + " header: only holders of the lease may do this")

// read returns the sequencer in a header that is there that many times.
func read(text string, times int, keys fence.Keys) (fence.Sequencer, error) {
	switch {
	case text == "":
		return fence.Sequencer{}, errMissing
	case times > 1:
		return fence.Sequencer{}, errors.Join(fence.ErrMalformed, errors.New("the header is there more than once"))
	case len(keys) > 0:
		return keys.Verify(text)
	}
	return fence.ParseSequencer(text)
}

func refuse(w http.ResponseWriter, err error) {
	code, body := http.StatusServiceUnavailable, refusal{Error: codeUnknown, Message: err.Error()}
	var stale *fence.StaleError
	switch {
	case errors.As(err, &stale):
		code = http.StatusPreconditionFailed
		body = refusal{codeStale, stale.Name, stale.Got, stale.Current, stale.Holder, err.Error()}
	case errors.Is(err, errMissing):
		code, body.Error = http.StatusPreconditionRequired, codeMissing
	case errors.Is(err, fence.ErrForged):
		code, body.Error = http.StatusForbidden, codeForged
	case errors.Is(err, fence.ErrMalformed):
		code, body.Error = http.StatusBadRequest, codeMalformed
	}
	text, err := json.Marshal(body)
	if err != nil { // nothing that consists of strings and numbers
		text = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // whoever has gone needs no answer
}
