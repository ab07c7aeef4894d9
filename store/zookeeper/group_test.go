package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// putting returns the write of a record, and what will be read of it.
func putting(t testing.TB, s *Store, rec store.Record) (*write, store.Record) {
	t.Helper()
	w, stored, err := s.putting(rec)
	if err != nil {
		t.Fatal(err)
	}
	return w, stored
}

// Of writes that are sent together each comes out as if it was sent alone, whatever becomes of the others.
func TestWritesTogether(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, r := open(t, srv.Addr, aRoot())
	old, deleted := storetest.MustPut(t, s, held("changed")), storetest.MustPut(t, s, held("deleted"))
	stale, gone := storetest.MustPut(t, s, held("stale")), storetest.MustPut(t, s, held("gone"))
	current, there := storetest.MustPut(t, s, stale), storetest.MustPut(t, s, held("there"))
	if err := s.Delete(t.Context(), "gone", gone.Version); err != nil {
		t.Fatal(err)
	}
	for _, broken := range []bool{false, true} {
		var done, refused []*write
		var want []store.Record
		for _, rec := range []store.Record{held(fmt.Sprint("new", broken)), old} {
			w, stored := putting(t, s, rec)
			done, want = append(done, w), append(want, stored)
		}
		old = want[1]
		v, _ := parseVersion(deleted.Version)
		done = append(done, &write{key: "deleted", version: deleted.Version, ops: deletion(s.node("deleted"), v)})
		if broken {
			for _, rec := range []store.Record{stale, gone, held("there")} {
				w, _ := putting(t, s, rec)
				refused = append(refused, w)
			}
		}
		sent := r.during(func() { s.together(t.Context(), slices.Concat(refused, done)) })
		if !broken && sent[opMulti] != 1 {
			t.Errorf("%d multis for %d writes, want 1", sent[opMulti], len(done))
		}
		for _, w := range done {
			if w.err != nil {
				t.Errorf("%s: %v", w.key, w.err)
			}
		}
		for _, rec := range want {
			if got, err := s.Get(t.Context(), rec.Key); err != nil || got.Version != rec.Version || got.Nonce != rec.Nonce {
				t.Errorf("%s is stored at %s, %v, want %s", rec.Key, got.Version, err, rec.Version)
			}
		}
		if _, err := s.Get(t.Context(), "deleted"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("what was deleted: %v", err)
		}
		for _, w := range refused {
			var conflict *store.ConflictError
			in := map[string]string{"stale": current.Version, "there": there.Version}[w.key]
			if met := errors.As(w.err, &conflict); met != (in != "") || met && conflict.Current.Version != in || !met && !errors.Is(w.err, store.ErrNotFound) {
				t.Errorf("%s: %v, want a conflict with %q", w.key, w.err, in)
			}
		}
		deleted = storetest.MustPut(t, s, held("deleted"))
	}
}

// The first records of a root that isn't there yet are made together, too, and what a group doesn't fit in is sent in several.
func TestWritesTogetherInSeveralMultis(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, r := open(t, srv.Addr, aRoot())
	group := func() (all []*write) {
		for i := range 10 {
			rec := held(fmt.Sprint("k", i, newBirth()))
			rec.Info = map[string]string{"fill": strings.Repeat("x", 14_000)}
			w, _ := putting(t, s, rec)
			all = append(all, w)
		}
		return all
	}
	for round := range 2 {
		all := group()
		sent := r.during(func() { s.together(t.Context(), all) })
		if round > 0 && sent[opMulti] != 3 {
			t.Errorf("%d multis of at most 64 KiB for ten writes of 14, want 3", sent[opMulti])
		}
		for _, w := range all {
			if _, err := s.Get(t.Context(), w.key); err != nil || w.err != nil {
				t.Errorf("%s: %v, read: %v", w.key, w.err, err)
			}
		}
	}
}

// A connection that breaks before the answer comes leaves the outcome of all unknown.
func TestWritesTogetherOverABrokenConnection(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	network, root := servers.Proxy(t, srv.Addr), aRoot()
	s, _ := open(t, network.Addr, root)
	direct, _ := open(t, srv.Addr, root)
	storetest.MustPut(t, s, held("first"))
	network.SwallowReplies(true)
	var group []*write
	for i := range 3 {
		w, _ := putting(t, s, held(fmt.Sprint("k", i)))
		group = append(group, w)
	}
	var sending sync.WaitGroup
	sending.Go(func() { s.together(t.Context(), group) })
	storetest.Eventually(t, func() error { _, err := direct.Get(t.Context(), "k2"); return err })
	network.Refuse()
	sending.Wait()
	network.Heal()
	for _, w := range group {
		if !isUnknown(w.err) {
			t.Errorf("%s: %v, want an unknown outcome", w.key, w.err)
		}
	}
}

// Writes that are asked for at the same time share requests, and whoever doesn't wait for the answer learns what is known.
func TestWritesAtTheSameTime(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	network, root := servers.Proxy(t, srv.Addr), aRoot()
	s, r := open(t, network.Addr, root)
	direct, _ := open(t, srv.Addr, root)
	storetest.MustPut(t, s, held("first"))
	const writers, times = 40, 5
	var all sync.WaitGroup
	sent := r.during(func() {
		for i := range writers {
			all.Go(func() {
				rec := held(fmt.Sprint("k", i))
				for range times {
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
	})
	if sent[opMulti] >= writers*times {
		t.Errorf("%d requests for %d writes", sent[opMulti], writers*times)
	}
	network.SwallowReplies(true)
	cause := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
	defer cancel()
	for i := range writers {
		all.Go(func() {
			key := fmt.Sprint("lost", i)
			_, err := s.Put(ctx, held(key))
			if !errors.Is(err, cause) {
				t.Errorf("%v, want the context's cause", err)
			}
			if _, getErr := direct.Get(t.Context(), key); getErr == nil && !isUnknown(err) {
				t.Errorf("%s is stored, and reported as %v", key, err)
			}
		})
	}
	all.Wait()
	network.SwallowReplies(false)
}
