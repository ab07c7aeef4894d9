package faulty

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Outage is a connection that can be cut and restored. The zero Outage is connected. One Outage may
// serve several stores. All methods may be called from any goroutine.
type Outage struct {
	mu       sync.Mutex
	restored chan struct{} // not nil during an outage; closed at its end
	refusal  error
}

// Start cuts the connection. Requests are lost, and their callers hang until their contexts end.
// Waits that have begun get no push; they resume when the outage ends. What has reached the store
// before is not undone.
func (o *Outage) Start() { o.start(nil) }

// StartRefusing cuts the connection so that every request is refused at once with err, pushes too.
func (o *Outage) StartRefusing(err error) { o.start(err) }

func (o *Outage) start(refusal error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.restored == nil {
		o.restored = make(chan struct{})
	}
	o.refusal = refusal
}

// End restores the connection.
func (o *Outage) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.restored != nil {
		close(o.restored)
		o.restored = nil
	}
}

// Plan returns a plan that has the outage's faults during the outage. At other times it has the
// faults of the plan in otherwise.
func (o *Outage) Plan(otherwise Plan) Plan {
	return func(op Op) Fault {
		o.mu.Lock()
		restored, refusal := o.restored, o.refusal
		o.mu.Unlock()
		switch {
		case restored != nil && refusal != nil:
			return Fault{Err: refusal}
		case restored != nil:
			return Fault{Drop: true, Restored: restored}
		case otherwise != nil:
			return otherwise(op)
		}
		return Fault{}
	}
}

// Rates are the settings of a [Random] plan. Each is the probability, from 0 to 1, that an
// operation has that fault.
type Rates struct {
	Delay      float64 // before the request arrives, up to MaxDelay
	ReplyDelay float64 // before the answer arrives, up to MaxDelay
	Refuse     float64 // the request is refused, with ErrLost
	Drop       float64
	LoseReply  float64
	ApplyLate  float64 // a write arrives later, by up to MaxDelay
	ApplyTwice float64 // the second copy up to MaxDelay after the first

	// Silent is the share of the faults that lose the answer in which the caller hangs instead of
	// failing at once.
	Silent float64

	MaxDelay time.Duration // 1 s when 0
}

// Random returns a plan that draws faults with those rates. The faults of an operation follow from
// seed and the operation's number alone. So a run that makes the same operations in the same order
// meets the same faults.
func Random(seed uint64, rates Rates) Plan {
	if rates.MaxDelay <= 0 {
		rates.MaxDelay = time.Second
	}
	return func(op Op) Fault {
		r := rand.New(rand.NewPCG(seed, uint64(op.Seq)))
		hit := func(rate float64) bool { return r.Float64() < rate }
		delay := func(rate float64) time.Duration {
			d := 1 + time.Duration(r.Int64N(int64(rates.MaxDelay)))
			if !hit(rate) {
				return 0
			}
			return d
		}
		f := Fault{
			Delay: delay(rates.Delay), ReplyDelay: delay(rates.ReplyDelay), Drop: hit(rates.Drop),
			LoseReply: hit(rates.LoseReply), ApplyLate: delay(rates.ApplyLate), Silent: hit(rates.Silent),
		}
		if hit(rates.Refuse) {
			f.Err = ErrLost
		}
		if hit(rates.ApplyTwice) {
			f.ApplyTwice, f.ApplyLate = true, delay(1)
		}
		return f
	}
}
