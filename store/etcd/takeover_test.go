package etcd

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// A caller that waits for a name that a session keeps counts the TTL from the session's last renewal, of which the watch tells it, not from
// when it would have looked next, up to TTL/3 later.
func TestAWaiterCountsFromTheLastRenewal(t *testing.T) {
	stalltest.Run(t, aWaiterCountsFromTheLastRenewal)
}

func aWaiterCountsFromTheLastRenewal(t testing.TB) {
	const ttl, tolerated = 9 * time.Second, time.Second
	srv := servers.Etcd(t, servers.Shared())
	network, prefix := servers.Proxy(t, srv.Addr), newPrefix(t)
	manager := func(s *Store) *lease.Manager {
		m, err := lease.NewManager(s, lease.Options{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	holder, waiter := manager(open(t, dial(t, network.Addr), prefix)), manager(open(t, dial(t, srv.Addr), prefix))
	session, err := holder.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held, err := session.Acquire(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		network.Heal()
		_ = session.Close(storetest.Within(t, soon)) // it is over
		for _, m := range []*lease.Manager{holder, waiter} {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	})

	onlooker := open(t, dial(t, srv.Addr), prefix)
	key := session.Key()
	rec, err := onlooker.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	renewed := func() time.Time {
		if rec, err = store.Wait(t.Context(), onlooker, key, rec.Version); err != nil {
			t.Fatal(err)
		}
		return time.Now()
	}
	renewed()
	// Looking each TTL/3 from now on would be to look shortly before the next renewal, which is 0.8 to 1 of TTL/3 after this one.
	time.Sleep(2 * ttl / 9)
	acquired := make(chan error, 1)
	go func() {
		l, err := waiter.Acquire(t.Context(), "name")
		if err == nil && l.Token() <= held.Token() {
			err = errors.New("the token didn't rise")
		}
		acquired <- err
	}()
	last := renewed()
	network.Cut()
	if err := <-acquired; err != nil {
		t.Fatal(err)
	}
	took := time.Since(last)
	t.Logf("taken %v after the last renewal", took)
	if took > ttl+tolerated || took < ttl-50*time.Millisecond { // the onlooker may have heard of the renewal a little later
		t.Errorf("taken %v after the last renewal, want %v to %v", took, ttl, ttl+tolerated)
	}
}
