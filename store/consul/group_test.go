package consul

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// putting returns the write of a record.
func putting(t testing.TB, rec store.Record) *write {
	t.Helper()
	body, err := driver.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	index, _ := parseVersion(rec.Version)
	return &write{key: rec.Key, version: rec.Version, op: api.KVTxnOp{Verb: api.KVCAS, Value: body, Index: index, Flags: index}}
}

// stands checks that a write is stored at the version that it was told, with its value.
func stands(t testing.TB, s *Store, w *write) store.Record {
	t.Helper()
	got, err := s.Get(t.Context(), w.key)
	if body, _ := driver.Marshal(got); err != nil || w.err != nil || got.Version != formatVersion(w.index) || string(body) != string(w.op.Value) {
		t.Errorf("%s is stored at %s, %v, want %d; its write: %v", w.key, got.Version, err, w.index, w.err)
	}
	return got
}

// Of writes that are sent together each comes out as if it was sent alone, whatever becomes of the others.
func TestWritesTogether(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	s, r := open(t, api.Config{Address: srv.Addr}, Options{Prefix: aPrefix()})
	old := storetest.MustPut(t, s, held("a/changed"))
	stale, gone := storetest.MustPut(t, s, held("stale")), storetest.MustPut(t, s, held("gone"))
	current, there := storetest.MustPut(t, s, stale), storetest.MustPut(t, s, held("there"))
	if err := s.Delete(t.Context(), "gone", gone.Version); err != nil {
		t.Fatal(err)
	}
	for _, broken := range []bool{false, true} {
		done := []*write{putting(t, held(fmt.Sprint("new ", broken))), putting(t, old)}
		var refused []*write
		if broken {
			for _, rec := range []store.Record{stale, gone, held("there")} {
				refused = append(refused, putting(t, rec))
			}
		}
		sent := r.during(func() { s.together(t.Context(), slices.Concat(refused, done)) })
		if !broken && len(sent) != 1 {
			t.Errorf("%q for %d writes, want 1 request", sent, len(done))
		}
		for _, w := range done {
			if rec := stands(t, s, w); w.key == old.Key {
				old = rec
			}
		}
		for _, w := range refused {
			var conflict *store.ConflictError
			in := map[string]string{"stale": current.Version, "there": there.Version}[w.key]
			if met := errors.As(w.err, &conflict); met != (in != "") || met && conflict.Current.Version != in || !met && !errors.Is(w.err, store.ErrNotFound) {
				t.Errorf("%s: %v, want a conflict with %q", w.key, w.err, in)
			}
		}
	}
}

// What a transaction doesn't fit in is sent in several.
func TestWritesTogetherInSeveralTransactions(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	s, r := open(t, api.Config{Address: srv.Addr}, Options{Prefix: aPrefix()})
	var group []*write
	for i := range 10 {
		rec := held(fmt.Sprint("k", i))
		rec.Info = map[string]string{"fill": strings.Repeat("x", 14_000)}
		group = append(group, putting(t, rec))
	}
	if sent := r.during(func() { s.together(t.Context(), group) }); len(sent) != 3 {
		t.Errorf("%q for ten writes of 14 KB, want 3 transactions of at most 64 KiB", sent)
	}
	for _, w := range group {
		stands(t, s, w)
	}
}

// A connection that breaks before the answer comes leaves the outcome of all unknown. Writes that got no connection were not done.
func TestWritesTogetherOverABrokenConnection(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	network, prefix := servers.Proxy(t, srv.Addr), aPrefix()
	s, _ := open(t, api.Config{Address: network.Addr}, Options{Prefix: prefix})
	direct, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix})
	group := func(name string) (all []*write) {
		for i := range 3 {
			all = append(all, putting(t, held(fmt.Sprint(name, i))))
		}
		return all
	}
	network.SwallowReplies(true)
	lost := group("lost")
	var sending sync.WaitGroup
	sending.Go(func() { s.together(t.Context(), lost) })
	storetest.Eventually(t, func() error { _, err := direct.Get(t.Context(), "lost2"); return err })
	network.Refuse()
	sending.Wait()
	for _, w := range lost {
		if !isUnknown(w.err) {
			t.Errorf("%s: %v, want an unknown outcome", w.key, w.err)
		}
	}
	unsent := group("unsent")
	s.together(t.Context(), unsent)
	network.Heal()
	for _, w := range unsent {
		if w.err == nil || isUnknown(w.err) {
			t.Errorf("%s: %v, want an error of known outcome", w.key, w.err)
		}
	}
}

// A server that doesn't say what it wrote, or says it of other keys, leaves the outcome of those writes unknown.
func TestWritesTogetherMustBeToldOneByOne(t *testing.T) {
	kv := func(key string, index uint64) *api.TxnResult {
		return &api.TxnResult{KV: &api.KVPair{Key: key, ModifyIndex: index}}
	}
	for _, c := range []struct {
		name    string
		results api.TxnResults
		want    uint64 // 0 for unknown
	}{
		{"told", api.TxnResults{kv("p/a", 3), kv("p/b", 4)}, 4},
		{"too few", api.TxnResults{kv("p/b", 4)}, 0},
		{"another key", api.TxnResults{kv("p/b", 4), kv("p/a", 4)}, 0},
		{"no index", api.TxnResults{kv("p/a", 3), kv("p/b", 0)}, 0},
		{"no key", api.TxnResults{kv("p/a", 3), {}}, 0},
	} {
		index, err := written("b", "p/b", c.results, 1)
		if index != c.want || isUnknown(err) != (c.want == 0) {
			t.Errorf("%s: %d, %v, want %d", c.name, index, err, c.want)
		}
	}
}

// Writes that are asked for at the same time share requests, and a caller that doesn't wait for the answer learns what is known.
func TestWritesAtTheSameTime(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	network, prefix := servers.Proxy(t, srv.Addr), aPrefix()
	s, r := open(t, api.Config{Address: network.Addr}, Options{Prefix: prefix})
	direct, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix})
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
	if len(sent) >= writers*times {
		t.Errorf("%d requests for %d writes", len(sent), writers*times)
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

// A write that isn't permitted doesn't take those with it that are sent together with it.
func TestWritesTogetherOfWhichOneIsNotPermitted(t *testing.T) {
	const root = "8e1a2f5c-6c1f-4c53-9d2e-0123456789ab"
	srv := servers.Consul(t, servers.Password(root), servers.Set("acl", `{"enabled": true, "default_policy": "deny",
		"tokens": {"initial_management": "`+root+`", "agent": "`+root+`"}}`))
	admin, err := api.NewClient(&api.Config{Address: srv.Addr, Token: root})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, api.Config{Address: srv.Addr, Token: token(t, admin, `key_prefix "leasehold/mine/" { policy = "write" }`)}, Options{})
	mine, others := putting(t, held("mine/k")), putting(t, held("others/k"))
	s.together(t.Context(), []*write{others, mine})
	stands(t, s, mine)
	if others.err == nil || isUnknown(others.err) || !strings.Contains(others.err.Error(), "refuses this token") {
		t.Errorf("%v, want that the token is refused", others.err)
	}
}

// Only what a server says of a transaction's own is a reason to send its writes one by one: not that it is too busy or has no leader, nor what
// leaves the outcome unknown.
func TestWhenWritesAreSentOneByOne(t *testing.T) {
	for code, want := range map[int]bool{400: true, 403: true, 409: true, 413: true, 408: false, 429: false, 499: false, 500: false, 502: false} {
		if got := refusedWhole(api.StatusError{Code: code, Body: "given up"}); got != want {
			t.Errorf("%d: one by one: %v, want %v", code, got, want)
		}
	}
	if refusedWhole(nil) || refusedWhole(api.StatusError{Code: 500, Body: noLeader}) || refusedWhole(errors.New("the connection broke")) {
		t.Error("what was not answered or had no leader is sent one by one")
	}
}
