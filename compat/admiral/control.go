package admiral

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/store"
)

// Instance is one that has answered a roll call.
type Instance struct {
	Pod    string `json:"pod"`
	Region string `json:"region,omitempty"`
	Owner  string `json:"owner"`  // its id as a holder
	Status string `json:"status"` // active, passive or warming up

	// Waits says what a passive instance waits for; ClockApart how far its wall clock and the
	// store's are apart at least, in seconds, where the store tells its own.
	Waits      string   `json:"waits_for,omitempty"`
	ClockApart *float64 `json:"clock_apart_seconds,omitempty"`

	// The TTL of its lease, and its waitTimeInSeconds; 0 from an earlier version.
	TTL      float64 `json:"ttl_seconds,omitempty"`
	WaitTime float64 `json:"wait_time_seconds,omitempty"`
}

// call is what an operator asks all instances, and their answers. It is the data of the control
// record.
type call struct {
	ID string `json:"id,omitempty"`
	// Of a switchover: the pod that is to be active; only it answers.
	To      string      `json:"to,omitempty"`
	Token   fence.Token `json:"token,omitempty"` // of a switchover: the term that is to end
	By      string      `json:"by,omitempty"`
	Answers []Instance  `json:"answers,omitempty"`
}

// maxAnswers bounds a control record.
const maxAnswers = 100

// heard reads a control record. What can't be read is no call: something newer wrote it, perhaps.
func heard(rec store.Record) call {
	var c call
	if json.Unmarshal(rec.Data, &c) != nil {
		return call{}
	}
	return c
}

// answer returns what pod answered; ok says whether one that can take over did.
func (c call) answer(pod string) (Instance, bool) {
	for _, a := range c.Answers {
		if a.Pod == pod && a.Status != api.InstanceWarming {
			return a, true
		}
	}
	return Instance{}, false
}

// say writes c as the data of the control record rec.
func say(ctx context.Context, st store.Store, rec store.Record, c call) (store.Record, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return rec, err
	}
	rec.Data, rec.Nonce = data, rand.Text()
	return st.Put(ctx, rec)
}

// listen answers roll calls, and obeys the order to hand over, until ctx is done.
func (r *run) listen(ctx context.Context) {
	key := pairs.Calls + r.c.cfg.LeaseName
	for ctx.Err() == nil {
		rec, err := r.control(ctx, key)
		if err == nil {
			_, err = store.Wait(ctx, r.st, key, rec.Version)
		}
		if err != nil {
			_ = clock.Sleep(ctx, r.clk, r.c.cfg.WaitTime)
		}
	}
}

// control reads the control record and does what it says. It returns the record as it is then.
func (r *run) control(ctx context.Context, key string) (store.Record, error) {
	limited, cancel := clock.WithTimeout(ctx, r.clk, r.c.opts.Renew)
	defer cancel()
	rec, err := store.Load(limited, r.st, key)
	if err == nil && rec.Version == "" {
		// A row that is there costs one read a look.
		if made, putErr := say(limited, r.st, rec, call{}); putErr == nil {
			rec = made
		}
	}
	for err == nil {
		c := heard(rec)
		if c.ID != "" {
			r.hurry(key)
		}
		me := r.instance()
		if !c.wants(me) {
			r.obey(ctx, c)
			return rec, nil
		}
		c.Answers = append(c.Answers, me)
		var conflict *store.ConflictError
		if rec, err = say(limited, r.st, rec, c); errors.As(err, &conflict) {
			rec, err = conflict.Current, nil
		}
	}
	return rec, err
}

// hurry has this instance see soon what follows from a call, where the store is polled.
func (r *run) hurry(key string) {
	if h, ok := r.st.Store.(interface{ Hurry(key string) }); ok {
		h.Hurry(key)
		h.Hurry(r.c.cfg.LeaseName)
	}
}

// wants reports whether the call waits for an answer of this instance.
func (c call) wants(me Instance) bool {
	switch {
	case c.ID == "" || len(c.Answers) >= maxAnswers || c.To != "" && c.To != me.Pod:
		return false
	}
	return !slices.ContainsFunc(c.Answers, func(a Instance) bool { return a.Owner == me.Owner })
}

// maxWaits bounds what an instance says it waits for, so that all answers fit into a record.
const maxWaits = 200

func (r *run) instance() Instance {
	st := r.s.Status()
	apart, told := r.s.ClockApart()
	r.mu.Lock()
	defer r.mu.Unlock()
	i := Instance{
		Pod: r.c.cfg.PodIdentifier, Region: r.c.cfg.runsIn(), Owner: r.m.Holder(), Status: r.status,
		TTL: r.c.cfg.TTL().Seconds(), WaitTime: r.c.cfg.WaitTime.Seconds(),
	}
	if i.Status != api.InstanceActive {
		i.Waits = strings.ToValidUTF8(st.Reason[:min(len(st.Reason), maxWaits)], "")
	}
	if told {
		seconds := apart.Seconds()
		i.ClockApart = &seconds
	}
	return i
}

// obey hands over if this instance is active under the very term that is to end, and the successor
// has answered: a call that was left behind matches no later term.
func (r *run) obey(ctx context.Context, c call) {
	successor, ready := c.answer(c.To)
	if c.To == "" || !ready {
		return
	}
	if t, err := r.s.Guard(ctx); err != nil || t.Token() != c.Token {
		return
	}
	timer := clock.NewTimer(r.clk, r.c.cfg.WaitTime)
	defer timer.Stop()
	select {
	case r.orders <- order{token: c.Token, to: successor.Owner}:
	case <-timer.C: // the term has ended meanwhile
	case <-ctx.Done():
	}
}
