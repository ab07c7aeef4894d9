package controllerruntime_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leasehold/leasehold/compat/controllerruntime"
	"github.com/leasehold/leasehold/lease"
)

// reconcilePod is called while this replica leads.
func reconcilePod(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	term, _ := controllerruntime.Term(ctx)
	_ = term.Sequencer() // goes with every write: package fence/fencekubernetes
	return reconcile.Result{}, nil
}

func Example() {
	add := func(mgr manager.Manager, leases *lease.Manager) error {
		setup := func(mgr manager.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).Named("pods").For(&corev1.Pod{}).
				Complete(controllerruntime.Guard(reconcile.Func(reconcilePod)))
		}
		return controllerruntime.Add(mgr, leases, "pods", setup, controllerruntime.Options{Warm: []client.Object{&corev1.Pod{}}})
	}
	_ = add // then mgr.Start(ctx)
}
