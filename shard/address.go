package shard

import (
	"context"

	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// address returns where the worker of a session is reached, as far as that is known.
func (t *term) address(session string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.addresses[session]
}

// learn has the addresses of the sessions of a chunk looked up that aren't known yet. It doesn't
// block: slices don't wait for it.
func (t *term) learn(c *shardmap.Chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range c.Slices {
		for _, session := range [...]string{s.Owner, s.Next} {
			if _, known := t.addresses[session]; known || t.unknown[session] || session == "" {
				continue
			}
			t.unknown[session] = true
			t.wg.Go(func() { t.lookUp(session) })
		}
	}
}

// lookUp reads the address of a session, and has the keepers take it down. After an error the next
// change of a chunk has it read again.
func (t *term) lookUp(session string) {
	address, err := t.o.addressOf(t.ctx, session)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.unknown, session)
	if err != nil {
		return
	}
	if len(t.addresses) > maxAddresses {
		t.addresses = map[string]string{t.key: t.o.w.Address}
	}
	t.addresses[session] = address
	for _, k := range t.keepers {
		wake(k.kick)
	}
}

// addressOf reads the address of a session's worker; it is "" when the worker has left.
func (o *Owner) addressOf(ctx context.Context, session string) (string, error) {
	rec, err := store.Load(ctx, o.st, o.space.MemberKey(session))
	if err != nil {
		return "", err
	}
	if m, err := shardmap.ParseMember(rec); err == nil {
		return m.Address, nil
	}
	return "", nil
}

// maxAddresses bounds the addresses that a worker remembers.
const maxAddresses = 1 << 16
