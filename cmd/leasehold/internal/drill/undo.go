package drill

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// change is something that the drill has done, and what takes it back.
type change struct {
	what string // "mend the partition of east", for people
	by   string // how a person takes it back; "" if the drill alone can
	do   func(ctx context.Context) error
}

// undoing is what has to be undone, the last change first.
type undoing struct {
	limit   time.Duration // for one
	changes []change
	left    []string // what could not be undone, and why
}

// add notes a change. It is called before the change is made: one that was interrupted half-way is
// undone, too.
func (u *undoing) add(c change) { u.changes = append(u.changes, c) }

// last takes the last change back, also when ctx is done.
func (u *undoing) last(ctx context.Context, d *Drill) error {
	if len(u.changes) == 0 {
		return nil
	}
	c := u.changes[len(u.changes)-1]
	u.changes = u.changes[:len(u.changes)-1]
	limited, cancel := clock.WithTimeout(context.WithoutCancel(ctx), d.Clock, u.limit)
	defer cancel()
	d.event("undo: %s", c.what)
	err := c.do(limited)
	if err == nil {
		return nil
	}
	text := fmt.Sprintf("%s: %v", c.what, err)
	if c.by != "" {
		text += "; by hand: " + c.by
	}
	u.left = append(u.left, text)
	d.event("NOT UNDONE: %s", text)
	return fmt.Errorf("not undone: %s", text)
}

// all takes every change back.
func (u *undoing) all(ctx context.Context, d *Drill) {
	for len(u.changes) > 0 {
		_ = u.last(ctx, d) // it is in left
	}
}
