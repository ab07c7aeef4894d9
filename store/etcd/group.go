package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// write is a change of one record.
type write struct {
	key      string
	demanded int64 // the key's mod revision; 0 is that of a key that isn't stored
	op       clientv3.Op
	size     int

	made int64 // the revision that it made
	met  int64 // or that of the record, or of the store without one, that was in the way
	err  error // or why it made none
}

// Key and Size have writes sent in groups.
func (w *write) Key() string { return w.key }
func (w *write) Size() int   { return w.size + 2*len(w.key) }

// alone sends one write.
func (s *Store) alone(ctx context.Context, w *write) { s.together(ctx, []*write{w}) }

// together sends writes of different keys in one transaction, which does all of them or none. When
// some of them are in conflict, the others are sent again without those. So are writes that a
// member refuses together, each by itself: one may be refused that alone is too large, or not
// permitted.
func (s *Store) together(ctx context.Context, group []*write) {
	tries := &attempts{}
	resp, err := s.transaction(context.WithValue(ctx, attemptsKey{}, tries), group)
	switch {
	case err == nil && resp.Succeeded:
		for _, w := range group {
			w.made = resp.Header.Revision
		}
	case err == nil && tries.certain():
		rest := s.refute(group, resp)
		if len(rest) > 0 {
			s.together(ctx, rest)
		}
	case err == nil:
		for _, w := range group {
			w.err = driver.Unknown(w.key, errors.New("the client sent the write more than once, and only the last copy was answered"))
		}
	case len(group) > 1 && tries.refused():
		for _, w := range group {
			s.alone(ctx, w)
		}
	default:
		for _, w := range group {
			w.err = tries.failed(ctx, w.key, err)
		}
	}
}

// transaction does what the writes ask for if all find the revisions that they demand, and else
// reads what is there.
func (s *Store) transaction(ctx context.Context, group []*write) (*clientv3.TxnResponse, error) {
	conditions, changes, reads := make([]clientv3.Cmp, len(group)), make([]clientv3.Op, len(group)), make([]clientv3.Op, len(group))
	for i, w := range group {
		conditions[i] = clientv3.Compare(clientv3.ModRevision(s.prefix+w.key), "=", w.demanded)
		changes[i], reads[i] = w.op, clientv3.OpGet(s.prefix+w.key)
	}
	return s.kv.Txn(ctx).If(conditions...).Then(changes...).Else(reads...).Commit()
}

// refute tells the writes of a transaction that did nothing which of them are in conflict, and
// returns the others, which are fewer: none, for a server that shows no conflict.
func (s *Store) refute(group []*write, resp *clientv3.TxnResponse) (rest []*write) {
	found := make([]*mvccpb.KeyValue, len(group)) // nil for what isn't stored
	for i, w := range group {
		if kvs := resp.Responses[i].GetResponseRange().GetKvs(); len(kvs) > 0 {
			found[i] = kvs[0]
		}
		if found[i].GetModRevision() == w.demanded {
			rest = append(rest, w)
		}
	}
	if len(rest) == len(group) {
		rest = nil
	}
	for i, w := range group {
		if rest == nil || found[i].GetModRevision() != w.demanded {
			w.err, w.met = s.inTheWay(w.key, found[i]), resp.Header.GetRevision()
			if found[i] != nil {
				w.met = found[i].ModRevision
			}
		}
	}
	return rest
}

// inTheWay returns why a write isn't done: what was found instead of the record that it demands,
// nil if that is no record.
func (s *Store) inTheWay(key string, found *mvccpb.KeyValue) error {
	if found == nil {
		return driver.NotFound(key)
	}
	current, err := s.record(found)
	if err != nil {
		return err
	}
	return &store.ConflictError{Current: current}
}
