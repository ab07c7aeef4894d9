package etcd

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestServerCrashes(t *testing.T) {
	srv, prefix := servers.Etcd(t), newPrefix(t)
	s, other := open(t, dial(t, srv.Addr), prefix), open(t, dial(t, srv.Addr), prefix)
	if err := storetest.Crashes(t.Context(), s, other, func() { srv.Kill(); srv.Restart() }); err != nil {
		t.Error(err)
	}
}

// A member that loses its leader ends its watches. Who waits goes on when there is a leader again, at another member too.
func TestLeaderLossDuringWait(t *testing.T) {
	members := servers.EtcdCluster(t, 3)
	prefix, traffic := newPrefix(t), &wire{}
	s := open(t, dial(t, members[0].Addr, traffic.options()...), prefix)
	rec := storetest.MustPut(t, s, held("k", 1))
	waiting := startWait(t, s, "k", rec.Version)
	traffic.awaitReads(t, 1) // a first read that fails ends the Wait
	members[1].Kill()
	members[2].Kill()
	eventually(t, "a watch that ended because there is no leader", func() bool {
		traffic.mu.Lock()
		defer traffic.mu.Unlock()
		return traffic.noLeader > 0
	})
	next := rec
	next.Nonce = "without a leader"
	if _, err := s.Put(storetest.Within(t, time.Second), next); !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("a write without a leader: %v, want an unknown outcome", err)
	}
	members[1].Restart()
	other := open(t, dial(t, members[1].Addr), prefix)
	var err error
	eventually(t, "a write with a new leader", func() bool {
		var current store.Record
		if current, err = other.Get(storetest.Within(t, time.Second), "k"); err != nil {
			return false
		}
		current.Token++
		rec, err = other.Put(storetest.Within(t, time.Second), current)
		return err == nil
	})
	select {
	case got := <-waiting: // it may also have seen the write without a leader, which came to be
		if got.err != nil || got.rec.Version == "" {
			t.Errorf("a Wait over the loss of the leader: %+v", got)
		}
	case <-time.After(soon):
		t.Error("a Wait over the loss of the leader was not woken")
	}
}
