// Package doctor examines a store from the outside, whatever engine it is: does it keep the
// promises that leases rest on, how long does it take, and what does the engine itself see?
package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Prefix begins the names of the records that an examination makes, and deletes again.
const Prefix = ".doctor/"

// Options of [Examine].
type Options struct {
	Clock   clock.Clock
	TTL     time.Duration // that leases are to have
	Samples int           // how many reads and writes are timed
}

// Examine returns what it found, what the engine sees first. It makes one record of its own and
// deletes it. It blocks for some 2·Samples round trips.
func Examine(ctx context.Context, st store.Store, opts Options) []driver.Finding {
	findings := promises(store.Describe(st))
	if i, ok := st.(driver.Inspector); ok {
		findings = append(findings, i.Inspect(ctx)...)
	}
	e := &exam{st: st, key: Prefix + strings.ToLower(rand.Text()[:12]), opts: opts}
	findings = append(findings, e.conditions(ctx))
	if e.works {
		findings = append(findings, e.times(ctx)...)
	}
	return append(findings, e.cleanUp(ctx)...)
}

func promises(p store.Properties) []driver.Finding {
	if p.Engine == "" {
		return nil
	}
	all := []driver.Finding{{What: "consistency", Status: driver.StatusOK, Detail: p.Consistency}}
	fencing := driver.Finding{What: "fencing", Status: driver.StatusOK, Detail: p.Fencing.String()}
	if p.Fencing == store.FencingPerPrimary {
		fencing.Status = driver.StatusWarn
		fencing.Detail += ": a failover may lose writes that were acknowledged"
		fencing.Advice = "let what is guarded refuse older tokens itself, or use a store that loses nothing"
	}
	wait := driver.Finding{What: "waiting", Status: driver.StatusOK, Detail: "told by the server"}
	if !p.Push {
		wait.Detail = "by polling"
	}
	all = append(all, fencing, wait)
	if p.Read == store.ReadUnknown {
		return all
	}
	reads := driver.Finding{What: "reads", Status: driver.StatusOK, Detail: p.Read.String()}
	if p.Read != store.ReadDurable {
		reads.Detail += ": a server that was cut off shows the past until it notices; guards and check confirm what they read by a write"
	}
	return append(all, reads, driver.Finding{What: "unknown outcomes", Status: driver.StatusOK, Detail: "settled " + p.Settle.String()})
}

// exam is one examination, with a record of its own.
type exam struct {
	st    store.Store
	key   string
	opts  Options
	rec   store.Record // as last written
	works bool         // conditional writes are honoured
}

// conditions tries whether a write is done if, and only if, its condition holds. Everything rests
// on it.
func (e *exam) conditions(ctx context.Context) driver.Finding {
	f := driver.Finding{What: "conditional writes", Status: driver.StatusFail}
	steps := []struct {
		what string
		try  func() error
	}{
		{"create a record", func() error { return e.put(ctx, store.Record{Key: e.key, TTL: time.Second, Nonce: rand.Text()}) }},
		{"create it a second time", func() error { return e.refused(ctx, store.Record{Key: e.key, Nonce: rand.Text()}) }},
		{"replace it", func() error { return e.put(ctx, changed(e.rec)) }},
		{"replace an outdated version of it", func() error {
			old := e.rec
			if err := e.put(ctx, changed(e.rec)); err != nil {
				return err
			}
			return e.refused(ctx, changed(old))
		}},
		{"read what was written last", func() error {
			got, err := e.st.Get(ctx, e.key)
			if err == nil && (got.Version != e.rec.Version || got.Nonce != e.rec.Nonce) {
				err = fmt.Errorf("the read shows version %q, the last write made %q", got.Version, e.rec.Version)
			}
			return err
		}},
	}
	for _, s := range steps {
		if err := s.try(); err != nil {
			f.Detail = s.what + ": " + err.Error()
			if broken := new(brokenError); errors.As(err, &broken) {
				f.Advice = "leases on this store are worthless: use another, or the endpoint of the real one"
			}
			return f
		}
	}
	e.works = true
	f.Status, f.Detail = driver.StatusOK, "honoured"
	return f
}

// brokenError is a promise that the store broke.
type brokenError struct{ what string }

func (e *brokenError) Error() string { return e.what }

func changed(rec store.Record) store.Record {
	rec.Nonce = rand.Text()
	return rec
}

func (e *exam) put(ctx context.Context, rec store.Record) error {
	got, err := e.st.Put(ctx, rec)
	if err == nil {
		e.rec = got
	}
	return err
}

// refused tries a write whose condition doesn't hold.
func (e *exam) refused(ctx context.Context, rec store.Record) error {
	_, err := e.st.Put(ctx, rec)
	var conflict *store.ConflictError
	switch {
	case err == nil:
		return &brokenError{"it was done, though its condition didn't hold"}
	case !errors.As(err, &conflict):
		return err
	case conflict.Current.Version != e.rec.Version:
		return &brokenError{fmt.Sprintf("it was refused with version %q, the last write made %q", conflict.Current.Version, e.rec.Version)}
	}
	return nil
}

// times measures reads and writes, and says what TTL they bear.
func (e *exam) times(ctx context.Context) []driver.Finding {
	reads, err := e.sample(func() error { _, err := e.st.Get(ctx, e.key); return err })
	if err != nil {
		return []driver.Finding{{What: "time of a read", Status: driver.StatusFail, Detail: err.Error()}}
	}
	writes, err := e.sample(func() error { return e.put(ctx, changed(e.rec)) })
	if err != nil {
		return []driver.Finding{{What: "time of a write", Status: driver.StatusFail, Detail: err.Error()}}
	}
	return []driver.Finding{
		{What: "time of a read", Status: driver.StatusOK, Detail: quantiles(reads)},
		{What: "time of a write", Status: driver.StatusOK, Detail: quantiles(writes)},
		advise(e.opts.TTL, writes[len(writes)*99/100]),
	}
}

// sample calls op again and again, and returns how long it took, the shortest first.
func (e *exam) sample(op func() error) ([]time.Duration, error) {
	took := make([]time.Duration, 0, e.opts.Samples)
	for range e.opts.Samples {
		began := e.opts.Clock.Now()
		if err := op(); err != nil {
			return nil, err
		}
		took = append(took, e.opts.Clock.Now().Sub(began))
	}
	slices.Sort(took)
	return took, nil
}

func quantiles(took []time.Duration) string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v, worst %v of %d", round(took[len(took)/2]), round(took[len(took)*99/100]), round(took[len(took)-1]), len(took))
}

// perWrite is how many slow writes a TTL should have room for: a renewal begins every third of it,
// and ten slow attempts in a third leave room for an outage and for steps of the network's latency.
const perWrite = 30

// advise compares a TTL with what writes take.
func advise(ttl, slow time.Duration) driver.Finding {
	least := max(time.Second, (perWrite*slow).Truncate(time.Second)+time.Second)
	f := driver.Finding{What: "TTL", Status: driver.StatusOK, Detail: fmt.Sprintf("%v has room for this store; it bears %v", ttl, least)}
	if ttl < least {
		f.Status = driver.StatusWarn
		f.Detail = fmt.Sprintf("%v is short for this store, whose slow writes take %v", ttl, slow.Round(time.Millisecond))
		f.Advice = fmt.Sprintf("use %v or more (--ttl)", least)
	}
	return f
}

// cleanUp deletes the record, though ctx may have ended.
func (e *exam) cleanUp(ctx context.Context) []driver.Finding {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), e.opts.Clock, 5*time.Second)
	defer cancel()
	rec, err := store.Load(ctx, e.st, e.key)
	if err == nil && rec.Version != "" {
		err = e.st.Delete(ctx, rec.Key, rec.Version)
	}
	switch {
	case err == nil && rec.Version != "":
		return []driver.Finding{{What: "deleting", Status: driver.StatusOK, Detail: "the record of this examination is gone again"}}
	case err == nil:
		return nil
	}
	return []driver.Finding{{
		What: "deleting", Status: driver.StatusFail, Detail: e.key + ": " + err.Error(),
		Advice: "grant the permission to delete, and delete that record",
	}}
}
