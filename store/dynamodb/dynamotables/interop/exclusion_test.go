package interop

import (
	"errors"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
)

// ttl is that of Leasehold's leases here: long enough for a machine that is busy.
const ttl = 4 * time.Second

func TestNeighbours(t *testing.T) {
	for _, n := range []neighbourhood{rustSide, javaSide, goSide} {
		t.Run(n.name, func(t *testing.T) {
			n.ready(t)
			for name, test := range map[string]func(t testing.TB, n neighbourhood){
				"they hold and release":      theyHold,
				"we hold and release":        weHold,
				"they crash":                 theyCrash,
				"we crash":                   weCrash,
				"they are paused too long":   theyPause,
				"we are cut off too long":    weAreCut,
				"the token rises over them":  tokensRise,
				"both want it all the time":  bothContend,
				"we take turns, they remain": theyKeepAttributes,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					stalltest.Run(t, func(t testing.TB) { test(t, n) })
				})
			}
		})
	}
}

// A lease that the neighbour keeps is not ours, however often we look; one that it releases is at once.
func theyHold(t testing.TB, n neighbourhood) {
	w := n.world(t)
	they, m := n.start(t, w, "they"), w.manager(w.url, ttl)
	if !they.acquire("job") {
		t.Fatal("a free name is refused the neighbour")
	}
	during(t, 2*n.lease+ttl, func() { excluded(t, m, "job") })
	if they.lost("job") {
		t.Fatal("the neighbour lost its lease to one who only looked")
	}
	they.release()
	l, err := m.TryAcquire(t.Context(), "job")
	if err != nil {
		t.Fatalf("after the neighbour's release: %v", err)
	}
	release(t, l)
}

// A lease that we keep is not the neighbour's, however often it tries; one that we release is at once.
func weHold(t testing.TB, n neighbourhood) {
	w := n.world(t)
	they, m := n.start(t, w, "they"), w.manager(w.url, ttl)
	l := acquire(t, m, "job")
	during(t, 3*ttl+n.slack, func() {
		if they.acquire("job") {
			t.Fatal("the neighbour took a lease that we hold")
		}
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
	})
	release(t, l)
	if !they.acquire("job") {
		t.Fatal("after our release the neighbour is refused")
	}
	excluded(t, m, "job")
	they.release()
}

// A neighbour that crashed keeps its lease until its own rule ends it, and no longer than that.
func theyCrash(t testing.TB, n neighbourhood) {
	w := n.world(t)
	they, m := n.start(t, w, "they"), w.manager(w.url, ttl)
	if !they.acquire("job") {
		t.Fatal("a free name is refused the neighbour")
	}
	excluded(t, m, "job")
	before := w.row("job")
	until(t, "the neighbour renews", n.lease, func() bool { return !reflect.DeepEqual(w.row("job"), before) })
	they.proc().kill()
	killed := time.Now()
	expiry := text(w.row("job")["lease_expiry"])
	l := acquire(t, m, "job")
	took := time.Since(killed)
	if expiry != "" { // theirs is a wall clock's
		if now := time.Now(); now.Unix() <= seconds(t, expiry) {
			t.Errorf("we took the lease %v before its lease_expiry was past", time.Unix(seconds(t, expiry), 0).Sub(now))
		}
	} else if least := n.lease - n.lease/10; took < least { // its last heartbeat was just before
		t.Errorf("we took the lease %v after a crash, within its duration", took)
	}
	if most := n.lease + n.slack + 6*time.Second; took > most { // polls and a loaded machine included
		t.Errorf("we took the lease %v after a crash, want at most %v", took, most)
	}
	if n.start(t, w, "next").acquire("job") {
		t.Error("another neighbour took the lease from us")
	}
	release(t, l)
}

// When we are gone without a word the neighbour gets the lease, but not while it is valid.
func weCrash(t testing.TB, n neighbourhood) {
	w := n.world(t)
	they := n.start(t, w, "they")
	l, _ := cutOffFor(t, w, ttl)
	gone := time.Now()
	until(t, "the neighbour takes the lease of one who crashed", ttl+n.slack+20*time.Second, func() bool { return they.acquire("job") })
	if err := l.Check(); err == nil {
		t.Fatalf("the neighbour took the lease with %v of validity left", l.Left())
	}
	t.Logf("taken %v after the crash, with a TTL of %v", time.Since(gone), ttl)
	they.release()
}

// cutOffFor returns a lease of that TTL that is valid, of a holder whom the store has just become unreachable for.
func cutOffFor(t testing.TB, w *world, ttl time.Duration) (*lease.Lease, *servers.Network) {
	t.Helper()
	network := servers.Proxy(t, w.addr)
	l := acquire(t, w.manager("http://"+network.Addr, ttl), "job")
	network.Cut()
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	return l, network
}

// A neighbour that was stopped past its lease finds it gone, and doesn't get it back by renewing it.
func theyPause(t testing.TB, n neighbourhood) {
	w := n.world(t)
	they, m := n.start(t, w, "they"), w.manager(w.url, ttl)
	if !they.acquire("job") {
		t.Fatal("a free name is refused the neighbour")
	}
	they.proc().signal(syscall.SIGSTOP)
	l := acquire(t, m, "job")
	they.proc().signal(syscall.SIGCONT)
	until(t, "the neighbour notices", 2*n.lease+5*time.Second, func() bool { return they.lost("job") })
	if err := l.Check(); err != nil {
		t.Fatalf("the late neighbour took the lease back: %v", err)
	}
	release(t, l)
}

// When we were cut off past our lease and come back, we don't get it back by renewing it either.
func weAreCut(t testing.TB, n neighbourhood) {
	w := n.world(t)
	they := n.start(t, w, "they")
	l, network := cutOffFor(t, w, ttl)
	until(t, "the neighbour takes the lease", ttl+n.slack+20*time.Second, func() bool { return they.acquire("job") })
	network.Heal() // what was sent meanwhile arrives now
	var lost *lease.LostError
	if err := l.Check(); !errors.As(err, &lost) {
		t.Fatalf("the lease that we lost: %v", err)
	}
	during(t, ttl, func() {
		if they.lost("job") {
			t.Fatal("our late renewals took the lease from the neighbour")
		}
	})
	they.release()
}

// Tokens rise although the neighbour wipes the row in between.
func tokensRise(t testing.TB, n neighbourhood) {
	w := n.world(t)
	they, m := n.start(t, w, "they"), w.manager(w.url, ttl)
	last := uint64(0)
	for range 5 {
		l := acquire(t, m, "job")
		if got := uint64(l.Token()); got <= last {
			t.Fatalf("token %d after %d", got, last)
		}
		last = uint64(l.Token())
		release(t, l)
		if !they.acquire("job") {
			t.Fatal("after our release the neighbour is refused")
		}
		they.release()
	}
}
