package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
)

// once runs the manager for one term of the election, and returns why that has ended.
func once(ctx context.Context, leases *lease.Manager, name string, mgr manager.Manager) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	return election.Run(ctx, leases, name, election.Callbacks{
		OnStartedLeading: func(ctx context.Context, term election.Term) {
			err := mgr.Start(ctx)
			stop(fmt.Errorf("term %d has ended: %w", term.Token, errors.Join(err, context.Cause(ctx))))
		},
		OnStopTimeout: func(election.Term, error) { os.Exit(1) },
	}, election.Options{})
}

// TestFinding_N4_OnceAsThePageHasIt: of two managers one runs, under a term; when an operator has it step down, its process is told to end, and
// the other one runs.
func TestFinding_N4_OnceAsThePageHasIt(t *testing.T) {
	page, err := os.ReadFile("../../docs/from-client-go.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("once_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "\nfunc once(")
	code, _, _ = strings.Cut(code, "\n}\n")
	if !strings.Contains(string(page), "\nfunc once("+code+"\n}\n") {
		t.Error("docs/from-client-go.md has another function once")
	}

	srv := servers.Kubernetes(t)
	type end struct {
		who string
		err error
	}
	runs, ends, managers := make(chan string, 10), make(chan end, 2), make(chan *lease.Manager, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, who := range []string{"a", "b"} {
		go func() {
			config := connect(t, srv, srv.Addr)
			err := withLeases(config, namespace, lease.Options{TTL: 30 * time.Second, Name: who}, func(m *lease.Manager) error {
				managers <- m
				forever := -time.Second
				mgr, err := manager.New(config, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: &forever})
				if err != nil {
					return err
				}
				err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
					runs <- who
					<-ctx.Done()
					return nil
				}))
				if err != nil {
					return err
				}
				return once(ctx, m, "once", mgr)
			})
			ends <- end{who, err}
		}()
	}
	first, m := next(t, "manager that runs", runs), next(t, "manager of leases", managers)
	leader, err := election.Current(t.Context(), m.Store(), "once")
	if err != nil || !strings.HasPrefix(leader.Owner, first+"/") {
		t.Errorf("%+v leads, %v; %s runs", leader, err, first)
	}
	if _, err := election.HandOver(t.Context(), m.Store(), "once", election.HandOverOptions{Token: leader.Token, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if e := next(t, "end of a term", ends); e.who != first || !errors.Is(e.err, election.ErrOrdered) {
		t.Errorf("%s has ended: %v; want %s: %v", e.who, e.err, first, election.ErrOrdered)
	}
	if second := next(t, "other manager that runs", runs); second == first {
		t.Errorf("%s runs again", second)
	}
	cancel()
	if e := next(t, "end of the other one", ends); !errors.Is(e.err, context.Canceled) {
		t.Errorf("%s has ended: %v", e.who, e.err)
	}
}
