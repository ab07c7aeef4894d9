// Command controller-runtime is a controller with several replicas, whose leader Leasehold elects instead of controller-runtime.
// Each ConfigMap with the label example=greeting gets a greeting from the leader, under its fencing token: a leader that was
// cut off, and doesn't know yet that there is another, can't write.
//
//	go run ./examples/controller-runtime -namespace default
//
// What was
//
//	mgr, err := manager.New(config, manager.Options{LeaderElection: true, LeaderElectionID: "greeter", …})
//	mgr.Add(…)
//	mgr.Start(ctx)
//
// is in replica.go: one manager on each replica, for what runs on all, and one for each term, for what the leader does.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/lease"
	leases "github.com/leasehold/leasehold/store/kubernetes"
)

func main() {
	namespace := flag.String("namespace", "default", "where the lease and the ConfigMaps are") // -kubeconfig is controller-runtime's
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
		r := &replica{
			config: config, leases: m, name: "greeter", options: manager.Options{HealthProbeBindAddress: ":8081"},
			runnables: func(mgr manager.Manager, term *election.Term) error {
				if term == nil {
					return nil // nothing runs on all replicas, the health probe apart
				}
				return addGreeter(mgr, namespace, *term)
			},
		}
		return r.run(ctx)
	})
}

// withLeases has f hold leases in a namespace. Their requests have connections of their own: those of the controllers can't be
// in their way.
func withLeases(config *rest.Config, namespace string, opts lease.Options, f func(*lease.Manager) error) (err error) {
	client, err := leases.Client(config) // no limit delays its renewals, and no dead connection all of them
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
