package kubernetes

import (
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// electorLease is a Lease as client-go's elector writes it.
func electorLease(t testing.TB, s *Store, name, holder string, seconds int32) *coordinationv1.Lease {
	t.Helper()
	now, transitions := metav1.NowMicro(), int32(4)
	obj, err := s.leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now, LeaseTransitions: &transitions,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestFinding_S17_LabelsKeepNoDeadHolder: somebody who labels the Lease of a dead holder doesn't keep its name, whoever wrote it.
func TestFinding_S17_LabelsKeepNoDeadHolder(t *testing.T) {
	for name, abandon := range map[string]func(*testing.T, *Store){
		"ours": func(t *testing.T, s *Store) {
			rec := held("billing", 1)
			rec.TTL = 2 * time.Second
			storetest.MustPut(t, s, rec)
		},
		"client-go's": func(t *testing.T, s *Store) { electorLease(t, s, "billing", "controller-0", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := fresh(t)
			abandon(t, s)
			m, err := lease.NewManager(s, lease.Options{TTL: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			before, err := s.Get(t.Context(), "billing")
			if err != nil {
				t.Fatal(err)
			}
			// It is taken though it never goes unlabelled for as long as its TTL.
			for i, labelled := 0, time.Now(); ; i++ {
				annotate(t, s, "billing", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i))
				if gap := time.Since(labelled); gap >= before.TTL {
					t.Skipf("the machine stood still for %v", gap)
				}
				labelled = time.Now()
				l, err := m.TryAcquire(t.Context(), "billing")
				if err == nil {
					if l.Token() <= before.Token {
						t.Errorf("token %d after %d", l.Token(), before.Token)
					}
					return
				}
				var heldErr *lease.HeldError
				if !errors.As(err, &heldErr) || i > 600 {
					t.Fatalf("after %d labels: %v", i, err)
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
}

// TestFinding_S18_EachFieldOfTheElectorsCounts: a write from before client-go's record was changed is refused, whichever field that was.
func TestFinding_S18_EachFieldOfTheElectorsCounts(t *testing.T) {
	s, _ := fresh(t)
	for name, patch := range map[string]string{
		"holder":      `{"spec":{"holderIdentity":"controller-1"}}`,
		"transitions": `{"spec":{"leaseTransitions":5}}`,
		"duration":    `{"spec":{"leaseDurationSeconds":99}}`,
		"renewed":     `{"spec":{"renewTime":"2026-11-22T10:00:00.000001Z"}}`,
		"acquired":    `{"spec":{"acquireTime":"2026-11-22T10:00:00.000001Z"}}`,
	} {
		electorLease(t, s, name, "controller-0", 15)
		before, err := s.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if !driver.Foreign(before.Nonce) {
			t.Errorf("%s: nonce %q of a record that client-go wrote", name, before.Nonce)
		}
		annotate(t, s, name, patch)
		taken := before
		taken.Owner, taken.Token, taken.Nonce = "me", before.Token+1, "mine"
		var conflict *store.ConflictError
		if got, err := s.Put(t.Context(), taken); !errors.As(err, &conflict) || conflict.Current.Nonce == before.Nonce {
			t.Errorf("%s: Put from before it was changed: %+v, %v, want a conflict with another nonce", name, got, err)
		}
		if err := s.Delete(t.Context(), name, before.Version); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: Delete from before it was changed: %v, want a conflict", name, err)
		}
	}
}
