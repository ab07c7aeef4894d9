package chapter9

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/consul/api"
)

// Consul keeps a lock in a key that a session has acquired. Its version is the key's modify index.
type Consul struct{ Client *api.Client }

// Create implements Service. Consul takes a TTL of 10 s or more.
func (c Consul) Create(ctx context.Context, key, owner string, ttl time.Duration) (Held, error) {
	session, _, err := c.Client.Session().Create(&api.SessionEntry{
		TTL: max(ttl, 10*time.Second).String(), Behavior: api.SessionBehaviorDelete, LockDelay: time.Millisecond,
	}, write(ctx))
	if err != nil {
		return Held{}, err
	}
	mine, _, err := c.Client.KV().Acquire(&api.KVPair{Key: key, Value: []byte(owner), Session: session}, write(ctx))
	var pair *api.KVPair
	if err == nil && mine {
		pair, _, err = c.Client.KV().Get(key, read(ctx))
	}
	if err == nil && (pair == nil || pair.Session != session) {
		err = ErrHeld
	}
	if err != nil {
		_, destroyed := c.Client.Session().Destroy(session, write(ctx))
		return Held{}, errors.Join(err, destroyed)
	}
	return Held{Key: key, Version: int64(pair.ModifyIndex), session: session}, nil //nolint:gosec // an index is far below 2^63
}

// Renew implements Service.
func (c Consul) Renew(ctx context.Context, h Held) error {
	entry, _, err := c.Client.Session().Renew(h.session.(string), write(ctx))
	if err != nil {
		return err
	}
	if entry == nil {
		return ErrLost
	}
	pair, _, err := c.Client.KV().Get(h.Key, read(ctx))
	if err == nil && (pair == nil || pair.Session != h.session) {
		err = ErrLost
	}
	return err
}

// Remove implements Service.
func (c Consul) Remove(ctx context.Context, key string) error {
	_, err := c.Client.KV().Delete(key, write(ctx))
	return err
}

// RemoveVersion implements Service.
func (c Consul) RemoveVersion(ctx context.Context, h Held) error {
	done, _, err := c.Client.KV().DeleteCAS(&api.KVPair{Key: h.Key, ModifyIndex: uint64(h.Version)}, write(ctx)) //nolint:gosec // it was one
	if err == nil && !done {
		err = ErrLost
	}
	return err
}

// Changed implements Service.
func (c Consul) Changed(ctx context.Context, key string) error {
	pair, meta, err := c.Client.KV().Get(key, read(ctx))
	if err != nil || pair == nil {
		return err
	}
	options := read(ctx)
	options.WaitIndex, options.WaitTime = meta.LastIndex, time.Minute
	_, _, err = c.Client.KV().Get(key, options)
	return err
}

// End implements Service. Consul ends a session up to two TTLs after its last sign of life; this
// asks it to do so now.
func (c Consul) End(ctx context.Context, h Held) error {
	_, err := c.Client.Session().Destroy(h.session.(string), write(ctx))
	return err
}

func read(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
}

func write(ctx context.Context) *api.WriteOptions { return (&api.WriteOptions{}).WithContext(ctx) }
