package sim

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

var errRefused = errors.New("the store refused the request")

// What becomes of a write that arrives when its sender doesn't wait for it any more.
const (
	lateLanded  = "late write: applied after its sender gave up"
	lateRefused = "late write: came after a newer one"
)

// transmit takes a request to the store, and the answer back, as the network does: late, twice, or
// not at all.
func (w *World) transmit(n *node, key string, isWrite bool, apply func() (store.Record, error), answer func(store.Record, error)) {
	copies := 1
	if isWrite && w.chance(w.cfg.Chance.Duplicate, "duplicated request") {
		copies = 2
	}
	for range copies {
		if n.mute || w.chance(w.cfg.Chance.DropRequest, "dropped request") {
			continue
		}
		life := w.server.life
		w.after(w.delay(), func() {
			switch {
			case w.server.down || w.server.life != life:
				return
			case w.chance(w.cfg.Chance.Reject, "rejected request"):
				err := errRefused
				if copies > 1 { // not done, but its twin may be: no engine may call that refused
					err = driver.Unknown(key, err)
				}
				w.reply(n, store.Record{}, err, answer)
				return
			}
			rec, err := apply()
			if w.server.withholds(n, key, isWrite, err) {
				w.count("answer withheld for the replica")
				return
			}
			w.reply(n, rec, err, answer)
		})
	}
}

func (w *World) reply(n *node, rec store.Record, err error, answer func(store.Record, error)) {
	if n.deaf || w.chance(w.cfg.Chance.DropReply, "lost reply") {
		return
	}
	w.after(w.delay(), func() {
		switch {
		case n.deaf, n.asleep && w.rng.IntN(2) == 0:
			// The connection of a machine that sleeps may be gone.
		default:
			n.deliver(func() { answer(rec, err) })
		}
	})
}

// delay is how long a message takes: little as a rule, and now and then longer than any lease
// lasts.
func (w *World) delay() time.Duration {
	if w.chance(w.cfg.Chance.Late, "late message") {
		return w.between(0, 3*w.cfg.TTL)
	}
	return w.between(w.cfg.TTL/20000, w.cfg.TTL/300)
}

// called takes down that n makes a request. What it returns takes down the answer.
func (w *World) called(n *node, act protocol.Action) func(store.Record, error) {
	if w.history == nil {
		return func(store.Record, error) {}
	}
	if act.Kind != protocol.Write {
		return w.history.BeginGet(n.id, act.Key)
	}
	read, end := w.history.BeginGet(n.id, act.Rec.Key), w.history.BeginPut(n.id, act.Rec)
	return func(rec store.Record, err error) {
		var conflict *store.ConflictError
		if errors.As(err, &conflict) && conflict.Current.Nonce == act.Rec.Nonce {
			// An earlier copy of it has landed: this process's own, or that of a clone, which says
			// so itself.
			read(conflict.Current, nil)
			err = driver.Unknown(act.Rec.Key, err)
		}
		end(rec, err)
	}
}

// apply is the store's side of a request.
func (w *World) apply(c *runner, act protocol.Action) (store.Record, error) {
	age := w.cfg.Age && !w.cfg.BadRates
	if act.Kind != protocol.Write {
		return w.server.get(act.Key, w.now, age), nil
	}
	before := w.server.rows[act.Rec.Key]
	rec, err := w.server.put(act.Rec, c.n.id, w.now, age)
	if err == nil {
		w.logf("store: %s", describe(before.rec, rec))
		w.check.stored(c, before, rec)
		w.changed(rec.Key)
		if rec.Intervention == store.InterventionHandedOver && w.rng.IntN(4) == 0 {
			w.server.save() // the moments worth going back to
		}
	}
	return rec, err
}
