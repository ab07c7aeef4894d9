package shardhttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/shard"
)

// The headers of requests and answers.
const (
	KeyHeader   = "Leasehold-Key"   // of a request: its key
	OwnerHeader = "Leasehold-Owner" // of a 421: the address of the worker that owns the key
)

// Options say where the key of a request is, and how long a caller waits. The zero value reads the
// header Leasehold-Key, and waits 10 s.
type Options struct {
	// Key returns the key of a request; "" where there is none. It must not read the body. Many
	// goroutines may call it at a time.
	Key func(*http.Request) string

	// Wait is how long [Transport] waits for a worker that owns the key, or serves it: 10 s by
	// default. Slices that move take milliseconds. Those of a worker that has died take up to the
	// TTL and a second. A negative Wait is none. [Handler] doesn't use it.
	Wait time.Duration
}

// key returns the key of a request, "" if it has none or several.
func (o Options) key(r *http.Request) string {
	if o.Key != nil {
		return o.Key(r)
	}
	if all := r.Header.Values(KeyHeader); len(all) == 1 {
		return all[0]
	}
	return ""
}

// Refusal is the body of an answer that [Handler] gives itself.
type Refusal struct {
	Error   string      `json:"error"` // wrong_owner or key_missing
	Message string      `json:"message"`
	Owner   string      `json:"owner,omitempty"` // address; "" where it isn't known
	Token   fence.Token `json:"token,omitempty"` // of that owner
}

// Handler returns a handler that passes requests on to next only if the worker o owns their keys.
// Others get 421, and who owns the key. The context of a request that is passed on has the slice,
// for [Slice], and is done when the slice's is: the slice has been drained, or the session is about
// to end. The worker's Drain may wait for its requests.
func Handler(o *shard.Owner, next http.Handler, opts Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := opts.key(r)
		if key == "" {
			refuse(w, http.StatusBadRequest, Refusal{Error: "key_missing", Message: "the request has no key, or several: send one in the header " + KeyHeader})
			return
		}
		s, err := o.Slice(key)
		if err != nil {
			refuseOwner(w, err)
			return
		}
		ctx, cancel := context.WithCancelCause(context.WithValue(r.Context(), sliceKey{}, s))
		defer cancel(nil)
		stop := context.AfterFunc(s.Context(), func() { cancel(context.Cause(s.Context())) })
		defer stop()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

type sliceKey struct{}

// Slice returns the slice that the key of a request is in, from the context of a request that
// [Handler] has passed on; else nil. The program calls [shard.Slice.Check] on it right before it
// acts, and sends its Sequencer to what it writes to.
func Slice(ctx context.Context) *shard.Slice {
	s, _ := ctx.Value(sliceKey{}).(*shard.Slice)
	return s
}

// Refuse answers a request with the error of a check that failed after the request was passed on:
// with 421 and the owner, as [Handler] does. It reports whether err is such an error; if not, it
// writes nothing.
func Refuse(w http.ResponseWriter, err error) bool {
	if !errors.Is(err, shard.ErrWrongOwner) {
		return false
	}
	refuseOwner(w, err)
	return true
}

func refuseOwner(w http.ResponseWriter, err error) {
	body := Refusal{Error: "wrong_owner", Message: err.Error()}
	var wrong *shard.WrongOwner
	if errors.As(err, &wrong) {
		body.Owner, body.Token = wrong.Now, wrong.Token
	}
	// Set also where it isn't known: by this the transport tells the answer from another 421.
	w.Header().Set(OwnerHeader, body.Owner)
	refuse(w, http.StatusMisdirectedRequest, body)
}

func refuse(w http.ResponseWriter, code int, body Refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // else the caller has gone
}
