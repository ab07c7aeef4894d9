package server_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// slowList is a store whose lists may be held up when they have been read, or fail.
type slowList struct {
	*memory.Store
	hold atomic.Pointer[chan struct{}] // a list is delivered when it is closed
	read chan struct{}                 // tells of a list that is held up
	fail atomic.Bool
	done atomic.Int64 // lists
}

func (s *slowList) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		defer s.done.Add(1)
		if s.fail.Load() {
			yield(store.Record{}, errors.New("no list today"))
			return
		}
		var all []store.Record
		for rec, err := range s.Store.List(ctx, prefix) {
			if err != nil {
				yield(rec, err)
				return
			}
			all = append(all, rec)
		}
		if hold := s.hold.Load(); hold != nil {
			s.hold.Store(nil)
			s.read <- struct{}{}
			<-*hold
		}
		for _, rec := range all {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func newSlowSite(t *testing.T) (*site, *slowList) {
	t.Helper()
	st := &slowList{Store: memory.New(memory.Options{}), read: make(chan struct{})}
	srv, err := server.New(st, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Server: httptest.NewServer(srv), srv: srv}
	t.Cleanup(func() {
		_ = srv.Close()
		s.Close()
		_ = st.Close()
	})
	return s, st
}

// What this server has changed since a look began is newer than what that look found: watchers don't see it undone.
func TestWatchNeverGoesBack(t *testing.T) {
	s, st := newSlowSite(t)
	first := s.acquired(t, "old", "")
	w := s.stream(t, "", "")
	w.next()
	w.lease("old", api.StateHeld)
	release := make(chan struct{})
	st.hold.Store(&release)
	<-st.read // a list that knows nothing of what follows
	s.acquired(t, "new", "")
	w.lease("new", api.StateHeld)
	want(t, s.ask(t, "DELETE", "/v1/leases/old", "", nil, "Leasehold-Sequencer", first.Sequencer, "Leasehold-Secret", first.Secret), http.StatusNoContent)
	w.lease("old", api.StateFree)
	close(release)
	looks := st.done.Load()
	for st.done.Load() < looks+3 { // the one that was held up, and at least one whole after it
		time.Sleep(10 * time.Millisecond)
	}
	s.acquired(t, "last", "")
	w.lease("last", api.StateHeld) // nothing came between
}

// A look that fails says nothing about pauses.
func TestWatchPausedWhileTheStoreIsDown(t *testing.T) {
	s, st := newSlowSite(t)
	if err := election.SetPause(t.Context(), st, "boss", election.Pause{By: "ops", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	w := s.stream(t, "", "")
	w.next()
	w.lease("boss", api.StateFree)
	st.fail.Store(true)
	looks := st.done.Load()
	for st.done.Load() < looks+3 {
		time.Sleep(10 * time.Millisecond)
	}
	s.acquired(t, "boss", "")
	if l := w.lease("boss", api.StateHeld); l.Paused == nil {
		t.Errorf("%+v", l)
	}
}
