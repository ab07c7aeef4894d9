package drive

import (
	"crypto/rand"
	mathrand "math/rand/v2"

	"github.com/leasehold/leasehold/internal/protocol"
)

// Env returns what a hold knows of the world.
func (r *Runner) Env() protocol.Env {
	return protocol.Env{Now: r.Clock.Now(), Wall: r.Clock.Wall(), Nonce: Nonce, Jitter: mathrand.Float64()}
}

// EnvIn is Env for a hold that is to be kept by the session of that term; nil for none.
func (r *Runner) EnvIn(session *Term) protocol.Env {
	env := r.Env()
	if session != nil {
		env.Session = session.Until()
	}
	return env
}

// Nonce returns one that no other process can have: it comes from the kernel, so that a clone of
// this process makes others.
func Nonce() string { return rand.Text()[:20] }
