package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// putting returns the write of a record.
func putting(t testing.TB, s *Store, rec store.Record) *write {
	t.Helper()
	value, err := driver.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	demanded, ok := revisionOf(rec.Version)
	if !ok {
		t.Fatalf("version %q", rec.Version)
	}
	return &write{key: rec.Key, demanded: demanded, op: clientv3.OpPut(s.prefix+rec.Key, "", withValue(value)), size: len(value)}
}

// Of writes that are sent together each comes out as if it was sent alone. Those in conflict cost the others a round trip.
func TestWritesTogether(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	traffic := &wire{}
	s := open(t, dial(t, srv.Addr, traffic.options()...), newPrefix(t))
	old := storetest.MustPut(t, s, held("changed", 1))
	stale, gone, deleted := storetest.MustPut(t, s, held("stale", 1)), storetest.MustPut(t, s, held("gone", 1)), storetest.MustPut(t, s, held("deleted", 1))
	current := storetest.MustPut(t, s, store.Record{Key: "stale", Version: stale.Version, Nonce: "other"})
	if err := s.Delete(t.Context(), "gone", gone.Version); err != nil {
		t.Fatal(err)
	}
	revision, _ := revisionOf(deleted.Version)
	done := []*write{
		putting(t, s, held("new", 1)), putting(t, s, old),
		{key: "deleted", demanded: revision, op: clientv3.OpDelete(s.prefix + "deleted")},
	}
	refused := []*write{putting(t, s, stale), putting(t, s, gone), putting(t, s, held("stale2", 1))}
	there := storetest.MustPut(t, s, held("stale2", 7))
	traffic.take()
	s.together(t.Context(), []*write{done[0], refused[0], done[1], refused[1], done[2], refused[2]})
	if calls := traffic.take(); !slices.Equal(calls, []string{txnCall, txnCall}) {
		t.Errorf("it took %v, want two transactions", calls)
	}
	for _, w := range done {
		if w.err != nil || w.made == 0 {
			t.Errorf("%s: %v", w.key, w.err)
		}
	}
	for _, w := range done[:2] {
		if rec, err := s.Get(t.Context(), w.key); err != nil || rec.Version != versionOf(w.made) {
			t.Errorf("%s is stored at %s, %v, want %d", w.key, rec.Version, err, w.made)
		}
	}
	if _, err := s.Get(t.Context(), "deleted"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was deleted: %v", err)
	}
	for i, want := range []store.Record{current, {}, there} {
		var conflict *store.ConflictError
		w := refused[i]
		if met := errors.As(w.err, &conflict); met != (want.Key != "") || met && conflict.Current.Version != want.Version {
			t.Errorf("%s: %v, want a conflict with %+v", w.key, w.err, want)
		}
	}
	if err := refused[1].err; !errors.Is(err, store.ErrNotFound) {
		t.Errorf("gone: %v", err)
	}
}

// What a member refuses together may be fine alone.
func TestWritesRefusedTogether(t *testing.T) {
	srv := servers.Etcd(t, servers.Set("max-request-bytes", "20000"))
	s := open(t, dial(t, srv.Addr), newPrefix(t))
	var group []*write
	for i, size := range []int{12_000, 12_000, 30_000} {
		rec := held(fmt.Sprint("k", i), 1)
		rec.Info = map[string]string{"fill": strings.Repeat("x", size)}
		group = append(group, putting(t, s, rec))
	}
	s.together(t.Context(), group)
	for i, w := range group {
		if tooLarge := i == 2; (w.err != nil) != tooLarge || errors.Is(w.err, store.ErrUnknownOutcome) {
			t.Errorf("%s: %v", w.key, w.err)
		}
		if _, err := s.Get(t.Context(), w.key); errors.Is(err, store.ErrNotFound) != (w.err != nil) {
			t.Errorf("%s is reported as %v, and read as %v", w.key, w.err, err)
		}
	}
}

// A server that did nothing and shows no conflict isn't asked for ever.
func TestRefuteEnds(t *testing.T) {
	s := open(t, dial(t, "127.0.0.1:1"), newPrefix(t))
	group := []*write{putting(t, s, held("a", 1)), putting(t, s, held("b", 1))}
	nothing := &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{}}}
	if rest := s.refute(group, &clientv3.TxnResponse{Responses: []*pb.ResponseOp{nothing, nothing}}); len(rest) > 0 || group[0].err == nil {
		t.Errorf("%d are sent again, %v", len(rest), group[0].err)
	}
}

// Where the client repeated the request, which it does without being asked, the outcome of no write in it is known.
func TestWritesTogetherRepeatedByTheClient(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	var once sync.Once
	traffic := &wire{spoil: func(method string, err error) error {
		once.Do(func() { err = status.Error(codes.Canceled, "RST_STREAM") })
		return err
	}}
	s := open(t, dial(t, srv.Addr, traffic.options()...), newPrefix(t))
	group := []*write{putting(t, s, held("a", 1)), putting(t, s, held("b", 1))}
	s.together(t.Context(), group)
	for _, w := range group {
		if !errors.Is(w.err, store.ErrUnknownOutcome) {
			t.Errorf("%s: %v, want an unknown outcome", w.key, w.err)
		}
		if _, err := s.Get(t.Context(), w.key); err != nil {
			t.Errorf("%s: %v: it was done", w.key, err)
		}
	}
}

// Writes that are asked for at the same time share requests, and whoever doesn't wait for the answer learns what is known.
func TestWritesAtTheSameTime(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	traffic := &wire{}
	network, prefix := servers.Proxy(t, srv.Addr), newPrefix(t)
	s := open(t, dial(t, network.Addr, traffic.options()...), prefix)
	direct := open(t, dial(t, srv.Addr), prefix)
	const writers = 40
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			rec := held(fmt.Sprint("k", i), 1)
			for range 5 {
				var err error
				if rec, err = s.Put(t.Context(), rec); err != nil {
					t.Error(err)
					return
				}
			}
			if got, err := direct.Get(t.Context(), rec.Key); err != nil || got.Version != rec.Version {
				t.Errorf("%s is stored at %s, %v, want %s", rec.Key, got.Version, err, rec.Version)
			}
		})
	}
	all.Wait()
	if n := len(traffic.take()); n >= 5*writers {
		t.Errorf("%d requests for %d writes", n, 5*writers)
	}
	network.SwallowReplies(true)
	cause := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
	defer cancel()
	for i := range writers {
		all.Go(func() {
			_, err := s.Put(ctx, held(fmt.Sprint("lost", i), 1))
			if !errors.Is(err, cause) {
				t.Errorf("%v, want the context's cause", err)
			}
			if _, getErr := direct.Get(t.Context(), fmt.Sprint("lost", i)); getErr == nil && !errors.Is(err, store.ErrUnknownOutcome) {
				t.Errorf("lost%d is stored, and reported as %v", i, err)
			}
		})
	}
	all.Wait()
}
