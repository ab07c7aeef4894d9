package fence

import (
	"errors"
	"fmt"
)

// ErrStale is what every refusal of a token that is not the current one matches with [errors.Is].
// The error itself is a *[StaleError].
var ErrStale = errors.New("stale fencing token")

// StaleError reports which token was refused, and which one is known to be newer: at a guarded
// resource, or of the current term, when a call names the term to renew, to end or to hand over.
type StaleError struct {
	Name string // of the lease, or of the resource
	Got  Token  // the token that was refused
	// The highest token that is known: that the resource has accepted, or of the current term.
	Current Token
	Holder  string // the holder of the current term; "" when it is over and nobody holds the name
}

func (e *StaleError) Error() string {
	if e.Got == 0 {
		return fmt.Sprintf("%s: no fencing token was presented, or token 0, which no term bears", e.Name)
	}
	switch {
	case e.Got > e.Current && e.Holder != "":
		return fmt.Sprintf("%s: token %d is of no term that is known: the newest is %d, of %s", e.Name, e.Got, e.Current, e.Holder)
	case e.Got > e.Current:
		return fmt.Sprintf("%s: token %d is of no term that is known: the newest is %d", e.Name, e.Got, e.Current)
	case e.Holder == "":
		return fmt.Sprintf("%s: stale fencing token %d: nobody holds the name since token %d", e.Name, e.Got, e.Current)
	case e.Got == e.Current:
		return fmt.Sprintf("%s: token %d belongs to %s: another holder presented it", e.Name, e.Got, e.Holder)
	}
	return fmt.Sprintf("%s: stale fencing token %d: %s has token %d", e.Name, e.Got, e.Holder, e.Current)
}

// Is reports whether target is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Mark is the high-water mark of a guarded resource: the highest token that it has accepted, with
// its holder. The zero Mark has accepted nothing and admits any token.
//
// A Mark is a value. The guard of a durable resource first stores it with the resource, and only
// then lets the write through. A Mark is not safe for concurrent use.
type Mark struct {
	Token  Token  `json:"token"`
	Holder string `json:"holder"`
}

// Admit returns the mark after a request of that holder under that token. It returns a
// *[StaleError] when the request has to be refused: its token is lower than the mark's, or the same
// and of another holder. Two holders of one term mean that something is wrong upstream; the first
// one is kept. A zero token is never admitted.
func (m Mark) Admit(name, holder string, t Token) (Mark, error) {
	if t == 0 || t < m.Token || (t == m.Token && holder != m.Holder) {
		return m, &StaleError{Name: name, Got: t, Current: m.Token, Holder: m.Holder}
	}
	return Mark{Token: t, Holder: holder}, nil
}
