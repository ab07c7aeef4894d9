// Command multicluster is a controller that copies objects into several clusters, as Admiral does
// in large: active in one Region, passive in the other. It starts two API servers and etcd, runs a
// pair of controllers in three ways (with the library, under `leasehold standby`, and notified by
// it), and makes faults: it kills, cuts off, stops and switches over. At the end it reads the audit
// logs of the API servers: no side that was not active may have written an object, and each address
// must be one service's.
//
//	go run ./examples/multicluster              # six faults for each way, a timeline, and the result
//	go run ./examples/multicluster -faults 50   # the proof at length
//
// The servers are those that `scripts/engines install etcd kubernetes` has installed. The program
// `leasehold` is built first, unless -leasehold names one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// The ways in which a controller learns whether it may write.
const (
	modeLibrary = "library"
	modeProcess = "process"
	modeNotify  = "notify"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "multicluster:", err)
		os.Exit(1)
	}
}

func run() error {
	role := flag.String("hook", "", "what `leasehold standby` calls; not for people")
	config := flag.String("controller", "", "run one controller, with this file; the program starts pairs of itself so")
	p := &play{out: os.Stdout}
	flag.IntVar(&p.faults, "faults", 18, "how many faults to make in all")
	flag.StringVar(&p.leasehold, "leasehold", "", "the program leasehold; by default it is built")
	modes := flag.String("modes", strings.Join([]string{modeLibrary, modeProcess, modeNotify}, ","), "the ways to run, in order")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case *role != "":
		return hook(ctx, *role)
	case *config != "":
		return control(ctx, *config)
	}
	p.modes = strings.Split(*modes, ",")
	result, err := p.run(ctx)
	if err != nil {
		return err
	}
	result.show(os.Stdout)
	if !result.good() {
		return errors.New("the result is not what it has to be")
	}
	return nil
}
