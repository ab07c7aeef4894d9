package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/holdfile"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// patience bounds the requests of one change, together.
const patience = 10 * time.Second

// term is a hold that this process didn't acquire.
type term struct {
	st   store.Store
	clk  clock.Clock
	past drive.Recollection // of the record: the next renewal needs no read
}

// driver returns the driver of the term that a file proves.
func (t *term) driver(h holdfile.Hold, ttl time.Duration) drive.Driver {
	d := drive.Named(h.Name, h.Holder, h.Token, ttl, patience/3, t.past)
	d.Hold.Allow = lessor.Secret(h.Secret)
	d.Hold.Left = func([]byte) []byte { return nil } // a plain lease has no notices but breaks
	return d
}

func (t *term) carry(ctx context.Context, d *drive.Driver) error {
	ctx, cancel := clock.WithTimeout(ctx, t.clk, patience)
	defer cancel()
	run := drive.Runner{Store: t.st, Clock: t.clk, HTTP: store.Describe(t.st).OverHTTP}
	err := run.Carry(ctx, d)
	t.past.Look(&d.Hold)
	return err
}

// renew renews the term, with another TTL if ttl isn't 0, and returns until when it is valid. The
// error matches [lease.ErrLost] if the term is over. After another error the outcome may be
// unknown: the term lasts as long as before at least.
func (t *term) renew(ctx context.Context, h holdfile.Hold, ttl time.Duration) (clock.Instant, error) {
	d := t.driver(h, ttl)
	if err := t.carry(ctx, &d); err != nil {
		return 0, refused(err)
	}
	if d.Hold.Renewed() {
		return d.Hold.Deadline, nil
	}
	return 0, t.lost(h, &d.Hold)
}

// errWrong is matched by the error of a file that isn't that of the term which it names.
var errWrong = errors.New("the file is not that of the hold")

// refused explains a secret that is wrong.
func refused(err error) error {
	if errors.Is(err, lessor.ErrSecret) || errors.Is(err, lessor.ErrNoSecret) {
		return fmt.Errorf("%w: %w", errWrong, err)
	}
	return err
}

// lost says what ended the term, by what was last seen of it.
func (t *term) lost(h holdfile.Hold, d *protocol.Hold) error {
	if d.Cause == protocol.CauseBroken {
		return &lease.LostError{Name: h.Name, Token: h.Token, Cause: lease.CauseBroken, Err: errors.New(d.Seen().Rec.Note)}
	}
	return lostTo(h, d.Seen().Rec)
}

// lostTo says that the record doesn't show the term any more.
func lostTo(h holdfile.Hold, cur store.Record) error {
	lost := &lease.LostError{Name: h.Name, Token: h.Token, Cause: lease.CauseTaken, Err: protocol.Stale(cur, h.Token)}
	if cur.Version == "" {
		lost.Err = errors.New("this store has no record of the name: is it the right store?")
	}
	return lost
}

// release frees the name, if the term is the current one. The error matches [lease.ErrLost] if it
// isn't, and [store.ErrUnknownOutcome] if the store didn't confirm.
func (t *term) release(ctx context.Context, h holdfile.Hold) error {
	rec, err := store.Load(ctx, t.st, h.Name)
	if err != nil {
		return err
	}
	// The process that acquired was killed before it could write the token.
	if h.Token == 0 && rec.Owner == h.Holder {
		h.Token = rec.Token
	}
	if rec.Owner != h.Holder || rec.Token != h.Token {
		if h.Token == 0 || rec.Owner == "" && rec.Token == h.Token {
			// Nothing was taken, or it was released by another copy of the file, or by an operator.
			return nil
		}
		return lostTo(h, rec)
	}
	d := t.driver(h, 0)
	run := drive.Runner{Store: t.st, Clock: t.clk}
	d.Hold.Stop(run.Env(), protocol.Exit{Why: protocol.WhyReleased, By: t.clk.Now().Add(patience)})
	err = t.carry(ctx, &d)
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return lostTo(h, conflict.Current)
	}
	return refused(err)
}
