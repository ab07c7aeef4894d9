package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// serve starts the servers and keeps them until it is told to end. Of those that nobody named it
// leaves out what is not installed; anything else that fails ends all.
func (s state) serve(names []string) (err error) {
	lock, err := servers.Lock(s.file("lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(s.file("pid")), lock.Close()) }()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := os.WriteFile(s.file("pid"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	data := s.file("data")
	if err := os.RemoveAll(data); err != nil { // of one that was killed
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()

	asked := names
	if len(asked) == 0 {
		asked = servers.Names()
	}
	all := make([]*servers.Server, len(asked))
	failed := make([]error, len(asked))
	var starting sync.WaitGroup
	for i, name := range asked {
		starting.Go(func() { all[i], failed[i] = servers.Launch(ctx, name, s.file("data")) })
	}
	starting.Wait()
	defer func() {
		for _, server := range slices.Backward(all) {
			if server != nil {
				server.Stop()
			}
		}
	}()
	var exports, stores strings.Builder
	for i, server := range all {
		if len(names) == 0 && errors.Is(failed[i], servers.ErrMissing) {
			fmt.Fprintln(os.Stderr, "engines: left out:", failed[i])
			failed[i] = nil
		}
		if server != nil {
			name, value := server.Variable()
			fmt.Fprintf(&exports, "export %s=%s\n", name, quote(value))
			fmt.Fprintln(&stores, store(server))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if err := os.WriteFile(s.file("stores"), []byte(stores.String()), 0o600); err != nil {
		return err
	}
	// The last, and at once, for others wait for it.
	if err := os.WriteFile(s.file("urls.new"), []byte(exports.String()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(s.file("urls.new"), s.file("urls")); err != nil {
		return err
	}
	<-ctx.Done()
	return os.Remove(s.file("urls"))
}

// store says how the command reaches a server: the environment that it needs, and the flag.
func store(s *servers.Server) string {
	to := s.Store()
	return strings.Join(append(to.Env, "leasehold --store "+quote(to.URL)), " ")
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
