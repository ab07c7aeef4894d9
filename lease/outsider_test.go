package lease_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// touch writes a record as it is, past all networks: it gets another version, and its holder has shown no sign of life.
func (w *world) touch(key string) {
	w.t.Helper()
	if _, err := w.db.Open().Put(w.t.Context(), w.get(key)); err != nil && !errors.Is(err, store.ErrConflict) {
		w.t.Fatal(err)
	}
}

// An outsider who touches a record now and then keeps no dead holder's name: neither a lease that keeps itself nor a session.
func TestFinding_S17_TouchesKeepNoDeadHolder(t *testing.T) {
	for name, acquire := range map[string]func(n *node) (l *lease.Lease, record string){
		"lease":   func(n *node) (*lease.Lease, string) { return n.acquire("job"), "job" },
		"session": func(n *node) (*lease.Lease, string) { s := n.open(); return n.under(s, "job"), s.Key() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.ageless = true
				n, other := w.node(lease.Options{}), w.node(lease.Options{})
				_, record := acquire(n)
				wait := other.acquiring(t.Context(), "job")
				time.Sleep(time.Minute)
				n.outage.Start() // for good: it is as good as dead
				start := time.Now()
				for range int(2 * ttl / (700 * time.Millisecond)) {
					w.touch(record)
					time.Sleep(700 * time.Millisecond)
				}
				wait.wait(t, start, ttl+ttl/3)
			})
		})
	}
}

// A notice that the session can't read tells that some lease of it was broken, and not which.
func TestFinding_S14_ANoticeThatCantBeReadEndsTheSession(t *testing.T) {
	for name, data := range map[string]string{"no JSON": "}{", "of another shape": `{"v":2,"gone":["job"]}`, "empty": ""} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node(lease.Options{})
				s := n.open()
				job, beside := n.under(s, "job"), n.under(s, "beside")
				rec := w.get(s.Key())
				rec.Mark, rec.Note, rec.Data, rec.Nonce = store.MarkNotice, "somebody", []byte(data), rec.Nonce+"+notice"
				if _, err := w.db.Open().Put(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				time.Sleep(ttl / 3)
				lostWith(t, job, lease.Broken)
				lostWith(t, beside, lease.Broken)
				if err := s.Check(); err == nil || !strings.Contains(err.Error(), "notice") {
					t.Errorf("the session: %v", err)
				}
			})
		})
	}
}
