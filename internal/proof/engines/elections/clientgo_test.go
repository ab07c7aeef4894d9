package elections

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-logr/logr"
	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/leasehold/leasehold/store"
)

// clientGo runs client-go's elector and its LeaseLock, on the same store. Their clock is that of the time package, so it is right, and
// nothing stops them: of a plan they suffer the network only.
func clientGo(x timing) contender {
	return func(w *world, n *node) func() {
		ctx, cancel := context.WithCancel(logr.NewContext(w.t.Context(), logr.Discard()))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil { // its program ends with its leadership, and is started again
				elector, err := leaderelection.NewLeaderElector(elect(x, w, n))
				if err != nil {
					w.t.Error(err)
					return
				}
				elector.Run(ctx)
			}
		}()
		return func() { cancel(); <-done }
	}
}

func elect(x timing, w *world, n *node) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Name: "job"}, LockConfig: resourcelock.ResourceLockConfig{Identity: n.name + "-" + rand.Text()},
			Client: leases{st: n.net, timeout: max(x.renew/2, time.Second)}, // as resourcelock.NewFromKubeconfig has it
		},
		LeaseDuration: x.lease, RenewDeadline: x.renew, RetryPeriod: x.period,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				r := &reign{n: n, ctx: ctx, valid: func() bool { return ctx.Err() == nil }}
				w.begins(r)
				<-ctx.Done()
				w.ends(r)
			},
			OnStoppedLeading: func() {},
		},
	}
}

// leases are what the elector asks the API server for, on any store: a Lease is the data of a record.
type leases struct {
	client.LeaseInterface // what the elector never calls
	st                    store.Store
	timeout               time.Duration
}

var resource = schema.GroupResource{Group: coordination.GroupName, Resource: "leases"}

func (l leases) Leases(string) client.LeaseInterface { return l }

func (l leases) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordination.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	rec, err := l.st.Get(ctx, name)
	return read(rec, err)
}

func (l leases) Create(ctx context.Context, lease *coordination.Lease, _ metav1.CreateOptions) (*coordination.Lease, error) {
	lease.ResourceVersion = ""
	return l.Update(ctx, lease, metav1.UpdateOptions{})
}

func (l leases) Update(ctx context.Context, lease *coordination.Lease, _ metav1.UpdateOptions) (*coordination.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	data, err := json.Marshal(lease)
	if err != nil {
		return nil, err
	}
	rec, err := l.st.Put(ctx, store.Record{Key: lease.Name, Version: lease.ResourceVersion, Data: data, Nonce: rand.Text()})
	return read(rec, err)
}

func read(rec store.Record, err error) (*coordination.Lease, error) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, apierrors.NewNotFound(resource, rec.Key)
	case errors.Is(err, store.ErrConflict):
		return nil, apierrors.NewConflict(resource, rec.Key, err)
	case err != nil:
		return nil, err
	}
	lease := &coordination.Lease{}
	if err := json.Unmarshal(rec.Data, lease); err != nil {
		return nil, err
	}
	lease.ResourceVersion = rec.Version
	return lease, nil
}
