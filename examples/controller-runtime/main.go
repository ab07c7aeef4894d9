// Command controller-runtime is a controller with several replicas, whose leader Leasehold elects
// instead of controller-runtime. Each ConfigMap with the label example=greeting gets a greeting
// from the leader, under its fencing token: a leader that was cut off, and doesn't know yet that
// there is another, can't write.
//
//	go run ./examples/controller-runtime -namespace default
//
// What was
//
//	mgr, err := manager.New(config, manager.Options{LeaderElection: true, LeaderElectionID: "greeter", …})
//	greeter.SetupWithManager(mgr)
//	mgr.Start(ctx)
//
// is in run: package compat/controllerruntime calls the setup again for each term.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/leasehold/leasehold/compat/controllerruntime"
	"github.com/leasehold/leasehold/lease"
	leases "github.com/leasehold/leasehold/store/kubernetes"
)

func main() {
	// -kubeconfig is controller-runtime's.
	namespace := flag.String("namespace", "default", "where the lease and the ConfigMaps are")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	if err := start(*namespace); err != nil {
		fmt.Fprintln(os.Stderr, "controller-runtime:", err)
		os.Exit(1)
	}
}

func start(namespace string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	ctx := signals.SetupSignalHandler()
	return withLeases(config, namespace, lease.Options{}, func(m *lease.Manager) error {
		setup := func(mgr manager.Manager) error { return addGreeter(mgr, namespace) }
		return run(ctx, config, m, manager.Options{HealthProbeBindAddress: ":8081"}, setup)
	})
}

// run runs one replica until ctx is done. What setup adds runs while the replica leads; nothing
// else runs on all replicas, the health probe apart.
func run(ctx context.Context, config *rest.Config, m *lease.Manager, opts manager.Options, setup func(manager.Manager) error) error {
	// OnStopTimeout is what ends the process when a term's work doesn't return.
	forever := -time.Second
	opts.GracefulShutdownTimeout = &forever
	mgr, err := manager.New(config, opts)
	if err != nil {
		return err
	}
	warm := []client.Object{&corev1.ConfigMap{}}
	if err := controllerruntime.Add(mgr, m, "greeter", setup, controllerruntime.Options{Warm: warm}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// withLeases has f hold leases in a namespace. Their requests have connections of their own: those
// of the controllers can't be in their way.
func withLeases(config *rest.Config, namespace string, opts lease.Options, f func(*lease.Manager) error) (err error) {
	// No limit delays its renewals, and no dead connection all of them.
	client, err := leases.Client(config)
	if err != nil {
		return err
	}
	st, err := leases.New(client, leases.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	m, err := lease.NewManager(st, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return f(m)
}
