package consul

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// TestOutcomesInABadNetwork: what may have happened is unknown, and what was never sent is not.
func TestOutcomesInABadNetwork(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	prefix := aPrefix()
	s, _ := open(t, api.Config{Address: network.Addr}, Options{Prefix: prefix})
	other, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix})
	giveUp := func(cancel func()) { cancel() }
	reset := func(func()) { network.Reset() }
	for _, c := range []struct {
		name       string
		fault, end func()
		interrupt  func(cancel func()) // nil where the write ends by itself: its outcome is known
		done       bool
		want       string
	}{
		{"reply lost", func() { network.SwallowReplies(true) }, func() { network.SwallowReplies(false) }, giveUp, true, "did not answer in time"},
		{"request lost", func() { network.DropRequests(true) }, func() { network.DropRequests(false) }, giveUp, false, "did not answer in time"},
		{"reset before the reply", func() { network.SwallowReplies(true) }, func() { network.SwallowReplies(false) }, reset, true, ""},
		{"no server", network.Refuse, network.Heal, nil, false, "is an agent running there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			there, gone := storetest.MustPut(t, other, held("there/"+c.name)), storetest.MustPut(t, other, held("gone/"+c.name))
			arrived := func(rec store.Record) error {
				got, err := store.Load(t.Context(), other, rec.Key)
				if done := got.Version != rec.Version; err == nil && done != c.done {
					err = fmt.Errorf("%s: version %q after %q; want it done: %v", rec.Key, got.Version, rec.Version, c.done)
				}
				return err
			}
			try := func(rec store.Record, write func(context.Context) error) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				lost, result := network.Lost(), make(chan error, 1)
				go func() { result <- write(ctx) }()
				if c.interrupt != nil { // when what is to be lost is lost, and what is to arrive has arrived
					storetest.Eventually(t, func() error {
						if network.Lost() == lost {
							return errors.New("nothing is lost yet")
						}
						return arrived(rec)
					})
					c.interrupt(cancel)
				}
				return <-result
			}
			c.fault()
			putErr := try(there, func(ctx context.Context) error { _, err := s.Put(ctx, there); return err })
			deleteErr := try(gone, func(ctx context.Context) error { return s.Delete(ctx, gone.Key, gone.Version) })
			c.end()
			for call, err := range map[string]error{"Put": putErr, "Delete": deleteErr} {
				if unknown := c.interrupt != nil; err == nil || isUnknown(err) != unknown || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v; want an unknown outcome: %v, and %q", call, err, unknown, c.want)
				}
			}
			if err := errors.Join(arrived(there), arrived(gone)); err != nil {
				t.Error(err)
			}
		})
	}
}
