package admiral

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// RollCall asks all instances to answer, and returns those that did within wait. It writes the
// control record of the lease, and so does each instance that answers. While another operator asks,
// it waits first, for wait at most.
func (o Operator) RollCall(ctx context.Context, wait time.Duration) ([]Instance, error) {
	return o.Roll(ctx, RollOptions{Wait: wait, Behind: wait})
}

// RollOptions are how [Operator.Roll] asks.
type RollOptions struct {
	Wait time.Duration // how long the instances have to answer
	// Behind is how long it waits at most while another operator asks. Then it asks in that one's
	// place, which may have gone without taking its call away.
	Behind time.Duration
	// OnAnswer, if set, is called with those that have answered, whenever one more has.
	OnAnswer func([]Instance)
}

// Roll is [Operator.RollCall] with options. It blocks for Behind and Wait at most.
func (o Operator) Roll(ctx context.Context, opts RollOptions) ([]Instance, error) {
	var all []Instance
	err := o.ask(ctx, call{}, opts.Wait, opts.Behind, func(c call) bool {
		all = c.Answers
		if opts.OnAnswer != nil {
			opts.OnAnswer(all)
		}
		return false
	})
	if errors.Is(err, errNoAnswer) {
		err = nil
	}
	return all, err
}

// room returns the control record to write a call into. A roll call must not take the place of
// another operator's order to switch over: it waits until nobody asks, for behind at most. A call
// that was left behind is replaced then.
func (o Operator) room(ctx context.Context, c call, behind time.Duration) (store.Record, error) {
	limited, cancel := clock.WithTimeout(ctx, o.clk(), behind)
	defer cancel()
	rec, err := store.Load(ctx, o.Store, pairs.Calls+o.Config.LeaseName)
	for err == nil && c.To == "" && heard(rec).ID != "" {
		next, waitErr := store.Wait(limited, o.Store, rec.Key, rec.Version)
		switch {
		case waitErr == nil:
			rec = next
		case ctx.Err() == nil && limited.Err() != nil:
			return rec, nil
		default:
			err = waitErr
		}
	}
	return rec, err
}

var (
	errNoAnswer  = errors.New("no answer")
	errOvertaken = errors.New("another operator has asked the instances meanwhile; try again")
)

// ask writes a call and looks at the answers until enough says that they are, or for wait at most;
// then it takes the call away again.
func (o Operator) ask(ctx context.Context, c call, wait, behind time.Duration, enough func(call) bool) error {
	c.ID, c.By = rand.Text(), o.By
	key := pairs.Calls + o.Config.LeaseName
	rec, err := o.room(ctx, c, behind)
	for asked := false; err == nil && !asked; {
		var conflict *store.ConflictError
		rec, err = say(ctx, o.Store, rec, c)
		if asked = err == nil; errors.As(err, &conflict) {
			if rec, err = conflict.Current, nil; c.To == "" && heard(rec).ID != "" {
				rec, err = o.room(ctx, c, behind)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("ask the instances: %w", err)
	}
	limited, cancel := clock.WithTimeout(ctx, o.clk(), wait)
	defer cancel()
	for err == nil {
		rec, err = store.Wait(limited, o.Store, key, rec.Version)
		if err != nil {
			break
		}
		now := heard(rec)
		if now.ID != c.ID {
			return errOvertaken
		}
		if enough(now) {
			break
		}
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = errNoAnswer
	}
	o.withdraw(ctx, rec, key, c.ID)
	return err
}

// withdraw takes the call away. A call that stays harms nobody: it names the term that it is about.
func (o Operator) withdraw(ctx context.Context, rec store.Record, key, id string) {
	for {
		if rec.Key == "" { // the wait ended without one
			var err error
			if rec, err = store.Load(ctx, o.Store, key); err != nil {
				return
			}
		}
		if heard(rec).ID != id {
			return
		}
		_, err := say(ctx, o.Store, rec, call{})
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) {
			return
		}
		rec = conflict.Current
	}
}

// Switched is what a switchover did.
type Switched struct {
	From, To store.Record  // the row before and after
	Took     time.Duration // from the request to the successor's own write
}

// Switchover has the active instance hand over the lease to the pod of that name, which has to be
// running and passive. The active instance stops its writes, and the pod begins two writes of the
// row later. No TTL passes in between. Switchover blocks for wait at most.
//
// The error matches [ErrNobody] when no instance is active, and [ErrForeign] when one of Admiral
// itself is. When pod doesn't answer in the first 3/4 of wait, the error is an *[AbsentError],
// which names the pods that do. When another holder has the lease instead, it is a
// *[fence.StaleError].
// After an error that matches [store.ErrUnknownOutcome] the lease may still move.
func (o Operator) Switchover(ctx context.Context, pod string, wait time.Duration) (Switched, error) {
	began := o.clk().Now()
	from, err := o.Record(ctx)
	if err != nil {
		return Switched{}, err
	}
	if err := o.movable(from); err != nil {
		return Switched{From: from}, err
	}
	if holder, _ := HolderOf(from); holder == pod {
		return Switched{From: from, To: from}, nil
	}
	limited, cancel := clock.WithTimeout(ctx, o.clk(), wait)
	defer cancel()
	listing := min(wait/4, 5*time.Second) // which instances there are, when pod doesn't answer
	done, ready, doneErr := Switched{From: from}, false, error(nil)
	err = o.ask(limited, call{To: pod, Token: from.Token}, wait-listing, 0, func(c call) bool {
		var to Instance
		if to, ready = c.answer(pod); ready {
			done.To, doneErr = o.confirmed(limited, from, to)
			done.Took = o.clk().Now().Sub(began)
		}
		return ready
	})
	switch {
	case ready:
		return done, doneErr
	case errors.Is(err, errNoAnswer) || limited.Err() != nil && ctx.Err() == nil:
		return done, o.absent(ctx, pod, wait-listing, listing)
	case errors.Is(err, errOvertaken):
		return done, driver.Unknown(from.Key, err)
	}
	return done, err
}

// movable refuses a row that no switchover can move.
func (o Operator) movable(from store.Record) error {
	pod, _ := HolderOf(from)
	switch from.Owner {
	case "", SkipOwner, pairs.ResumedOwner:
		return fmt.Errorf("%s: %w: there is nothing to hand over", from.Key, ErrNobody)
	}
	if err := o.current(from); err != nil {
		return err
	}
	if pod == "" {
		return fmt.Errorf("%s: %w: %s holds the lease; end it there, or hold every instance passive", from.Key, ErrForeign, from.Owner)
	}
	return nil
}

// confirmed waits until the successor holds the lease by a write of its own.
func (o Operator) confirmed(ctx context.Context, from store.Record, to Instance) (store.Record, error) {
	rec := from
	for {
		switch {
		case rec.Owner == to.Owner && rec.Intervention == "":
			return rec, nil
		case rec.Token != from.Token && rec.Owner != to.Owner:
			return rec, fmt.Errorf("%s went to another holder meanwhile: %w", from.Key, &fence.StaleError{Name: from.Key, Got: from.Token, Current: rec.Token, Holder: rec.Owner})
		}
		next, err := store.Wait(ctx, o.Store, rec.Key, rec.Version)
		if err != nil && ctx.Err() != nil {
			err := fmt.Errorf("%s was asked to take over from %s; the lease has not moved yet (token %d): %w", to.Pod, from.Owner, rec.Token, context.Cause(ctx))
			return rec, driver.Unknown(from.Key, err)
		}
		if err != nil {
			return rec, err
		}
		rec = next
	}
}

// absent says who answers, when the one that was wanted doesn't.
func (o Operator) absent(ctx context.Context, pod string, waited, listing time.Duration) error {
	there, err := o.Roll(ctx, RollOptions{Wait: listing / 2, Behind: listing / 2})
	if err != nil {
		return err
	}
	return &AbsentError{Pod: pod, Waited: waited, There: there}
}

// AbsentError says that a switchover changed nothing, since the pod that was to be active did not
// answer, or is warming up.
type AbsentError struct {
	Pod    string
	Waited time.Duration
	There  []Instance // those that did answer
}

func (e *AbsentError) Error() string {
	var list []string
	for _, i := range e.There {
		list = append(list, fmt.Sprintf("%s (%s)", i.Pod, i.Status))
	}
	who := "no instance answers"
	if len(list) > 0 {
		who = "those that answer are " + strings.Join(list, ", ")
	}
	return fmt.Sprintf("no instance of the pod %q that could take over answered within %v: %s", e.Pod, e.Waited, who)
}
