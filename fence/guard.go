package fence

import (
	"context"
	"slices"
)

// Guard decides at a resource whether a request of an earlier term is refused. [Online] asks who
// holds the name now; [Offline] remembers the highest token that it has seen. Where possible, check
// inside the caller's own transaction instead (package fence/fencesql and its siblings). Then
// nothing can come between check and write.
type Guard interface {
	// Check returns nil when the request may continue, and a *[StaleError] when it has to be
	// refused. It returns another error when it can't tell; then the request has to be refused,
	// too. It may block for a read or a write, until ctx is done.
	//
	// Between Check and the request's own work, a later term may begin. A resource that does
	// several things at a time has to order them by itself, or use [Offline.Do].
	Check(ctx context.Context, s Sequencer) error
}

// Do calls f if g admits s, and returns the result of f. Otherwise it returns the error of g.Check,
// and doesn't call f. With an [Offline] guard, or another one that has a method Do, it calls that
// ([Offline.Do]).
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

// Holding is the known state of the current term of a name.
type Holding struct {
	Holder string // "" when nobody holds the name
	Token  Token  // of the current term, or of the last when nobody holds the name

	// Shares are all current terms, when several may hold the name at a time, as the readers of a
	// read/write lock do. Then Token is that of the newest term there has been, and Holder its
	// holder, if that term is still current.
	Shares []Share
}

// Share is one of several terms that are current at a time.
type Share struct {
	Holder string
	Token  Token
}

// Check returns a *[StaleError] unless s is of the current term, or of one of the current terms.
func (c Holding) Check(s Sequencer) error {
	if s.Token == 0 || (s.Token != c.Token || s.Holder != c.Holder) && !slices.Contains(c.Shares, Share{s.Holder, s.Token}) {
		return &StaleError{Name: s.Name, Got: s.Token, Current: c.Token, Holder: c.Holder}
	}
	return nil
}

// final reports whether no later term can make c's refusal of s wrong: tokens never fall.
func (c Holding) final(s Sequencer) bool { return s.Token <= c.Token }
