package model

import "github.com/leasehold/leasehold/internal/protocol"

// found lets a poll, or what the store pushes, find a change of a key that a process waits for.
func (w *world) found(c *check, i int, key string) *world {
	n, q := w.change(i)
	act := protocol.Action{Kind: protocol.Wait, Key: q.key()}
	if q.also != "-" {
		act.Also = sessionKey
	}
	q.wait, q.also = "-", "-"
	q.d.Hold.Tell(n.env(q), act, n.get(key), nil)
	n.run(c, q)
	return n
}
