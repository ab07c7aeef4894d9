package chapter9

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Etcd keeps a lock in a key with a lease. Its version is the key's mod revision.
type Etcd struct{ Client *clientv3.Client }

// Create implements Service. A TTL has whole seconds.
func (e Etcd) Create(ctx context.Context, key, owner string, ttl time.Duration) (Held, error) {
	lease, err := e.Client.Grant(ctx, int64(ttl/time.Second))
	if err != nil {
		return Held{}, err
	}
	resp, err := e.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, owner, clientv3.WithLease(lease.ID))).
		Commit()
	if err == nil && !resp.Succeeded {
		err = ErrHeld
	}
	if err != nil {
		_, revoked := e.Client.Revoke(ctx, lease.ID)
		return Held{}, errors.Join(err, revoked)
	}
	return Held{Key: key, Version: resp.Header.Revision, session: lease.ID}, nil
}

// Renew implements Service.
func (e Etcd) Renew(ctx context.Context, h Held) error {
	_, err := e.Client.KeepAliveOnce(ctx, h.session.(clientv3.LeaseID))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return ErrLost
	}
	if err != nil {
		return err
	}
	resp, err := e.Client.Get(ctx, h.Key) // the lease may live on without the key
	if err == nil && (len(resp.Kvs) == 0 || resp.Kvs[0].ModRevision != h.Version) {
		err = ErrLost
	}
	return err
}

// Remove implements Service.
func (e Etcd) Remove(ctx context.Context, key string) error {
	_, err := e.Client.Delete(ctx, key)
	return err
}

// RemoveVersion implements Service.
func (e Etcd) RemoveVersion(ctx context.Context, h Held) error {
	resp, err := e.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(h.Key), "=", h.Version)).
		Then(clientv3.OpDelete(h.Key)).
		Commit()
	if err == nil && !resp.Succeeded {
		err = ErrLost
	}
	return err
}

// Changed implements Service.
func (e Etcd) Changed(ctx context.Context, key string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := e.Client.Get(ctx, key)
	if err != nil || len(resp.Kvs) == 0 {
		return err
	}
	for w := range e.Client.Watch(ctx, key, clientv3.WithRev(resp.Header.Revision+1)) {
		if err := w.Err(); err != nil || len(w.Events) > 0 {
			return err
		}
	}
	return ctx.Err()
}

// End implements Service: without signs of life the lease expires.
func (e Etcd) End(ctx context.Context, h Held) error {
	for {
		resp, err := e.Client.TimeToLive(ctx, h.session.(clientv3.LeaseID))
		if err != nil || resp.TTL < 0 {
			return err
		}
		if err := e.Changed(ctx, h.Key); err != nil {
			return err
		}
	}
}
