package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// network returns a handle whose writes meet that fault.
func (e *env) network(ctx context.Context, f faulty.Fault) (*faulty.Store, error) {
	s, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	w := faulty.Wrap(s, func(op faulty.Op) faulty.Fault {
		if op.Kind == faulty.Put || op.Kind == faulty.Delete {
			return f
		}
		return faulty.Fault{}
	})
	e.own(w)
	return w, nil
}

// lostReply: after a write whose reply was lost, a read tells what happened, and sending it again
// tells it too.
func lostReply(ctx context.Context, e *env) error {
	lossy, err := e.network(ctx, faulty.Fault{LoseReply: true})
	if err != nil {
		return err
	}
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	version := ""
	for i, nonce := range []string{"create", "update"} {
		rec := full("k")
		rec.Nonce, rec.Version = nonce, version
		if _, err := lossy.Put(ctx, rec); !errors.Is(err, store.ErrUnknownOutcome) {
			return fmt.Errorf("put whose reply is lost: %v, want an unknown outcome", err)
		}
		current, err := s.Get(ctx, "k")
		if err != nil {
			return fmt.Errorf("get after write %d whose reply was lost: %w", i, err)
		}
		if err := e.conflict(ctx, s, "Put again after a lost reply", put(ctx, s, rec), current); err != nil {
			return err
		}
		if current.Nonce != nonce {
			return fmt.Errorf("the nonce of the stored record is %q, want %q", current.Nonce, nonce)
		}
		version = current.Version
	}
	if err := lossy.Delete(ctx, "k", version); !errors.Is(err, store.ErrUnknownOutcome) {
		return fmt.Errorf("delete whose reply is lost: %v, want an unknown outcome", err)
	}
	return notFound("Delete again after a lost reply", s.Delete(ctx, "k", version))
}

// repeatedRequest: a request that reaches the store twice is carried out once.
func repeatedRequest(ctx context.Context, e *env) error {
	for _, after := range []time.Duration{0, time.Millisecond} {
		s, err := e.open(ctx)
		if err != nil {
			return err
		}
		var doubling [2]*faulty.Store
		for i := range doubling {
			if doubling[i], err = e.network(ctx, faulty.Fault{ApplyTwice: true, ApplyLate: after}); err != nil {
				return err
			}
		}
		key := fmt.Sprintf("k/%v", after)
		stored, err := mustPut(ctx, doubling[0], held(key, 1))
		if err != nil {
			return err
		}
		// The second copy of a creation has to come before the deletion: after it, a creation is as
		// good as any other.
		if err := errors.Join(doubling[0].Close(), mustGet(ctx, s, stored)); err != nil {
			return fmt.Errorf("after a creation that arrived twice: %w", err)
		}
		stored.Token = 2
		if stored, err = mustPut(ctx, doubling[1], stored); err != nil {
			return err
		}
		if err := doubling[1].Delete(ctx, key, stored.Version); err != nil {
			return err
		}
		if stored, err = mustPut(ctx, s, held(key, 3)); err != nil {
			return err
		}
		if err := doubling[1].Close(); err != nil { // waits for the second copies
			return err
		}
		if err := mustGet(ctx, s, stored); err != nil {
			return fmt.Errorf("after requests that arrived twice: %w", err)
		}
	}
	return nil
}

// lateRequest: a write that arrives after others have written does nothing.
func lateRequest(ctx context.Context, e *env) error {
	slow, err := e.network(ctx, faulty.Fault{ApplyLate: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	first, err := mustPut(ctx, s, held("k", 1))
	if err != nil {
		return err
	}
	late := first
	late.Nonce = "late"
	if _, err := slow.Put(ctx, late); !errors.Is(err, store.ErrUnknownOutcome) {
		return fmt.Errorf("put that arrives late: %v, want an unknown outcome", err)
	}
	if err := slow.Delete(ctx, "k", first.Version); !errors.Is(err, store.ErrUnknownOutcome) {
		return fmt.Errorf("delete that arrives late: %v, want an unknown outcome", err)
	}
	// Whether one of them comes before this or not, none can touch what is made again.
	current, err := store.Load(ctx, s, "k")
	for ; err == nil && current.Version != ""; current, err = store.Load(ctx, s, "k") {
		err := s.Delete(ctx, "k", current.Version)
		if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if err != nil {
		return err
	}
	anew, err := mustPut(ctx, s, held("k", 1))
	if err != nil {
		return err
	}
	if err := slow.Close(); err != nil { // waits for both
		return err
	}
	if err := mustGet(ctx, s, anew); err != nil {
		return fmt.Errorf("after writes that arrived late: %w", err)
	}
	return nil
}

// connection returns two handles and the means to cut them off: the instance's own, or else
// faulty's.
func (e *env) connection(ctx context.Context) (handles []store.Store, cut, heal func() error, err error) {
	handles, err = e.openAll(ctx, 2)
	if err != nil || e.Cut != nil {
		return handles, e.Cut, e.Heal, err
	}
	var outage faulty.Outage
	for i, s := range handles {
		w := faulty.Wrap(s, outage.Plan(nil))
		e.own(w)
		handles[i] = w
	}
	cut = func() error { outage.Start(); return nil }
	heal = func() error { outage.End(); return nil }
	return handles, cut, heal, nil
}

// cutAndHeal: without a connection every call ends with an error when its context ends, at the
// latest, and no write is wrongly reported as not done. When the connection is back, everything
// works again, Waits that have begun included.
func cutAndHeal(ctx context.Context, e *env) error {
	handles, cut, heal, err := e.connection(ctx)
	if err != nil {
		return err
	}
	s := handles[0]
	there := map[string]store.Record{}
	for _, key := range []string{"put", "delete", "wait"} {
		if there[key], err = mustPut(ctx, s, held(key, 1)); err != nil {
			return err
		}
	}
	waiting := e.startWait(ctx, s, "wait", there["wait"].Version)
	if err := errors.Join(settle(ctx, s), cut()); err != nil {
		return err
	}
	attempts, cutErr := whileCut(ctx, handles, there)
	if err := errors.Join(cutErr, heal()); err != nil {
		return err
	}
	for _, s := range handles {
		if err := usable(ctx, s); err != nil {
			return err
		}
	}
	written, err := increment(ctx, s, "wait")
	if err != nil {
		return fmt.Errorf("after the connection was restored: %w", err)
	}
	// A Wait may end with an error because of the cut; if it continues, it must not miss the write.
	if w, err := soon(ctx, "a Wait that was under way when the connection was cut, after it was restored", waiting); err != nil {
		return err
	} else if w.err == nil && w.rec.Version != written.Version {
		return fmt.Errorf("a Wait over a cut returned version %q, want %q", w.rec.Version, written.Version)
	}
	for _, a := range attempts {
		if err := a.verify(ctx, s); err != nil {
			return fmt.Errorf("during a cut: %w", err)
		}
	}
	return nil
}

// whileCut tries everything while the connection is cut, and returns the writes.
func whileCut(ctx context.Context, handles []store.Store, there map[string]store.Record) ([]attempt, error) {
	attempts := []attempt{
		{what: "creating a key", before: store.Record{Key: "create"}, nonce: "cut"},
		{what: "Put", before: there["put"], nonce: "cut"},
		{what: "Delete", before: there["delete"]},
	}
	reads := []func(context.Context, store.Store) error{
		func(ctx context.Context, s store.Store) error { _, err := s.Get(ctx, "put"); return err },
		func(ctx context.Context, s store.Store) error { _, err := keysOf(ctx, s, ""); return err },
		func(ctx context.Context, s store.Store) error {
			_, err := store.Wait(ctx, s, "put", there["put"].Version)
			return err
		},
	}
	err := together(ctx, len(attempts)+len(reads), func(ctx context.Context, i int) error {
		const allowed = 300 * time.Millisecond
		opCtx, cancel := context.WithTimeout(ctx, allowed)
		defer cancel()
		start := time.Now()
		s, what := handles[i%2], "a read"
		var err error
		if i < len(attempts) {
			a := &attempts[i]
			a.run(opCtx, s)
			what, err = a.what, a.err
		} else {
			err = reads[i-len(attempts)](opCtx, s)
		}
		if err == nil {
			return fmt.Errorf("%s succeeded without a connection", what)
		}
		if took := time.Since(start); took > allowed+patience {
			return fmt.Errorf("%s took %v without a connection, %v after its context had ended", what, took, took-allowed)
		}
		return nil
	})
	return attempts, err
}

// usable waits until the store can be read and written again.
func usable(ctx context.Context, s store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	for {
		try, cancelTry := context.WithTimeout(ctx, time.Second)
		rec, err := store.Load(try, s, "recovered")
		if err == nil {
			next := held("recovered", rec.Token+1)
			next.Version = rec.Version
			_, err = s.Put(try, next)
		}
		cancelTry()
		if err == nil {
			return nil
		}
		if pause(ctx) != nil {
			return fmt.Errorf("the store can't be used %v after the connection was restored: %w", 3*patience, err)
		}
	}
}
