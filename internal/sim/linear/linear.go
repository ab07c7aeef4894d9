// Package linear records what clients of a store saw, and checks that it is linearizable: that there is an order of the
// operations, each at an instant between its call and its return, in which a single copy of the store would have answered
// so. A write whose outcome is unknown may have happened at any later instant, or never.
//
// The check is anishathalye/porcupine's; each key is checked by itself.
package linear

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold/leasehold/store"
)

// Recorder is a store that records what its callers see of another one.
type Recorder struct {
	store.Store
	h *History
	// client tells one caller's operations from another's. Operations of one client must not overlap.
	client int
}

// History is what the clients of one store saw. It is safe for concurrent use.
type History struct {
	now func() int64 // a clock that only rises

	mu      sync.Mutex
	clients int
	ops     []porcupine.Operation
}

// NewHistory returns an empty history whose operations are stamped by now.
func NewHistory(now func() int64) *History { return &History{now: now} }

// Client returns st as seen by one more client, which does one thing at a time.
func (h *History) Client(st store.Store) *Recorder {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients++
	return &Recorder{Store: st, h: h, client: h.clients}
}

// call is what was asked, and answer what came of it.
type call struct {
	write, remove bool
	key           string
	version       string // that the write demands
	nonce         string // of the version that it makes
}

type answer struct {
	unknown bool   // the write may have happened, or may yet
	refused bool   // it has not, for a reason that says nothing of the record
	done    bool   // of a write
	version string // what is stored: "" when nothing is
	nonce   string
	blind   bool // the answer doesn't say what is stored
}

// Get records a read.
func (r *Recorder) Get(ctx context.Context, key string) (store.Record, error) {
	began := r.h.now()
	rec, err := r.Store.Get(ctx, key)
	switch {
	case err == nil:
		r.record(began, call{key: key}, answer{version: rec.Version, nonce: rec.Nonce})
	case errors.Is(err, store.ErrNotFound):
		r.record(began, call{key: key}, answer{})
	}
	return rec, err
}

// Put records a write. Its nonce has to be its own.
func (r *Recorder) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	began := r.h.now()
	got, err := r.Store.Put(ctx, rec)
	r.record(began, call{write: true, key: rec.Key, version: rec.Version, nonce: rec.Nonce}, outcome(got, err))
	return got, err
}

// Delete records a deletion.
func (r *Recorder) Delete(ctx context.Context, key, version string) error {
	began := r.h.now()
	err := r.Store.Delete(ctx, key, version)
	r.record(began, call{write: true, remove: true, key: key, version: version}, outcome(store.Record{}, err))
	return err
}

// List isn't recorded: it promises no single instant.
func (r *Recorder) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return r.Store.List(ctx, prefix)
}

func outcome(got store.Record, err error) answer {
	var conflict *store.ConflictError
	switch {
	case err == nil:
		return answer{done: true, version: got.Version, nonce: got.Nonce}
	case errors.As(err, &conflict):
		return answer{version: conflict.Current.Version, nonce: conflict.Current.Nonce, blind: conflict.Current.Version == ""}
	case errors.Is(err, store.ErrNotFound):
		return answer{}
	case errors.Is(err, store.ErrUnknownOutcome):
		return answer{unknown: true}
	}
	return answer{refused: true}
}

func (r *Recorder) record(began int64, in call, out answer) {
	ended := r.h.now()
	if out.unknown {
		ended = math.MaxInt64
	}
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.h.ops = append(r.h.ops, porcupine.Operation{ClientId: r.client, Input: in, Call: began, Output: out, Return: ended})
}

// Len returns how many operations were recorded.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ops)
}

// Check returns an error when the history isn't linearizable, or when that could not be settled within the limit.
func (h *History) Check(limit time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch porcupine.CheckOperationsTimeout(model, h.ops, limit) {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("the history of %d operations is not linearizable", len(h.ops))
	default:
		return fmt.Errorf("whether the history of %d operations is linearizable was not settled in %v", len(h.ops), limit)
	}
}

// state is one record, as the model has it. A version is known by the nonce of the write that made it, until an answer
// tells its name.
type state struct {
	stored bool
	nonce  string
}

var nondeterministic = porcupine.NondeterministicModel{
	Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		var keys []string
		for _, op := range ops {
			key := op.Input.(call).key
			if byKey[key] == nil {
				keys = append(keys, key)
			}
			byKey[key] = append(byKey[key], op)
		}
		parts := make([][]porcupine.Operation, 0, len(keys))
		for _, key := range keys {
			parts = append(parts, name(byKey[key]))
		}
		return parts
	},
	Init:  func() []any { return []any{state{}} },
	Step:  step,
	Equal: func(a, b any) bool { return a == b },
}

var model = nondeterministic.ToModel()

// name puts into each write the nonce of the version that it demands, as far as any answer has told it.
func name(ops []porcupine.Operation) []porcupine.Operation {
	nonces := map[string]string{}
	for _, op := range ops {
		if out := op.Output.(answer); out.version != "" {
			nonces[out.version] = out.nonce
		}
	}
	named := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		in := op.Input.(call)
		if in.write && in.version != "" {
			if nonce, known := nonces[in.version]; known {
				in.version = "nonce " + nonce
			} else {
				in.version = "unheard of"
			}
		}
		op.Input = in
		named[i] = op
	}
	return named
}

// step returns the states that can follow s when in is answered by out.
func step(s, input, output any) []any {
	at, in, out := s.(state), input.(call), output.(answer)
	if !in.write {
		if out.version == "" && !at.stored || out.version != "" && at.stored && at.nonce == out.nonce {
			return []any{at}
		}
		return nil
	}
	matches := in.version == "" && !at.stored || at.stored && in.version == "nonce "+at.nonce
	next := state{stored: !in.remove, nonce: in.nonce}
	if in.remove {
		next = state{}
	}
	switch {
	case out.unknown && matches:
		return []any{at, next} // it has happened, or it never does
	case out.unknown, out.refused:
		return []any{at}
	case out.done && matches:
		return []any{next}
	case out.done:
		return nil
	case matches:
		return nil // it should have been done
	case out.blind, out.version == "" && !at.stored, at.stored && out.nonce == at.nonce && out.version != "":
		return []any{at}
	}
	return nil
}
