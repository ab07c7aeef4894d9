package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// The client repeats a write whose answer is that it was cancelled, though nobody cancelled it. The second copy meets what the first
// one wrote.
func TestWriteRepeatedByTheClientIsUnknown(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	sent := 0
	traffic := &wire{spoil: func(method string, err error) error {
		if sent++; method == txnCall && sent == 1 && err == nil {
			return status.Error(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL")
		}
		return err
	}}
	s := open(t, dial(t, srv.Addr, traffic.options()...), newPrefix(t))
	_, err := s.Put(t.Context(), held("k", 1))
	if sent != 2 {
		t.Fatalf("the write was sent %d times, want 2: %v", sent, err)
	}
	if !errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, store.ErrConflict) {
		t.Errorf("a write that was sent twice: %v, want an unknown outcome", err)
	}
	if rec, err := s.Get(t.Context(), "k"); err != nil || rec.Nonce != "n1" {
		t.Errorf("stored is %+v, %v, want the write", rec, err)
	}
}

func TestRefused(t *testing.T) {
	for _, err := range []error{
		rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCUserEmpty, rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrGRPCAuthOldRevision,
		rpctypes.ErrGRPCRequestTooLarge, rpctypes.ErrGRPCRequestTooManyRequests, rpctypes.ErrGRPCNotSupportedForLearner,
		status.Error(codes.Unknown, "etcdserver: too many requests"), // as servers really say it
		status.Error(codes.Unimplemented, "unknown service etcdserverpb.KV"),
	} {
		if !refused(err) {
			t.Errorf("%v counts as perhaps done", err)
		}
	}
	for _, err := range []error{
		nil, context.Canceled, context.DeadlineExceeded, errors.New("EOF"),
		rpctypes.ErrGRPCNoSpace, // the member that finds the database full applies the write
		rpctypes.ErrGRPCTimeout, rpctypes.ErrGRPCTimeoutDueToLeaderFail, rpctypes.ErrGRPCTimeoutDueToConnectionLost,
		rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCLeaderChanged, rpctypes.ErrGRPCStopped, rpctypes.ErrGRPCCorrupt,
		status.Error(codes.Canceled, ""), status.Error(codes.DeadlineExceeded, ""), status.Error(codes.Unavailable, ""),
		status.Error(codes.Internal, ""), status.Error(codes.Unknown, "raft proposal dropped"),
		status.Error(codes.ResourceExhausted, "grpc: received message larger than max"),
	} {
		if refused(err) {
			t.Errorf("%v counts as not done", err)
		}
	}
}

// What a database that is full refuses may be done: the write that finds it full is applied.
func TestFullDatabase(t *testing.T) {
	srv := servers.Etcd(t, servers.Set("quota-backend-bytes", "4194304"))
	s := open(t, dial(t, srv.Addr), newPrefix(t))
	var all sync.WaitGroup
	var done atomic.Int64
	for i := range 32 {
		all.Go(func() {
			rec := held(fmt.Sprint("k", i), 1)
			rec.Info = map[string]string{"fill": strings.Repeat("x", store.MaxRecord*3/4)}
			for {
				written, err := s.Put(t.Context(), rec)
				if err == nil {
					rec = written
					rec.Token++
					rec.Nonce = fmt.Sprint("n", rec.Token)
					continue
				}
				if !strings.Contains(err.Error(), "alarm disarm") {
					t.Errorf("a write to a full database: %v, want what to do", err)
				}
				stored, getErr := s.Get(t.Context(), rec.Key)
				if getErr == nil && stored.Nonce == rec.Nonce {
					done.Add(1)
					if !errors.Is(err, store.ErrUnknownOutcome) {
						t.Errorf("a write that was done: %v, want an unknown outcome", err)
					}
				}
				return
			}
		})
	}
	all.Wait()
	t.Logf("%d of 32 writes were done of which the server said that there was no space", done.Load())
}

// A write that never found a connection is not done. One that was sent and not answered is unknown.
func TestOutcomeWithoutAnswer(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	network, prefix := servers.Proxy(t, srv.Addr), newPrefix(t)
	s, direct := open(t, dial(t, network.Addr), prefix), open(t, dial(t, srv.Addr), prefix)
	rec := storetest.MustPut(t, s, held("k", 1))

	network.Refuse()
	rec.Nonce = "refused"
	eventually(t, "a client that knows", func() bool { // until it does, a write may have been sent
		_, err := s.Put(storetest.Within(t, time.Second/2), rec)
		return !errors.Is(err, store.ErrUnknownOutcome)
	})
	_, err := s.Put(storetest.Within(t, time.Second/2), rec)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "is etcd up") {
		t.Errorf("a write without a connection: %v, want the context's cause and what to do", err)
	}
	if stored, err := direct.Get(t.Context(), "k"); err != nil || stored.Nonce != "n1" {
		t.Errorf("stored is %+v, %v", stored, err)
	}
	network.Heal()

	eventually(t, "a connection", func() bool { _, err := s.Get(storetest.Within(t, time.Second), "k"); return err == nil })
	network.SwallowReplies(true)
	rec.Nonce = "swallowed"
	if _, err := s.Put(storetest.Within(t, time.Second), rec); !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write whose reply was swallowed: %v, want an unknown outcome and the context's cause", err)
	}
	eventually(t, "the write, at a server that is slow too", func() bool {
		stored, err := direct.Get(t.Context(), "k")
		return err == nil && stored.Nonce == "swallowed"
	})
	network.Heal()
}

// What a server refuses is not done, and the error says what to do, in every method.
func TestPermissions(t *testing.T) {
	srv := servers.Etcd(t)
	root := dial(t, srv.Addr)
	ctx := t.Context()
	var err error
	do := func(_ any, e error) { err = errors.Join(err, e) }
	do(root.UserAdd(ctx, "root", "r"))
	do(root.RoleAdd(ctx, "root"))
	do(root.UserGrantRole(ctx, "root", "root"))
	do(root.UserAdd(ctx, "ada", "a"))
	do(root.RoleAdd(ctx, "leases"))
	do(root.RoleGrantPermission(ctx, "leases", "mine/", clientv3.GetPrefixRangeEnd("mine/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	do(root.UserGrantRole(ctx, "ada", "leases"))
	do(root.AuthEnable(ctx))
	if err != nil {
		t.Fatal(err)
	}
	login := func(user, password string) *clientv3.Client {
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{srv.Addr}, Username: user, Password: password, Logger: clientv3.NewCtxClient(ctx).GetLogger(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return client
	}
	for name, c := range map[string]struct {
		s           *Store
		want, found string
	}{
		"nobody":         {open(t, dial(t, srv.Addr), "mine/"), "demands a user", "server"},
		"another prefix": {open(t, login("ada", "a"), "other/"), "grant-permission", "permissions"},
	} {
		_, putErr := c.s.Put(ctx, held("k", 1))
		_, getErr := c.s.Get(ctx, "k")
		_, waitErr := c.s.Wait(storetest.Within(t, soon), "k", "")
		var listErr error
		for _, err := range c.s.List(ctx, "") {
			listErr = err
		}
		for call, err := range map[string]error{"Put": putErr, "Get": getErr, "Delete": c.s.Delete(ctx, "k", "1"), "Wait": waitErr, "List": listErr} {
			if err == nil || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v, want a known outcome and %q", name, call, err, c.want)
			}
		}
		if findings := c.s.Inspect(ctx); !failed(findings, c.found) || !strings.Contains(fmt.Sprint(findings), c.want) {
			t.Errorf("%s: Inspect found %+v, want %s failed, and %q", name, findings, c.found, c.want)
		}
	}
	s := open(t, login("ada", "a"), "mine/")
	waiting := startWait(t, s, "k", "")
	mustWake(t, "with permission", waiting, storetest.MustPut(t, s, held("k", 1)))
	for _, f := range s.Inspect(ctx) {
		if f.Status == driver.StatusFail {
			t.Errorf("Inspect found %+v", f)
		}
		if f.What == "identity" && !strings.Contains(f.Detail, "ada") {
			t.Errorf("Inspect found %+v, want user ada", f)
		}
	}
}

func failed(findings []driver.Finding, what string) bool {
	for _, f := range findings {
		if f.What == what && f.Status == driver.StatusFail && f.Detail != "" {
			return true
		}
	}
	return false
}
