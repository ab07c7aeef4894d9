package fence

import (
	"context"
	"slices"
)

// Guard decides at a resource whether a request of an earlier term is refused. [Online] asks whoever knows the current term;
// [Offline] remembers the highest token that it has seen. Where the resource can check by itself, inside the caller's own
// transaction (package fence/fencesql and its siblings), that is better than either: then nothing can come between check and
// write.
type Guard interface {
	// Check returns nil when the request may go on, a *[StaleError] when it has to be refused, and another error when
	// that can't be told; then it has to be refused too. It may block for a read or a write, until ctx is done.
	//
	// Between Check and what the request then does, a later term may begin. A resource that does several things at a
	// time has to put them in order by itself, or use [Offline.Do].
	Check(ctx context.Context, s Sequencer) error
}

// Do calls f if g admits s, and returns what f returned; otherwise it returns as g.Check does, without a call. With an [Offline]
// guard, or another one that has such a method, it is [Offline.Do].
func Do(ctx context.Context, g Guard, s Sequencer, f func(ctx context.Context) error) error {
	if d, ok := g.(doer); ok {
		return d.Do(ctx, s, f)
	}
	if err := g.Check(ctx, s); err != nil {
		return err
	}
	return f(ctx)
}

// doer is a guard that keeps what is done in different terms apart.
type doer interface {
	Do(ctx context.Context, s Sequencer, f func(ctx context.Context) error) error
}

// Holding is what is known of the current term of a name.
type Holding struct {
	Holder string // "" when nobody holds the name
	Token  Token  // of the current term, or of the last when nobody holds the name

	// Shares are all the terms that are current, when several may hold the name at a time, as the readers of a read/write lock do.
	// Token is then that of the newest there has been, and Holder its holder, if that term is still current.
	Shares []Share
}

// Share is one of several terms that are current at a time.
type Share struct {
	Holder string
	Token  Token
}

// Check returns a *[StaleError] unless s is of the current term, or of one of those that are.
func (c Holding) Check(s Sequencer) error {
	if s.Token == 0 || (s.Token != c.Token || s.Holder != c.Holder) && !slices.Contains(c.Shares, Share{s.Holder, s.Token}) {
		return &StaleError{Name: s.Name, Got: s.Token, Current: c.Token, Holder: c.Holder}
	}
	return nil
}

// final reports whether no later term can make c's refusal of s wrong: tokens never fall.
func (c Holding) final(s Sequencer) bool { return s.Token <= c.Token }
