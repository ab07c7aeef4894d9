package fenceetcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fenceetcd"
	"github.com/leasehold/leasehold/fence/fencetest"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

// dial returns a client of the shared server.
func dial(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{servers.Etcd(t, servers.Shared()).Addr},
		Logger:    clientv3.NewCtxClient(t.Context()).GetLogger(), // silent
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// register is a guarded resource: a key for each write, which etcd remembers the order of.
type register struct {
	t      testing.TB
	client *clientv3.Client
	guard  *fenceetcd.Guard
	prefix string
	writes atomic.Int64
}

func newRegister(t testing.TB) *register {
	r := &register{t: t, client: dial(t), prefix: fmt.Sprintf("%s/%d/", t.Name(), time.Now().UnixNano())}
	r.reopen()
	return r
}

func (r *register) reopen() {
	r.t.Helper()
	var err error
	if r.guard, err = fenceetcd.New(r.client, fenceetcd.Options{Prefix: r.prefix + "fence/"}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *register) write(ctx context.Context, s fence.Sequencer) error {
	key := fmt.Sprintf("%slog/%d", r.prefix, r.writes.Add(1))
	_, err := r.guard.Txn(ctx, s).Then(clientv3.OpPut(key, s.Token.String())).Commit()
	return err
}

func (r *register) written() (tokens []fence.Token) {
	r.t.Helper()
	resp, err := r.client.Get(r.t.Context(), r.prefix+"log/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, kv := range resp.Kvs {
		token, err := fence.ParseToken(string(kv.Value))
		if err != nil {
			r.t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	return tokens
}

// mark returns the key that holds the mark of s, and its value.
func (r *register) mark(s fence.Sequencer) (value string, puts int64) {
	r.t.Helper()
	resp, err := r.client.Get(r.t.Context(), r.prefix+"fence/"+s.Name)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, kv := range resp.Kvs {
		value, puts = string(kv.Value), kv.Version
	}
	return value, puts
}

func (r *register) setMark(s fence.Sequencer, value string) {
	r.t.Helper()
	if _, err := r.client.Put(r.t.Context(), r.prefix+"fence/"+s.Name, value); err != nil {
		r.t.Fatal(err)
	}
}

func TestStory(t *testing.T) {
	r := newRegister(t)
	fencetest.Story(t, r.write, fencetest.Options{Reopen: r.reopen, Written: r.written})
}

func TestRace(t *testing.T) {
	r := newRegister(t)
	fencetest.Race(t, r.write, r.written)
}

func TestCheckIsAGuard(t *testing.T) {
	r := newRegister(t)
	fencetest.Story(t, func(ctx context.Context, s fence.Sequencer) error { return r.guard.Check(ctx, s) }, fencetest.Options{Reopen: r.reopen})
}

// Behind the check the caller's transaction is what it was: comparisons, both branches, and the response.
func TestCallersTransaction(t *testing.T) {
	r := newRegister(t)
	ctx, key := t.Context(), r.prefix+"balance"
	r.guard = must(fenceetcd.New(namespace.NewKV(r.client.KV, r.prefix), fenceetcd.Options{}))
	update := func(s fence.Sequencer, from, to string) (*clientv3.TxnResponse, error) {
		cmp := clientv3.Compare(clientv3.Value("balance"), "=", from)
		if from == "" {
			cmp = clientv3.Compare(clientv3.CreateRevision("balance"), "=", 0)
		}
		return r.guard.Txn(ctx, s).If(cmp).
			Then(clientv3.OpPut("balance", to), clientv3.OpGet("balance")).
			Else(clientv3.OpGet("balance")).Commit()
	}
	a, b := fence.Sequencer{Name: "n", Holder: "a", Token: 5}, fence.Sequencer{Name: "n", Holder: "b", Token: 6}
	resp, err := update(a, "", "100")
	if err != nil || !resp.Succeeded || len(resp.Responses) != 2 || string(resp.Responses[1].GetResponseRange().Kvs[0].Value) != "100" || resp.Header.Revision == 0 {
		t.Fatalf("%+v, %v", resp, err)
	}
	// Its comparison fails, and the first request of the new term was heard of all the same.
	resp, err = update(b, "50", "60")
	if err != nil || resp.Succeeded || len(resp.Responses) != 1 || string(resp.Responses[0].GetResponseRange().Kvs[0].Value) != "100" {
		t.Fatalf("%+v, %v", resp, err)
	}
	if _, err := update(a, "100", "0"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("after that, under the token before: %v", err)
	}
	got, err := r.client.Get(ctx, key)
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "100" {
		t.Errorf("%v, %v", got, err)
	}
	for what, op := range map[string]clientv3.Op{
		"deletes": clientv3.OpDelete("fence/", clientv3.WithPrefix()), "overwrites": clientv3.OpPut("fence/n", ""),
	} {
		if resp, err := r.guard.Txn(ctx, b).Then(op).Commit(); err == nil {
			t.Errorf("a transaction that %s its mark was applied: %+v", what, resp)
		}
	}
	var many []clientv3.Op
	for i := range 123 {
		many = append(many, clientv3.OpPut(fmt.Sprint("many/", i), ""))
	}
	if _, err := r.guard.Txn(ctx, b).Then(many...).Commit(); err != nil {
		t.Errorf("of 123 operations: %v", err)
	}
}

// trips counts transactions.
type trips struct {
	clientv3.KV
	n int
}

func (k *trips) Txn(ctx context.Context) clientv3.Txn { k.n++; return k.KV.Txn(ctx) }

// One round trip for each write, refused or not, and one write of the mark for each new token.
func TestCost(t *testing.T) {
	r := newRegister(t)
	counted := &trips{KV: r.client.KV}
	r.guard = must(fenceetcd.New(counted, fenceetcd.Options{Prefix: r.prefix + "fence/"}))
	writes := 0
	for token := fence.Token(10); token < 13; token++ {
		s := fence.Sequencer{Name: "n", Holder: "a", Token: token}
		for range 4 {
			if err := r.write(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			writes++
		}
		if err := r.write(t.Context(), fence.Sequencer{Name: "n", Holder: "b", Token: token}); !errors.Is(err, fence.ErrStale) {
			t.Error(err)
		}
		writes++
	}
	if _, puts := r.mark(fence.Sequencer{Name: "n"}); puts != 3 || counted.n != writes {
		t.Errorf("%d writes of the mark and %d round trips for 3 tokens and %d writes", puts, counted.n, writes)
	}
}

func TestBadInput(t *testing.T) {
	r := newRegister(t)
	s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	// What can't be compared in order is refused, and nothing is sent.
	for _, bad := range []fence.Sequencer{
		{Name: "n", Holder: "a"},
		{Name: "n", Holder: "a", Token: fence.MaxToken + 1},
		{Name: "", Holder: "a", Token: 5},
		{Name: "n", Holder: "", Token: 5},
		{Name: "n", Holder: strings.Repeat("a", fence.MaxName+1), Token: 5},
	} {
		if err := r.write(t.Context(), bad); !errors.Is(err, fence.ErrMalformed) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if tokens := r.written(); len(tokens) != 0 {
		t.Errorf("written under %v", tokens)
	}
	// What is greater than a mark, and isn't one.
	for _, value := range []string{"x", "9", "0000000000000006", "9999999999999999 a"} {
		r.setMark(s, value)
		if err := r.write(t.Context(), s); err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "is no mark") {
			t.Errorf("the mark is %q: %v", value, err)
		}
	}
	r.setMark(s, "0000000000000006 b c")
	var stale *fence.StaleError
	if err := r.write(t.Context(), s); !errors.As(err, &stale) || *stale != (fence.StaleError{Name: "n", Got: 5, Current: 6, Holder: "b c"}) {
		t.Errorf("%v", err)
	}
	if _, err := fenceetcd.New(nil, fenceetcd.Options{}); err == nil {
		t.Error("no client was taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.write(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func must(g *fenceetcd.Guard, err error) *fenceetcd.Guard {
	if err != nil {
		panic(err)
	}
	return g
}

// A value that is lower than every mark is no low mark: it refuses all.
func TestFinding_G7_AValueThatIsNoMarkRefusesAll(t *testing.T) {
	r := newRegister(t)
	for _, value := range []string{"", "-1", "-5 a", "0", "0000000000000000 a", "no mark"} {
		if _, err := r.client.Put(t.Context(), r.prefix+"fence/n", value); err != nil {
			t.Fatal(err)
		}
		err := r.write(t.Context(), fence.Sequencer{Name: "n", Holder: "a", Token: 5})
		if err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "is no mark") {
			t.Errorf("%q: %v", value, err)
		}
	}
	if got := r.written(); len(got) > 0 {
		t.Errorf("written under %v", got)
	}
}
