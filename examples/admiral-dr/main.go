// Command admiral-dr shows disaster recovery with two instances, in two processes, over one table:
// a takeover after a crash, a planned switchover, an outage of the store, and everyone held passive
// by an operator (SKIP-LEASE-POD); as a timeline.
//
//	go run ./examples/admiral-dr
//
// The table is Admiral's, in DynamoDB Local, which it starts if `scripts/engines install` has
// installed it, or which is already up at AWS_ENDPOINT_URL_DYNAMODB. Without it, or with -store
// file, the lease is kept in a file.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Where the lease is kept.
const (
	inDynamoDB = "dynamodb"
	inFile     = "file"
)

func main() {
	store := flag.String("store", inDynamoDB, "where the lease is kept: dynamodb or file")
	instance := flag.String("instance", "", "run one instance, with this configuration file; the program starts two of itself so")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *instance != "" {
		err = runInstance(ctx, *instance, os.Stdout)
	} else {
		err = play(ctx, *store)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "admiral-dr:", err)
		os.Exit(1)
	}
}

// play starts the store and the instances, and plays the scenes.
func play(ctx context.Context, kind string) error {
	dir, err := os.MkdirTemp("", "admiral-dr")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b, err := startBackend(ctx, kind, dir)
	if err != nil {
		return err
	}
	defer b.stop()
	s := &show{backend: b, dir: dir, began: now(), out: os.Stdout, exe: mustSelf()}
	defer s.end()
	fmt.Fprintf(s.out, "The lease is kept in %s. It lasts 3 s (waitTimeInSeconds 1 × failureThreshold 3).\n\n", b.what)
	return s.play(ctx)
}

// mustSelf returns the path of this program.
func mustSelf() string {
	path, err := os.Executable()
	if err != nil {
		return filepath.Clean(os.Args[0])
	}
	return path
}
