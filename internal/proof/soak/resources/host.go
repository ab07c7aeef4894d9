package resources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

// Host runs the servers of the resources. Its methods may be called from any goroutine.
type Host struct {
	// Addresses are where the resources are, by the names of their kinds.
	Addresses map[string]string
	// Missing tells which kinds were asked for and are not here, for their servers are not
	// installed.
	Missing []string

	resources map[string]Resource
	mu        sync.Mutex // guards what comes from starting
	stops     []func() error
}

// Start starts what the kinds of those names need, below dir. Online guards ask source; when that
// is nil, what the host serves itself is not guarded.
func Start(ctx context.Context, dir string, names []string, source fence.Source) (_ *Host, err error) {
	h := &Host{Addresses: map[string]string{}, resources: map[string]Resource{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	var wg sync.WaitGroup
	errs := make([]error, len(names))
	for i, name := range names {
		wg.Go(func() { errs[i] = h.start(ctx, filepath.Join(dir, name), name, source) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.Sort(h.Missing)
	for name, address := range h.Addresses {
		r, err := Open(ctx, name, address)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		h.resources[name] = r
	}
	return h, nil
}

func (h *Host) start(ctx context.Context, dir, name string, source fence.Source) error {
	k, err := kind(name)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	address := dir
	var stop func() error
	switch {
	case k.served:
		address, stop, err = serve(ctx, name, dir, source)
	case k.Engine != "":
		var srv *servers.Server
		srv, err = servers.Launch(ctx, k.Engine, dir)
		if errors.Is(err, servers.ErrMissing) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.Missing = append(h.Missing, name)
			return nil
		}
		if err == nil {
			address, stop = srv.URL, func() error { srv.Stop(); return nil }
			if file := srv.Extra["kubeconfig"]; file != "" {
				address = file
			}
		}
	}
	if err == nil {
		err = prepare(ctx, name, address)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if stop != nil {
		h.stops = append(h.stops, stop)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	h.Addresses[name] = address
	return nil
}

// prepare makes what a resource needs before anybody opens it.
func prepare(ctx context.Context, name, address string) error {
	switch name {
	case "sqlite", "postgres":
		return makeTables(ctx, name, address)
	case "dynamodb":
		return makeTable(ctx, address)
	}
	return nil
}

// Log returns the lines that a resource has accepted under a name, in order. One call at a time.
func (h *Host) Log(ctx context.Context, kind, name string) ([]string, error) {
	return h.resources[kind].Log(ctx, name)
}

// Close stops all servers.
func (h *Host) Close() (err error) {
	for _, r := range h.resources {
		err = errors.Join(err, r.Close())
	}
	for _, stop := range h.stops {
		err = errors.Join(err, stop())
	}
	h.stops = nil
	return err
}
