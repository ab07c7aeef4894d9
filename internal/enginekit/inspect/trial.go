// Package inspect has what the inspections of engines share: the trial of what a lease does, and
// findings that read alike whatever the engine.
package inspect

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Trial tries what a lease does, on a record of its own under a key that begins with ".doctor/".
type Trial struct {
	Store  store.Store
	Within time.Duration // bounds the whole trial
	Where  string        // the record is, for people: ` under "leasehold/"`; may be empty
	Advice string        // what to do when the server refuses something; may be empty
	Reads  string        // what reads are, for people: "linearizable reads"
	Wait   bool          // a Wait is tried, too
	List   bool          // a List is tried, too
	// Stored, if set, is called while the record is stored. Its error is one of a read.
	Stored func(ctx context.Context, key string) error
}

// errIgnored says that a condition was not heeded.
var errIgnored = errors.New("a write under another version was carried out")

// Run returns what came of it, as findings "permissions" and "consistency"; the latter only where
// the trial got so far. It blocks until all was tried and the record is deleted, for twice Within
// at most.
func (t Trial) Run(ctx context.Context) []driver.Finding {
	done, err := t.run(ctx)
	switch {
	case errors.Is(err, errIgnored):
		return []driver.Finding{{
			What: "consistency", Status: driver.StatusFail, Detail: err.Error(),
			Advice: "what answers isn't the server that it seems to be, or something on the way changes requests: connect to the server itself",
		}}
	case err != nil:
		return []driver.Finding{{What: "permissions", Status: driver.StatusFail, Detail: err.Error(), Advice: t.Advice}}
	}
	return []driver.Finding{
		{What: "permissions", Status: driver.StatusOK, Detail: "a record" + t.Where + " was " + strings.Join(done, ", ")},
		{What: "consistency", Status: driver.StatusOK, Detail: t.Reads + "; a write under an old version is refused"},
	}
}

// probe is the record of a trial.
type probe struct {
	Trial
	key  string
	last string // the version that is stored
}

// run returns what was done to the record, in order.
func (t Trial) run(ctx context.Context) (done []string, err error) {
	p := &probe{Trial: t, key: ".doctor/" + strings.ToLower(rand.Text())}
	within, cancel := clock.WithTimeout(ctx, clock.System(), t.Within)
	defer cancel()
	for _, step := range p.steps() {
		if err := step.try(within); err != nil {
			if !errors.Is(err, errIgnored) {
				err = fmt.Errorf("a record can't be %s: %w", step.what, err)
			}
			return done, errors.Join(err, p.remove(ctx))
		}
		done = append(done, step.what)
	}
	if err := p.remove(ctx); err != nil {
		return done, fmt.Errorf("a record can't be deleted: %w", err)
	}
	return append(done, "deleted"), nil
}

type step struct {
	what string
	try  func(context.Context) error
}

// steps are what a trial does, up to the deletion.
func (p *probe) steps() []step {
	first := ""
	steps := []step{
		{"created", func(ctx context.Context) error { defer func() { first = p.last }(); return p.put(ctx, "") }},
		{"read", func(ctx context.Context) error { _, err := p.Store.Get(ctx, p.key); return err }},
	}
	if c, ok := p.Store.(store.Confirmer); ok {
		steps = append(steps, step{"confirmed", func(ctx context.Context) error { _, err := c.Confirm(ctx, p.key); return err }})
	}
	if p.Stored != nil {
		steps = append(steps, step{"looked at", func(ctx context.Context) error { return p.Stored(ctx, p.key) }})
	}
	if p.Wait {
		steps = append(steps, step{"waited for", func(ctx context.Context) error { return p.wait(ctx, first) }})
	}
	steps = append(steps, step{"changed", func(ctx context.Context) error {
		if err := p.put(ctx, p.last); err != nil {
			return err
		}
		return errors.Join(p.refused(ctx, ""), p.refused(ctx, first))
	}})
	if p.List {
		steps = append(steps, step{"listed", p.list})
	}
	return steps
}

func (p *probe) put(ctx context.Context, version string) error {
	rec, err := p.Store.Put(ctx, store.Record{Key: p.key, Nonce: rand.Text(), Version: version})
	if err == nil {
		p.last = rec.Version
	}
	return err
}

// refused returns an error unless a write under that version is in conflict.
func (p *probe) refused(ctx context.Context, version string) error {
	switch err := p.put(ctx, version); {
	case err == nil:
		return errIgnored
	case !errors.Is(err, store.ErrConflict):
		return err
	}
	return nil
}

// wait changes the record while a Wait is under way.
func (p *probe) wait(ctx context.Context, version string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told := make(chan error, 1)
	go func() {
		_, err := store.Wait(ctx, p.Store, p.key, version)
		told <- err
	}()
	err := p.put(ctx, version)
	if err != nil {
		cancel()
	}
	if late := <-told; err == nil {
		err = late
	}
	return err
}

func (p *probe) list(ctx context.Context) error {
	for _, err := range p.Store.List(ctx, p.key) {
		return err
	}
	return nil
}

// remove deletes what is stored of the trial, even when ctx has ended meanwhile.
func (p *probe) remove(ctx context.Context) error {
	if p.last == "" {
		return nil
	}
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), clock.System(), p.Within)
	defer cancel()
	return p.Store.Delete(ctx, p.key, p.last)
}
