// Package fenceetcd guards what is kept in etcd: the check of the fencing token is a part of the
// caller's own transaction, so that nothing can come between check and write.
//
//	guard, err := fenceetcd.New(client, fenceetcd.Options{})
//	…
//	resp, err := guard.Txn(ctx, l.Sequencer()).
//		If(clientv3.Compare(clientv3.ModRevision("orders/17"), "=", rev)).
//		Then(clientv3.OpPut("orders/17", "paid")).
//		Commit()
//
// The highest token that was admitted, and whose it was, is kept in a key for each lease name, the
// mark. The first transaction of a new token writes it; the others compare it only. A transaction
// of an earlier term, or of another holder of the same term, is not applied, and Commit returns a
// *[fence.StaleError] out of the same round trip.
//
// What writes to the caller's keys without this package is not guarded. A writer needs permission
// to read and to write the mark as well, and nobody must delete it or put back an old one.
package fenceetcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/fence"
)

// DefaultPrefix is the prefix of the keys of marks unless [Options] name another one.
const DefaultPrefix = "fence/"

// Options of [New]. The zero value is ready for use.
type Options struct {
	// Prefix is the prefix of the key of every mark; the name of the lease follows. The default is
	// [DefaultPrefix]. It must not begin with the prefix of a store of leases.
	Prefix string
}

// Guard puts checks into transactions. It keeps nothing in memory, so any number of processes may
// have one on the same marks. All methods may be called from any goroutine.
type Guard struct {
	kv     clientv3.KV
	prefix string
}

var _ fence.Guard = (*Guard)(nil)

// New returns a guard whose transactions go through kv: a *[clientv3.Client], or a wrapper, such as
// one of package namespace. It does no I/O.
func New(kv clientv3.KV, opts Options) (*Guard, error) {
	if kv == nil {
		return nil, errors.New("etcd guard: kv is nil: want a client from clientv3.New")
	}
	if opts.Prefix == "" {
		opts.Prefix = DefaultPrefix
	}
	return &Guard{kv, opts.Prefix}, nil
}

// Check is [fence.Guard.Check], for resources elsewhere that are reached through several processes:
// all of them share the mark. It is one round trip. A resource in etcd itself is better guarded by
// [Guard.Txn]. A sequencer that came from outside has to be of the lease that guards the resource:
// ask [fence.Sequencer.Of] first.
func (g *Guard) Check(ctx context.Context, s fence.Sequencer) error {
	_, err := g.Txn(ctx, s).Commit()
	return err
}

// Txn returns a transaction like that of [clientv3.KV], which is applied only if the mark admits s.
// Then the response is as if the check weren't there, and Succeeded covers the caller's own
// comparisons alone. Otherwise Commit returns a *[fence.StaleError]. After another error the
// transaction may have been applied, as always in etcd. An error that matches [fence.ErrMalformed]
// comes without a request.
//
// In rare cases the client sends a transaction a second time by itself. Then a refusal is about the
// second copy. The first may have been applied, before the later term began.
//
// The server refuses a transaction that would write or delete its own mark. The check takes five of
// the 128 operations that a transaction may have by default.
func (g *Guard) Txn(ctx context.Context, s fence.Sequencer) clientv3.Txn {
	return &txn{guard: g, ctx: ctx, s: s}
}

// txn collects the caller's transaction.
type txn struct {
	guard        *Guard
	ctx          context.Context
	s            fence.Sequencer
	ifs          []clientv3.Cmp
	thens, elses []clientv3.Op
}

func (t *txn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.ifs = append(t.ifs, cs...)
	return t
}

func (t *txn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.thens = append(t.thens, ops...)
	return t
}

func (t *txn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.elses = append(t.elses, ops...)
	return t
}

// Commit sends one transaction. Comparisons can be joined by "and" only, so it asks for what
// refuses s, and the caller's transaction is in the other branch: there, the mark is missing,
// lower, or that of s.
func (t *txn) Commit() (*clientv3.TxnResponse, error) {
	if err := t.s.Valid(); err != nil {
		return nil, err
	}
	key, mine := t.guard.prefix+t.s.Name, encode(fence.Mark{Token: t.s.Token, Holder: t.s.Holder})
	resp, err := t.guard.kv.Txn(t.ctx).
		If(
			clientv3.Compare(clientv3.CreateRevision(key), ">", 0), // else it is missing
			clientv3.Compare(clientv3.Value(key), ">", digits(t.s.Token)),
			clientv3.Compare(clientv3.Value(key), "!=", mine),
		).
		Then(clientv3.OpGet(key)).
		Else(clientv3.OpTxn(
			[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), ">", 0), clientv3.Compare(clientv3.Value(key), "<", digits(1))},
			[]clientv3.Op{clientv3.OpGet(key)}, // lower than every mark: it is none
			[]clientv3.Op{
				// In this order: the server compares what is put with the deletions that come
				// before.
				clientv3.OpTxn(t.ifs, t.thens, t.elses),
				clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Value(key), "=", mine)}, nil, []clientv3.Op{clientv3.OpPut(key, mine)}),
			},
		)).
		Commit()
	switch {
	case err != nil:
		return nil, err
	case resp.Succeeded:
		return nil, t.refusal(key, resp.Responses[0])
	}
	inner := resp.Responses[0].GetResponseTxn()
	if inner.Succeeded {
		return nil, t.refusal(key, inner.Responses[0])
	}
	own := inner.Responses[0].GetResponseTxn()
	return &clientv3.TxnResponse{Header: resp.Header, Succeeded: own.Succeeded, Responses: own.Responses}, nil
}

// refusal returns why a transaction was not applied, out of its response.
func (t *txn) refusal(key string, read *etcdserverpb.ResponseOp) error {
	kvs := read.GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return fmt.Errorf("%s: the mark %s refused the transaction, and is not there", t.s.Name, key)
	}
	mark, err := decode(string(kvs[0].Value))
	if err == nil {
		_, err = mark.Admit(t.s.Name, t.s.Holder, t.s.Token)
	}
	if errors.Is(err, fence.ErrStale) {
		return err
	}
	return fmt.Errorf("%s: the value of %s is no mark: %.100q: find out who wrote it, and put back TOKEN, in 16 digits, and HOLDER",
		t.s.Name, key, kvs[0].Value)
}

// digits is a token as text whose order, byte by byte, is that of tokens: the largest one has 16
// digits.
func digits(t fence.Token) string { return fmt.Sprintf("%016d", uint64(t)) }

// encode returns the value of a mark. It is greater than its digits alone, and than every mark of a
// lower token.
func encode(m fence.Mark) string { return digits(m.Token) + " " + m.Holder }

func decode(value string) (fence.Mark, error) {
	number, holder, ok := strings.Cut(value, " ")
	if !ok || len(number) != 16 {
		return fence.Mark{}, errors.New("no mark")
	}
	token, err := fence.ParseToken(number)
	return fence.Mark{Token: token, Holder: holder}, err
}
