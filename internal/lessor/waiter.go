package lessor

import (
	"container/list"
	"maps"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// answer is what comes of a request.
type answer struct {
	grant Grant
	err   error
}

// waiter is a request for a name that has not been answered.
type waiter struct {
	req   Request
	since clock.Instant
	// Until when it waits for an answer: for a while, too, if it doesn't wait for the name.
	limit  clock.Instant
	answer chan answer // of capacity 1
	rank   uint64      // before those with a higher one, and those without, which is 0
	secret string      // of the term that is claimed for it
	claim  protocol.Claim
	timing protocol.Timing // of its hold
	place  *list.Element
}

// newWaiter returns a request that came now. The record of its term has that info, in which what
// the record keeps of the secret is set.
func newWaiter(req Request, info map[string]string, now clock.Instant) *waiter {
	wait := req.Wait
	if wait == 0 {
		wait = patience
	}
	w := &waiter{
		req: req, since: now, limit: now.Add(wait), answer: make(chan answer, 1), secret: req.Secret,
		claim:  protocol.Claim{Owner: req.Owner, TTL: req.TTL, Session: req.Session, Info: info, Kind: store.KindLease},
		timing: protocol.Timing{TTL: req.TTL}.WithDefaults(),
	}
	if w.secret != "" {
		info[secretInfo] = keptOf(nil, w.secret)
	} else {
		w.secret, info[secretInfo] = newSecret(req.ID)
	}
	return w
}

// until returns until when a holder may rely on what was sent at sent.
func (w *waiter) until(sent clock.Instant) clock.Instant {
	if w.req.Session != "" {
		return clock.NoDeadline
	}
	return sent.Add(w.timing.Validity())
}

// info is that of a record which keeps that of a secret.
func info(req Request, kept string) map[string]string {
	m := make(map[string]string, len(req.Info)+2)
	maps.Copy(m, req.Info)
	m[secretInfo] = kept
	if req.ID != "" {
		m[requestInfo] = idDigest(req.ID)
	}
	return m
}
