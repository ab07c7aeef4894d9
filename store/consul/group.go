package consul

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// write is a Put of one record.
type write struct {
	key     string
	version string // that is demanded; "" is that of a key that isn't stored
	op      api.KVTxnOp

	index uint64 // that it gave the key
	err   error  // why it wasn't done
}

// Key and Size have writes sent in groups.
func (w *write) Key() string { return w.key }
func (w *write) Size() int   { return len(w.key) + len(w.op.Value) }

// write has w done, by itself or together with others that are asked for at the same time.
func (s *Store) write(ctx context.Context, w *write) error {
	sent, err := s.writes.Do(ctx, w, func() { s.alone(ctx, w) })
	switch {
	case err == nil:
		return w.err
	case sent:
		return driver.Unknown(w.key, s.failed(ctx, err))
	}
	return err
}

// mostTogether is how many bytes of writes go in one transaction: about what the largest record
// takes alone. So a server whose limits let all records through lets all transactions through.
const mostTogether = store.MaxRecord

// together sends writes of different keys in as few transactions as they fit in, at the same time.
// It returns when all are answered.
func (s *Store) together(ctx context.Context, group []*write) {
	var others sync.WaitGroup
	defer others.Wait()
	first, bytes := 0, 0
	for i, w := range group {
		if bytes += w.Size(); bytes > mostTogether && i > first {
			part := group[first:i]
			others.Go(func() { s.transaction(ctx, part) })
			first, bytes = i, w.Size()
		}
	}
	s.transaction(ctx, group[first:])
}

// transaction has the server do all of the writes or none. When it refuses that, each is sent by
// itself: one of them is in conflict, or not permitted, and the others are not.
func (s *Store) transaction(ctx context.Context, group []*write) {
	if len(group) == 1 {
		s.alone(ctx, group[0])
		return
	}
	ops := make([]api.KVTxnOp, len(group))
	for i, w := range group {
		ops[i] = w.op
		s.address(&ops[i], w.key)
	}
	results, sent, err := s.txn(ctx, ops)
	if refusedWhole(err) {
		var each sync.WaitGroup
		for _, w := range group {
			each.Go(func() { s.alone(ctx, w) })
		}
		each.Wait()
		return
	}
	for i, w := range group {
		if err != nil {
			w.err = s.outcome(ctx, w.key, sent, err)
			continue
		}
		w.index, w.err = written(w.key, ops[i].Key, results, i)
	}
}

// refusedWhole reports whether an error of a transaction says that nothing of it was done because
// of what it consists of. That there are too many requests is no reason to send more.
func refusedWhole(err error) bool {
	var status api.StatusError
	return errors.As(err, &status) && status.Code/100 == 4 && status.Code != http.StatusTooManyRequests && refused(err)
}

// alone sends one write.
func (s *Store) alone(ctx context.Context, w *write) {
	for {
		w.index, w.err = s.change(ctx, w.key, w.version, w.op)
		if !errors.Is(w.err, errVanished) || ctx.Err() != nil {
			return
		}
	}
}
