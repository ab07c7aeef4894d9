package dr

import (
	"context"
	"sync"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/engines"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/kubevents"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/open"
)

// announcements are the Events about the lease, where the store is a cluster of Kubernetes.
type announcements struct {
	mu     sync.Mutex
	events *kubevents.Recorder // of the store that was opened last; nil for none
	// Has it said that this instance leads no longer; nil while it doesn't lead.
	end func()
}

// announcing is open, and then has changes of the role announced where that store is.
func (s *standIn) announcing(open opener) opener {
	return func(ctx context.Context, cfg admiral.Config) (store.Store, error) {
		st, err := open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		if url, err := s.storeURL(cfg); err == nil {
			s.announced.to(kubevents.New(url, st, s.a.Clock, func(text string) { s.words.Warn("%s: %s", s.lease.name(), text) }))
		}
		return st, nil
	}
}

// storeURL is that of the store that [checkedLease.openStore] opens.
func (s *standIn) storeURL(cfg admiral.Config) (open.URL, error) {
	if cfg.Store != "" {
		return open.Parse(cfg.Store)
	}
	url, _, err := engines.URL(s.a.App)
	return url, err
}

func (a *announcements) to(r *kubevents.Recorder) {
	a.mu.Lock()
	before := a.events
	a.events, a.end = r, nil
	a.mu.Unlock()
	before.Close()
}

// change is called when the role has changed.
func (a *announcements) change(name string, st admiral.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !st.ReadOnly {
		events, owner, token := a.events, st.Owner, st.Token
		events.Leads(name, owner, token)
		a.end = func() { events.Stopped(name, owner, token) }
		return
	}
	a.stopped()
}

func (a *announcements) stopped() {
	if a.end != nil {
		a.end()
	}
	a.end = nil
}

// close writes what is left, for a second at most.
func (a *announcements) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped()
	a.events.Close()
}
