package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// cutting is a server behind a network that carries requests, and loses their answers.
type cutting struct {
	*site
	network *servers.Network
	c       *client.Client
}

func newCutting(t *testing.T) cutting {
	t.Helper()
	s := newSite(t, server.Options{})
	network := servers.Proxy(t, s.Listener.Addr().String())
	return cutting{s, network, s.client(t, "http://"+network.Addr)}
}

// unheard makes a call whose answer is lost, after which its connection breaks. done reports whether the server has done what it asks for.
func (s cutting) unheard(t *testing.T, call func(context.Context) error, done func(store.Record) bool) error {
	t.Helper()
	st := s.db.Open()
	defer func() { _ = st.Close() }()
	lost := s.network.Lost()
	s.network.SwallowReplies(true)
	ended := make(chan error, 1)
	go func() { ended <- call(t.Context()) }()
	storetest.Eventually(t, func() error {
		rec, err := store.Load(t.Context(), st, "job")
		if err == nil && (!done(rec) || s.network.Lost() == lost) {
			err = errors.New("the server hasn't done it, or hasn't answered")
		}
		return err
	})
	s.network.SwallowReplies(false)
	return <-ended
}

// TestFinding_S5_CallsWhoseAnswersAreLost: they are sent again, and done once.
func TestFinding_S5_CallsWhoseAnswersAreLost(t *testing.T) {
	s := newCutting(t)
	ctx := t.Context()
	if _, err := s.c.Get(ctx, "job"); err != nil { // over a connection that is open
		t.Fatal(err)
	}
	var g client.Grant
	err := s.unheard(t, func(ctx context.Context) (err error) {
		g, err = s.c.Acquire(ctx, "job", client.AcquireOptions{Holder: "ci", TTL: time.Minute})
		return err
	}, func(rec store.Record) bool { return rec.Owner != "" })
	if err != nil || g.Left() <= 0 {
		t.Fatalf("acquire: %+v, %v", g, err)
	}
	if terms, err := s.c.History(ctx, "job"); err != nil || len(terms) != 1 || terms[0].Token != g.Token {
		t.Errorf("acquire: %+v, %v, want the one term of token %d", terms, err, g.Token)
	}

	err = s.unheard(t, func(ctx context.Context) error {
		renewed, err := s.c.Renew(ctx, g, 2*time.Minute)
		if err == nil && (renewed.Token != g.Token || renewed.TTL != 2*time.Minute || renewed.ValidUntil <= g.ValidUntil) {
			t.Errorf("renew: %+v", renewed)
		}
		return err
	}, func(rec store.Record) bool { return rec.TTL == 2*time.Minute })
	if err != nil {
		t.Errorf("renew: %v", err)
	}

	if err := s.unheard(t, func(ctx context.Context) error { return s.c.Release(ctx, g) }, func(rec store.Record) bool { return rec.Owner == "" }); err != nil {
		t.Errorf("release: %v", err)
	}
	if terms, err := s.c.History(ctx, "job"); err != nil || len(terms) != 1 || terms[0].Ended != "released" {
		t.Errorf("release: %+v, %v", terms, err)
	}

	s.stand(t, "east")
	east := s.standing(t, func(l api.Lease) bool { return l.Holder != "" && len(l.Candidates) == 1 })
	s.stand(t, "west")
	s.standing(t, func(l api.Lease) bool { return len(l.Candidates) == 2 })
	token := east.Token
	for _, order := range []client.Handover{{To: "west"}, {}} { // and back, to whoever is next
		order.Token, order.Wait = token, time.Minute
		next := map[string]string{"west": "west/", "": "east/"}[order.To]
		err := s.unheard(t, func(ctx context.Context) error {
			l, err := s.c.HandOver(ctx, "job", order)
			if err == nil && !strings.HasPrefix(l.Holder, next) {
				t.Errorf("hand over to %q: %+v", order.To, l)
			}
			token = l.Token
			return err
		}, func(rec store.Record) bool { return strings.HasPrefix(rec.Owner, next) })
		if err != nil {
			t.Errorf("hand over to %q: %v", order.To, err)
		}
	}
}

// TestFinding_S5_CallsThatAreNeverAnsweredAreUnknown: when their time is over, nobody says that they were not done.
func TestFinding_S5_CallsThatAreNeverAnsweredAreUnknown(t *testing.T) {
	s := newCutting(t)
	g, err := s.c.Acquire(t.Context(), "job", client.AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.network.SwallowReplies(true)
	for what, call := range map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error {
			_, err := s.c.Acquire(ctx, "other", client.AcquireOptions{})
			return err
		},
		"renew": func(ctx context.Context) error { _, err := s.c.Renew(ctx, g, 0); return err },
		"hand over": func(ctx context.Context) error {
			_, err := s.c.HandOver(ctx, "job", client.Handover{Token: g.Token})
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		lost, ended := s.network.Lost(), make(chan error, 1)
		go func() { ended <- call(ctx) }()
		storetest.Eventually(t, func() (err error) {
			if s.network.Lost() == lost {
				err = errors.New("the server hasn't answered")
			}
			return err
		})
		cancel()
		if err := <-ended; !errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v, want an unknown outcome", what, err)
		}
	}
}
