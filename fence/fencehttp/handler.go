package fencehttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/httpwrite"
)

// Options of a [Handler].
type Options struct {
	// Keys, unless nil, verify sequencers: one without a signature of theirs is refused. Keys that
	// are empty refuse all.
	Keys *fence.Keys

	// Name returns the name of the lease that guards the resource of a request. A sequencer of
	// another lease is refused. When Name is nil, the client chooses the name, and with it the term
	// or the mark that judges the request. Then the holder of any lease gets through. With an
	// offline guard and no Keys, so does a client that makes up a name. Leave it nil only where you
	// trust all clients to name the right lease.
	Name func(*http.Request) string

	// Open returns whether a request needs no sequencer. By default those are the requests that
	// change nothing, by the gate's rule: GET, HEAD, OPTIONS and TRACE without a body, an upgrade,
	// or a header or parameter that names another method. A sequencer that is there is checked in
	// any case.
	Open func(*http.Request) bool
}

// The codes of refusals, in the field "error".
const (
	codeStale     = "stale_token"          // 412
	codeMissing   = "sequencer_missing"    // 428
	codeMalformed = "sequencer_invalid"    // 400
	codeForged    = "sequencer_forged"     // 403
	codeOtherName = "sequencer_other_name" // 403: see Options.Name
	codeUnknown   = "guard_unavailable"    // 503: whether the term is current can't be told
)

// refusal is the body of an answer that refuses a request.
type refusal struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// staleRefusal is the body of a 412.
type staleRefusal struct {
	refusal
	Name    string      `json:"name"`
	Got     fence.Token `json:"got"`
	Current fence.Token `json:"current"`
	Holder  string      `json:"holder"`
}

type contextKey struct{}

// From returns the sequencer of a request that [Handler] admitted.
func From(ctx context.Context) (fence.Sequencer, bool) {
	s, ok := ctx.Value(contextKey{}).(fence.Sequencer)
	return s, ok
}

// Handler passes a request to next if guard admits its sequencer. With a *[fence.Offline] as the
// guard, a request of a later term waits until those of earlier terms have been answered, and their
// contexts are cancelled.
func Handler(guard fence.Guard, next http.Handler, opts Options) http.Handler {
	open := opts.Open
	if open == nil {
		open = func(r *http.Request) bool { return !httpwrite.Request(r) }
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		texts := r.Header[fence.Header]
		if len(texts) == 0 && open(r) {
			next.ServeHTTP(w, plain(r))
			return
		}
		s, err := read(texts, opts.Keys)
		if err == nil && opts.Name != nil {
			err = s.Of(opts.Name(r))
		}
		if err != nil {
			refuse(w, err)
			return
		}
		err = fence.Do(r.Context(), guard, s, func(ctx context.Context) error {
			next.ServeHTTP(w, plain(r).WithContext(context.WithValue(ctx, contextKey{}, s)))
			return nil
		})
		if err != nil {
			refuse(w, err)
		}
	})
}

// plain returns a request without the offer to continue in HTTP/2: the requests after it would not
// pass here.
func plain(r *http.Request) *http.Request {
	if !httpwrite.OffersH2C(r) {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Del("Upgrade")
	return r
}

var errMissing = errors.New("the request has no " + fence.Header + " header: only holders of the lease may do this")

// read returns the sequencer in the values of the header.
func read(texts []string, keys *fence.Keys) (fence.Sequencer, error) {
	switch {
	case len(texts) == 0:
		return fence.Sequencer{}, errMissing
	case len(texts) > 1:
		return fence.Sequencer{}, errors.Join(fence.ErrMalformed, errors.New("the header is there more than once"))
	case keys != nil:
		return keys.Verify(texts[0])
	}
	return fence.ParseSequencer(texts[0])
}

func refuse(w http.ResponseWriter, err error) {
	code, why := http.StatusServiceUnavailable, refusal{codeUnknown, err.Error()}
	switch {
	case errors.Is(err, errMissing):
		code, why.Error = http.StatusPreconditionRequired, codeMissing
	case errors.Is(err, fence.ErrForged):
		code, why.Error = http.StatusForbidden, codeForged
	case errors.Is(err, fence.ErrOtherName):
		code, why.Error = http.StatusForbidden, codeOtherName
	case errors.Is(err, fence.ErrMalformed):
		code, why.Error = http.StatusBadRequest, codeMalformed
	}
	var body any = why
	var stale *fence.StaleError
	if errors.As(err, &stale) {
		code, why.Error = http.StatusPreconditionFailed, codeStale
		body = staleRefusal{why, stale.Name, stale.Got, stale.Current, stale.Holder}
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
