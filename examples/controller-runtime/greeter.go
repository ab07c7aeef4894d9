package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leasehold/leasehold/compat/controllerruntime"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencekubernetes"
)

// greeter greets in one term.
type greeter struct{ client client.Client }

// addGreeter adds the controller of one term. Each term has a new one of the same name.
func addGreeter(mgr manager.Manager, namespace string) error {
	labelled := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetNamespace() == namespace && obj.GetLabels()["example"] == "greeting"
	})
	return ctrl.NewControllerManagedBy(mgr).Named("greeter").For(&corev1.ConfigMap{}).WithEventFilter(labelled).
		Complete(controllerruntime.Guard[reconcile.Request](&greeter{client: mgr.GetClient()}))
}

// Reconcile implements [reconcile.Reconciler].
func (g *greeter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var cm corev1.ConfigMap
	if err := g.client.Get(ctx, req.NamespacedName, &cm); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	term, _ := controllerruntime.Term(ctx) // Guard lets nothing else in
	err := greet(ctx, g.client, term.Sequencer(), &cm)
	switch {
	case errors.Is(err, fence.ErrStale):
		term.Resign() // another leads: there is nothing more to do in this term
		return reconcile.Result{}, reconcile.TerminalError(err)
	case apierrors.IsConflict(err):
		return reconcile.Result{}, nil // what changed it is an event of its own
	}
	return reconcile.Result{}, err
}

// greet writes a greeting in the term of s, unless it is there. The object bears the mark of the
// highest term that wrote it, and the API server writes only over the version that was read: so a
// leader of an earlier term can't overwrite it.
func greet(ctx context.Context, c client.Client, s fence.Sequencer, cm *corev1.ConfigMap) error {
	if err := fencekubernetes.Stamp(cm, s); err != nil {
		return err
	}
	if cm.Data["greeted-by"] == s.Holder {
		return nil
	}
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data["greeted-by"] = s.Holder
	return c.Update(ctx, cm)
}
