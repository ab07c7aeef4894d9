//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/soak/resources"
)

// requester sends a worker's writes to guarded resources of other kinds than the file of its own.
type requester struct {
	kinds []string                      // that this worker writes to
	open  map[string]resources.Resource // by kind, those that it has written to
	// By name, of the worker's last terms: requests of them are still on their way.
	past map[string][]fence.Sequencer
}

const (
	kindsPerWorker = 3 // each brings a client library to life, and processes don't live for long
	pastTerms      = 4
)

// newRequester gives a worker its kinds, so that workers side by side have different ones.
func newRequester(c workerConfig) *requester {
	var all []string
	for _, k := range resources.Kinds {
		if _, here := c.Resources[k.Name]; here {
			all = append(all, k.Name)
		}
	}
	r := &requester{open: map[string]resources.Resource{}, past: map[string][]fence.Sequencer{}}
	for i := range min(kindsPerWorker, len(all)) {
		r.kinds = append(r.kinds, all[(c.Slot*kindsPerWorker+i)%len(all)])
	}
	return r
}

// over says that a term is over.
func (r *requester) over(s fence.Sequencer) {
	past := append(r.past[s.Name], s)
	r.past[s.Name] = past[max(0, len(past)-pastTerms):]
}

// request sends one write of the present term, or one of an earlier term that was delayed until
// now, and tells what became of it.
func (w *worker) request(ctx context.Context, now fence.Sequencer) {
	r := w.requester
	if len(r.kinds) == 0 {
		return
	}
	s, kind := now, r.kinds[w.rng.IntN(len(r.kinds))]
	if past := r.past[s.Name]; len(past) > 0 && w.rng.IntN(4) == 0 {
		s = past[w.rng.IntN(len(past))]
	}
	w.seq++
	err := w.send(ctx, kind, s)
	e := event{Kind: wrote, Resource: kind, Name: s.Name, Token: s.Token, Holder: s.Holder, Seq: w.seq, At: w.clk.Now()}
	switch {
	case err == nil:
	case errors.Is(err, fence.ErrStale):
		e.Kind = turned
	case ctx.Err() != nil:
		return
	default:
		e.Kind, e.Text = erred, err.Error()
	}
	w.tell(e)
}

func (w *worker) send(ctx context.Context, kind string, s fence.Sequencer) (err error) {
	ctx, cancel := clock.WithTimeout(ctx, w.clk, w.TTL/2)
	defer cancel()
	resource := w.requester.open[kind]
	if resource == nil {
		if resource, err = resources.Open(ctx, kind, w.Resources[kind]); err != nil {
			return err
		}
		w.requester.open[kind] = resource
	}
	line := fmt.Sprintf("%d %s %d %d", s.Token, s.Holder, w.seq, w.clk.Now())
	if w.Bug == bugUnfenced {
		s.Token, s.Holder = 1, "anybody"
	}
	return resource.Write(ctx, s, line)
}

// close closes the worker's clients.
func (r *requester) close() (err error) {
	for _, resource := range r.open {
		err = errors.Join(err, resource.Close())
	}
	return err
}
