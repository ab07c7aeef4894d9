package supervise

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/internal/protocol"
)

// DefaultTTL is the TTL of a supervised command. With it a store may be out for 5 s at any moment
// and nothing is stopped.
const DefaultTTL = 20 * time.Second

// maxKillAfter is the default of KillAfter for a TTL that leaves room for it.
const maxKillAfter = 2 * time.Second

// Timing is how long a supervised command has for what. The zero value of a field means its
// default.
type Timing struct {
	TTL time.Duration // of the lease; DefaultTTL
	// From SIGTERM to SIGKILL, 2 s or a tenth of the TTL if that is less; below 0: none at all.
	KillAfter time.Duration

	// Drain is the same when there is no hurry: the lease goes on being renewed, and the command is
	// asked to end all the same. KillAfter by default.
	Drain time.Duration
}

// WithDefaults returns t with its zero fields filled in.
func (t Timing) WithDefaults() Timing {
	if t.TTL == 0 {
		t.TTL = DefaultTTL
	}
	if t.KillAfter == 0 {
		t.KillAfter = min(maxKillAfter, t.TTL/10)
	}
	t.KillAfter = max(t.KillAfter, 0)
	if t.Drain == 0 {
		t.Drain = t.KillAfter
	}
	return t
}

// hold returns how the lease itself is timed.
func (t Timing) hold() protocol.Timing {
	return protocol.Timing{TTL: t.TTL, Renew: t.Renew()}.WithDefaults()
}

// Renew is the time from one renewal to the next: a quarter of the TTL, so that after a long outage
// of the store there is time for a retry before the command has to be told to stop.
func (t Timing) Renew() time.Duration { return t.TTL / 4 }

// Validity is how long the lease is valid from before its last renewal was sent.
func (t Timing) Validity() time.Duration { return t.hold().Validity() }

// Slack is how long before the end of validity the group is killed: a tenth of the validity, 500 ms
// at most.
func (t Timing) Slack() time.Duration { return min(t.Validity()/10, 500*time.Millisecond) }

// Stops is how long after the last renewal was sent the command is told to end: KillAfter and the
// slack before the validity ends.
func (t Timing) Stops() time.Duration { return t.Validity() - t.Slack() - t.KillAfter }

// Survives is the longest outage of the store that stops nothing, whenever it begins, if a request
// takes no time.
func (t Timing) Survives() time.Duration { return t.hold().Survives(t.Stops()) }

// Check returns an error that shows the arithmetic when the command would be stopped before the
// first retry of a renewal.
func (t Timing) Check() error {
	if err := t.hold().Check(); err != nil {
		return err
	}
	if t.Survives() >= 0 {
		return nil
	}
	return fmt.Errorf("a TTL of %v is too short for a kill-after of %v: a hold is valid for %v; CMD is told to stop %v before that "+
		"(kill-after, and %v for the kernel to end it), so at %v, but a renewal (every %v) and one retry take up to %v; "+
		"raise --ttl to %v, or lower --kill-after to %v",
		t.TTL, t.KillAfter, t.Validity(), t.KillAfter+t.Slack(), t.Slack(), t.Stops(), t.Renew(), t.Stops()-t.Survives(),
		t.leastTTL(), max(t.KillAfter+t.Survives(), 0).Truncate(time.Millisecond))
}

// leastTTL returns the shortest TTL, in steps of 100 ms, that fits KillAfter.
func (t Timing) leastTTL() time.Duration {
	const step = 100 * time.Millisecond
	for t.TTL = t.TTL.Truncate(step) + step; t.Survives() < 0; t.TTL += step {
	}
	return t.TTL
}
