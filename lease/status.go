package lease

import (
	"context"
	"iter"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// Standing is how a name stands, as an [Observer] sees it.
type Standing string

// The standings.
const (
	NameFree Standing = "free"
	NameHeld Standing = "held"
	// NameExpired means that the holder has shown no sign of life for a whole TTL, or is known to
	// be gone. Anyone may take the name.
	NameExpired Standing = "expired"
	NameBroken  Standing = "broken" // an operator ended the hold; its holder hasn't freed the name
	NameHanded  Standing = "handed" // handed over to a successor whose term has not begun yet
)

// Status is who holds a name, and how the name stands, as an [Observer] saw it. Only the holder
// itself knows whether it holds the name at this instant. Ask a guard ([fence.Online]) before a
// step that must not be done twice.
type Status struct {
	Name     string
	Standing Standing

	// Holder is the owner id, and "" when nobody holds the name. Of an expired hold, it is the last
	// holder.
	Holder string
	Token  fence.Token // of the term, or of the last term

	// Since is when the term began, by the holder's wall clock, human-readable. It is zero when
	// nobody holds the name.
	Since time.Time
	TTL   time.Duration

	// Session is the key of the session that keeps the name. If it is set, TTL, Silent and
	// ExpiresIn are the session's.
	Session string
	Note    string // who broke the hold or handed it over, and why

	// Silent is for how long at least the holder has shown no sign of life. It counts since the
	// observer first read what the holder wrote last, or longer where the store vouches for the
	// age. A holder that lives stays below its interval of renewal, TTL/3 by default. Silent is 0
	// when nobody holds the name, and when the store knows at once that the holder is gone.
	Silent time.Duration

	// ExpiresIn is how long the hold lasts at most unless the observer reads a sign of life. It is
	// 0 unless the name is held, broken or handed over. Where the store vouches for no age, an
	// observer that has just begun to look sees a whole TTL.
	ExpiresIn time.Duration

	// Record is the record as it was read, for what Status doesn't say.
	Record store.Record
}

// SilentFor returns how long the holder has been silent if that is out of the ordinary, or else 0.
// Out of the ordinary is more than half of the TTL, where renewals come every third of it.
func (s Status) SilentFor() time.Duration {
	if s.Silent <= s.TTL/2 {
		return 0
	}
	return s.Silent
}

// changed reports whether s tells something that before didn't. A sign of life is no change.
func (s Status) changed(before Status) bool {
	return s.Standing != before.Standing || s.Holder != before.Holder || s.Token != before.Token || s.Note != before.Note
}

// watchPause is how long a [Watch] rests after a read that failed.
const watchPause = time.Second

// Watch yields how a name stands, and again whenever that changes: also when a hold expires, which
// no write tells. On a store that vouches for no age, noticing that takes a whole TTL without a
// sign of life. Renewals are no changes. While the store can't be read, Watch yields the error with
// what was known last, and retries a second later. The sequence ends when ctx is done. It may be
// ranged over once.
func Watch(ctx context.Context, st store.Store, name string, opts ObserverOptions) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		o := NewObserver(st, opts)
		var told *Status
		for ctx.Err() == nil {
			s, err := o.Status(ctx, name)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if !yield(o.Known(name), err) {
					return
				}
				told = nil
				_ = clock.Sleep(ctx, o.clk, watchPause) // ctx is looked at above
				continue
			case told == nil || s.changed(*told):
				if !yield(s, nil) {
					return
				}
			}
			told = &s
			o.await(ctx, s)
		}
	}
}

// await blocks until the record has another version, or the hold may have expired. A failure is met
// again by the read that follows.
func (o *Observer) await(ctx context.Context, s Status) {
	limit := s.ExpiresIn
	// Its renewals wake nobody who waits for the name.
	if s.Session != "" && s.Standing != NameExpired {
		limit = max(min(limit, s.TTL/3), clock.Resolution+time.Millisecond)
	}
	wait := ctx
	if limit > 0 {
		limited, cancel := clock.WithTimeout(ctx, o.clk, limit)
		defer cancel()
		wait = limited
	}
	if _, err := store.Wait(wait, o.st, s.Name, s.Record.Version); err != nil && wait.Err() == nil {
		_ = clock.Sleep(ctx, o.clk, watchPause)
	}
}
