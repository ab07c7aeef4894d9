package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// TestRowsOfOthersAreLeftAlone: a znode that Leasehold didn't write is an error that names it, and nobody overwrites it.
func TestRowsOfOthersAreLeftAlone(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, _ := open(t, srv.Addr, aRoot())
	good := storetest.MustPut(t, s, held("good"))
	rows := map[string]string{
		"empty": "", "text": "hello", "json": `{"v":1}`, "cut off": newBirth() + "\n" + `{"v":1,"owner":"x`, "newer": newBirth() + "\n" + `{"v":9}`,
		"birth/alone": newBirth(), "no owner's token": newBirth() + "\n" + `{"v":1,"owner":"x","ttl":"5s"}`,
	}
	for key, data := range rows {
		if _, err := s.conn.Create(s.node(key), []byte(data), 0, s.acl); err != nil {
			t.Fatal(err)
		}
		_, getErr := s.Get(t.Context(), key)
		_, createErr := s.Put(t.Context(), held(key))
		at := held(key)
		at.Version = newBirth() + ".0"
		_, putErr := s.Put(t.Context(), at)
		_, waitErr := s.Wait(t.Context(), key, "")
		for call, err := range map[string]error{
			"Get": getErr, "Put of a new record": createErr, "Put": putErr, "Delete": s.Delete(t.Context(), key, at.Version), "Wait": waitErr,
		} {
			if !errors.Is(err, store.ErrCorrupt) || isUnknown(err) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s of %q: %v, want ErrCorrupt with the key", call, key, err)
			}
		}
		if got, _, err := s.conn.Get(s.node(key)); err != nil || string(got) != data {
			t.Errorf("%q became %q, %v", data, got, err)
		}
	}
	if _, err := s.conn.Create(s.root+"/%zz", nil, 0, s.acl); err != nil {
		t.Fatal(err)
	}
	met, corrupt := 0, 0
	for rec, err := range s.List(t.Context(), "") {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			corrupt++
		case err != nil:
			t.Fatal(err)
		case rec.Version == good.Version:
			met++
		}
	}
	if met != 1 || corrupt != len(rows)+1 {
		t.Errorf("List yielded the good record %d times and %d corrupt ones, want 1 and %d", met, corrupt, len(rows)+1)
	}
}

// TestARecordWhoseBirthWasRemoved can't be written any more, and the error says why.
func TestARecordWhoseBirthWasRemoved(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, _ := open(t, srv.Addr, aRoot())
	rec := storetest.MustPut(t, s, held("k"))
	v, _ := parseVersion(rec.Version)
	if err := s.conn.Delete(s.node("k")+"/"+v.birth, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), rec); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), v.birth) {
		t.Errorf("Put: %v", err)
	}
	if err := s.Delete(t.Context(), "k", rec.Version); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Delete: %v", err)
	}
}

func TestAChildOfSomebodyElseKeepsARecordFromBeingDeleted(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, _ := open(t, srv.Addr, aRoot())
	rec := storetest.MustPut(t, s, held("k"))
	if _, err := s.conn.Create(s.node("k")+"/note", nil, 0, s.acl); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "k", rec.Version); err == nil || isUnknown(err) || !strings.Contains(err.Error(), "remove them") {
		t.Errorf("Delete: %v", err)
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Errorf("Get: %q, %v", got.Version, err)
	}
	storetest.MustPut(t, s, rec)
}

// TestTheCountIsNotUsedUp: before ZooKeeper's count of versions would turn over, the record is born again, in one step.
func TestTheCountIsNotUsedUp(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	root := aRoot()
	s, r := open(t, srv.Addr, root)
	s.last = 2
	waiter, _ := open(t, srv.Addr, root) // whose own requests are not counted
	rec := storetest.MustPut(t, s, held("k"))
	var versions []string
	for i := range 10 {
		w := storetest.StartWait(t, waiter, rec)
		sent := r.during(func() { rec = storetest.MustPut(t, s, rec) })
		if sent[opMulti] != 1 {
			t.Errorf("write %d took %d requests", i, sent[opMulti])
		}
		w.End(t)
		versions = append(versions, rec.Version)
	}
	births := map[string]bool{}
	for _, text := range versions {
		v, ok := parseVersion(text)
		if !ok || v.n > s.last+1 {
			t.Errorf("version %q", text)
		}
		births[v.birth] = true
	}
	if len(births) != 3 {
		t.Errorf("%d lives: %q", len(births), versions)
	}
	stale := rec
	stale.Version = versions[0]
	if _, err := s.Put(t.Context(), stale); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Put at a version of an earlier life: %v", err)
	}
}

// TestALateWriteMissesTheNextRecordOfThatName though ZooKeeper's own version is the same.
func TestALateWriteMissesTheNextRecordOfThatName(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, _ := open(t, srv.Addr, aRoot())
	late := storetest.MustPut(t, s, storetest.MustPut(t, s, held("k")))
	if err := s.Delete(t.Context(), "k", late.Version); err != nil {
		t.Fatal(err)
	}
	anew := storetest.MustPut(t, s, storetest.MustPut(t, s, held("k")))
	a, _ := parseVersion(late.Version)
	b, _ := parseVersion(anew.Version)
	if a.n != b.n {
		t.Fatalf("versions %v and %v: this shows nothing", a, b)
	}
	if _, err := s.Put(t.Context(), late); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Put: %v", err)
	}
	if err := s.Delete(t.Context(), "k", late.Version); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Delete: %v", err)
	}
}

// TestManyRecords: the names of all records are one answer, which is larger than the 1 MB that requests may have.
func TestManyRecords(t *testing.T) {
	const n, workers = 20000, 200
	srv := servers.ZooKeeper(t, servers.Shared())
	s, _ := open(t, srv.Addr, aRoot())
	storetest.MustPut(t, s, held("first"))
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				if _, err := s.Put(t.Context(), held(fmt.Sprintf("many/%s/%05d", strings.Repeat("x", 60), i))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	start, got := time.Now(), map[string]bool{}
	for rec, err := range s.List(t.Context(), "many/") {
		if err != nil {
			t.Fatal(err)
		}
		got[rec.Key] = true
	}
	if len(got) != n {
		t.Errorf("List yielded %d of %d records", len(got), n)
	}
	t.Logf("listed %d records in %v", n, time.Since(start))
}

// TestRequests: how many requests each operation takes.
func TestRequests(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, r := open(t, srv.Addr, aRoot())
	rec := storetest.MustPut(t, s, held("k")) // and the root
	stale := rec
	for _, c := range []struct {
		what          string
		do            func() error
		writes, reads int
	}{
		{"create", func() error { _, err := s.Put(t.Context(), held("new")); return err }, 1, 0},
		{"put", func() (err error) { rec, err = s.Put(t.Context(), rec); return err }, 1, 0},
		{"conflict", func() error {
			if _, err := s.Put(t.Context(), stale); !errors.Is(err, store.ErrConflict) {
				return err
			}
			return nil
		}, 1, 1},
		{"get", func() error { _, err := s.Get(t.Context(), "k"); return err }, 1, 1},
		{"delete", func() error { return s.Delete(t.Context(), "k", rec.Version) }, 1, 0},
	} {
		sent := r.during(func() {
			if err := c.do(); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
		})
		if sent[opMulti] != c.writes || sent[opGetData] != c.reads || len(sent) > 2 || (c.reads == 0 && len(sent) > 1) {
			t.Errorf("%s sent %v by operation code, want %d writes and %d reads", c.what, sent, c.writes, c.reads)
		}
	}
}

// TestWaitersShareAWatch: many who wait for a key, one after another too, cost one watch.
func TestWaitersShareAWatch(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, r := open(t, srv.Addr, aRoot())
	rec := storetest.MustPut(t, s, held("k"))
	sent := r.during(func() {
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if _, err := s.Wait(ctx, "k", rec.Version); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Wait: %v", err)
					}
				})
			}
			all.Wait()
			cancel()
		}
	})
	if total := sent[opGetData] + sent[opMulti] + sent[opExists]; total != 1 {
		t.Errorf("200 waits that nothing ended sent %v, want one request", sent)
	}
	waits := make([]storetest.Waiting, 30)
	for i := range waits {
		waits[i] = storetest.StartWait(t, s, rec)
	}
	sent = r.during(func() {
		storetest.MustPut(t, s, rec)
		for _, w := range waits {
			w.End(t)
		}
	})
	// A Wait that came late, after the write, asks by itself; here most came before.
	if sent[opGetData] > 2+len(waits)/2 {
		t.Errorf("a write that woke 30 waiters sent %v", sent)
	}
}

// TestWatchesThatFiredAreForgotten: keys that somebody waited for once take no room for ever.
func TestWatchesThatFiredAreForgotten(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, _ := open(t, srv.Addr, aRoot())
	for i := range 500 {
		rec := storetest.MustPut(t, s, held(fmt.Sprintf("k/%d", i)))
		w := storetest.StartWait(t, s, rec)
		rec = storetest.MustPut(t, s, rec)
		w.End(t)
		if err := s.Delete(t.Context(), rec.Key, rec.Version); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.watches.Len(); n > 200 {
		t.Errorf("%d watches are kept", n)
	}
}

// TestPermissions: an account that may not do something is told what to give it.
func TestPermissions(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	root := aRoot()
	conn, _ := connect(t, srv.Addr, sessionTimeout)
	if err := conn.AddAuth("digest", []byte("ada:secret")); err != nil {
		t.Fatal(err)
	}
	s, err := New(conn, Options{Root: root, ACL: zk.AuthACL(zk.PermAll)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rec := storetest.MustPut(t, s, held("k"))

	stranger, _ := open(t, srv.Addr, root)
	_, getErr := stranger.Get(t.Context(), "k")
	_, putErr := stranger.Put(t.Context(), rec)
	_, createErr := stranger.Put(t.Context(), held("new"))
	_, waitErr := stranger.Wait(t.Context(), "k", "")
	var listErr error
	for _, listErr = range stranger.List(t.Context(), "") {
	}
	for call, err := range map[string]error{
		"Get": getErr, "Put": putErr, "Put of a new key": createErr, "Wait": waitErr, "List": listErr, "Delete": stranger.Delete(t.Context(), "k", rec.Version),
	} {
		if !errors.Is(err, zk.ErrNoAuth) || isUnknown(err) || !strings.Contains(err.Error(), "give it crwd") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s by another account: %v, want what to grant", call, err)
		}
	}
	storetest.Eventually(t, func() error { // nothing goes on for a Wait that was refused
		if n := stranger.watches.Len(); n > 0 {
			return fmt.Errorf("%d watches are kept", n)
		}
		return nil
	})
	if f := findings(stranger.Inspect(t.Context()))["permissions"]; f.Status != driver.StatusFail || f.Advice == "" {
		t.Errorf("Inspect by another account: %+v", f)
	}
	if f := findings(s.Inspect(t.Context())); f["permissions"].Status != driver.StatusOK || f["root"].Status != driver.StatusOK {
		t.Errorf("Inspect: %+v", f)
	}
	nobody, err := New(stranger.conn, Options{Root: aRoot(), ACL: zk.AuthACL(zk.PermAll)})
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	if _, err := nobody.Put(t.Context(), held("k")); err == nil || isUnknown(err) || !strings.Contains(err.Error(), "needs an account") {
		t.Errorf("Put with an ACL for accounts by nobody: %v", err)
	}
}

// A server has 2 s to say its version and mode.
func TestInspect(t *testing.T) { stalltest.Run(t, inspects) }

func inspects(t testing.TB) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, _ := open(t, srv.Addr, aRoot())
	f := findings(s.Inspect(t.Context()))
	if f["connection"].Status != driver.StatusOK || f["permissions"].Status != driver.StatusOK {
		t.Errorf("%+v", f)
	}
	if f["server"].Status != driver.StatusWarn || !strings.Contains(f["server"].Detail, "standalone") {
		t.Errorf("a standalone server: %+v", f["server"])
	}
	if got := findings(s.Inspect(t.Context()))["root"]; got.Status != driver.StatusWarn || !strings.Contains(got.Detail, "anybody") {
		t.Errorf("an open root: %+v", got)
	}
	for rec, err := range s.List(t.Context(), "") {
		t.Errorf("left behind: %+v, %v", rec, err)
	}
	lost, _ := open(t, "127.0.0.1:1", aRoot())
	all := lost.Inspect(storetest.Within(t, 100*time.Millisecond))
	if len(all) != 1 || all[0].Status != driver.StatusFail || !strings.Contains(all[0].Detail, "127.0.0.1:1") || all[0].Advice == "" {
		t.Errorf("an unreachable server: %+v", all)
	}
}

func findings(all []driver.Finding) map[string]driver.Finding {
	by := map[string]driver.Finding{}
	for _, f := range all {
		by[f.What] = f
	}
	return by
}
