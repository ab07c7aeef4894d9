// Command fencing-stores shows what a fencing token is for, on the stores that check it inside the
// write itself. A holder of a lease is stopped, another one takes over and writes, and the first
// wakes up and writes too: the store refuses that.
//
//	go run ./examples/fencing-stores -etcd 127.0.0.1:2379
//	go run ./examples/fencing-stores -redis redis://127.0.0.1:6379
//	go run ./examples/fencing-stores -dynamodb http://127.0.0.1:8000
//	go run ./examples/fencing-stores -kubernetes ~/.kube/config
//
// Each store is a file of its own: etcd.go, redis.go, dynamodb.go, kubernetes.go. The lease is kept
// in memory, for the resource knows nothing of where it is kept: it compares numbers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// account is the guarded resource.
type account interface {
	deposit(ctx context.Context, s fence.Sequencer, amount int) error
	balance(ctx context.Context) (int, error)
	Close() error
}

// stores open an account by the address of the store.
var stores = []struct {
	name, address string
	open          func(ctx context.Context, address string) (account, error)
}{
	{"etcd", "HOST:PORT", openEtcd},
	{"redis", "URL", openRedis},
	{"dynamodb", "URL of DynamoDB Local", openDynamoDB},
	{"kubernetes", "path of a kubeconfig", openKubernetes},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fencing-stores:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("fencing-stores", flag.ContinueOnError)
	addresses := map[string]*string{}
	for _, st := range stores {
		addresses[st.name] = fs.String(st.name, "", st.address)
	}
	if err := fs.Parse(args); err != nil {
		return err
	}
	told := false
	for _, st := range stores {
		if address := *addresses[st.name]; address != "" {
			told = true
			if err := on(ctx, address, st.open, out); err != nil {
				return fmt.Errorf("%s: %w", st.name, err)
			}
		}
	}
	if !told {
		return errors.New("no store was named: want -etcd, -redis, -dynamodb or -kubernetes with its address")
	}
	return nil
}

func on(ctx context.Context, address string, open func(context.Context, string) (account, error), out io.Writer) (err error) {
	acc, err := open(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, acc.Close()) }()
	return tell(ctx, acc, out)
}

// tell tells the story.
func tell(ctx context.Context, acc account, out io.Writer) error {
	st := memory.New(memory.Options{})
	a, err1 := lease.NewManager(st, lease.Options{Name: "a"})
	b, err2 := lease.NewManager(st, lease.Options{Name: "b"})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	// Memory has nothing to lose.
	defer func() { _ = errors.Join(a.Close(), b.Close(), st.Close()) }()

	first, err := a.Acquire(ctx, "billing")
	if err != nil {
		return err
	}
	r1 := first.Sequencer() // A makes a request under its term, and is stopped before it is sent
	if err := first.Release(ctx); err != nil {
		return err
	}
	second, err := b.Acquire(ctx, "billing")
	if err != nil {
		return err
	}
	if err := acc.deposit(ctx, second.Sequencer(), 30); err != nil {
		return err
	}
	fmt.Fprintln(out, "B, who holds the lease now, has deposited 30")

	var stale *fence.StaleError
	if err := acc.deposit(ctx, r1, 100); !errors.As(err, &stale) {
		return fmt.Errorf("a late request was not refused: %w", err)
	}
	fmt.Fprintf(out, "A wakes up and deposits 100: refused, for its token is %d lower than B's\n", stale.Current-stale.Got)
	n, err := acc.balance(ctx)
	fmt.Fprintln(out, "the balance is", n)
	return err
}
