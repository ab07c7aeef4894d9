package etcd

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// A leader that has a write which no other member has yet tells no watch of it: what a Wait shows is as durable as what a Get shows.
func TestAPushIsCommitted(t *testing.T) {
	// The leader stays leader for 5 s without the others.
	members := servers.EtcdCluster(t, 3, servers.Set("heartbeat-interval", "500"), servers.Set("election-timeout", "5000"))
	leader := -1
	for i, m := range members {
		status, err := dial(t, m.Addr).Status(storetest.Within(t, soon), m.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if status.Leader == status.Header.MemberId {
			leader = i
		}
	}
	if leader < 0 {
		t.Fatal("no member says that it leads")
	}
	s := open(t, dial(t, members[leader].Addr), newPrefix(t))
	rec := storetest.MustPut(t, s, held("k", 1))
	first := startWait(t, s, "k", rec.Version)
	rec.Token++
	rec = storetest.MustPut(t, s, rec)
	if got := <-first; got.err != nil { // the watch stands
		t.Fatal(got.err)
	}
	waiting := startWait(t, s, "k", rec.Version)
	for i, m := range members {
		if i != leader {
			m.Pause()
		}
	}
	next := rec
	next.Token++
	next.Nonce = "of the leader alone"
	if _, err := s.Put(storetest.Within(t, time.Second), next); !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("a write that no other member has: %v, want an unknown outcome", err)
	}
	select {
	case got := <-waiting:
		t.Errorf("a Wait shows what no other member has: %+v", got)
	default:
	}
	for i, m := range members {
		if i != leader {
			m.Resume()
		}
	}
	if !t.Failed() {
		if got := <-waiting; got.err != nil || got.rec.Token != next.Token {
			t.Errorf("when the others have it: %+v, want token %d", got, next.Token)
		}
	}
}
