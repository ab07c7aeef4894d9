package lease_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

func TestOptionsRefused(t *testing.T) {
	st := memory.New(memory.Options{})
	for name, c := range map[string]struct {
		options lease.Options
		want    []string // in the error; none: no error
	}{
		"the defaults":      {lease.Options{}, nil},
		"everything":        {lease.Options{TTL: time.Second, Margin: 0.3, Drift: 0.1, Renew: 200 * time.Millisecond, Attempt: 50 * time.Millisecond, Name: "billing é", Info: map[string]string{"a": "b"}}, nil},
		"an unsafe margin":  {lease.Options{Margin: 0.1}, []string{"unsafe margin 0.1", "2·0.11/(1+0.11) = 0.1982"}},
		"a late renewal":    {lease.Options{Renew: 14 * time.Second}, []string{"14s + 2·750ms", "12s"}},
		"a TTL too short":   {lease.Options{TTL: time.Millisecond}, []string{"TTL 1ms", "10ms"}},
		"a negative TTL":    {lease.Options{TTL: -time.Second}, []string{"TTL -1s"}},
		"a negative margin": {lease.Options{Margin: -1}, []string{"margin -1"}},
		"a name too long":   {lease.Options{Name: strings.Repeat("x", 101)}, []string{"name", "at most 100"}},
		"a slash":           {lease.Options{Name: "a/b"}, []string{`name "a/b"`, "without a slash"}},
		"a line break":      {lease.Options{Name: "a\nb"}, []string{`name "a\nb"`}},
		"broken text":       {lease.Options{Name: "a\xff"}, []string{`name "a\xff"`}},
		"too much info":     {lease.Options{Info: map[string]string{"k": strings.Repeat("x", 9<<10)}}, []string{"info of 92", "at most 8192"}},
		"as much info":      {lease.Options{Info: map[string]string{"k": strings.Repeat("x", 8<<10-len(`{"k":""}`))}}, nil},
		"a bit more info":   {lease.Options{Info: map[string]string{"k": strings.Repeat("x", 8<<10-len(`{"k":""}`)+1)}}, []string{"info of 8193"}},
		"a broken key":      {lease.Options{Info: map[string]string{"\xff": "v"}}, []string{`info "\xff"="v"`, "UTF-8"}},
		"broken info":       {lease.Options{Info: map[string]string{"k": "\xff"}}, []string{`info "k"="\xff"`, "UTF-8"}},
	} {
		m, err := lease.NewManager(st, c.options)
		if (err == nil) != (c.want == nil) || (m == nil) != (err != nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q doesn't say %q", name, err, part)
			}
		}
		if err != nil {
			continue
		}
		if l, err := m.Acquire(t.Context(), "job"); err != nil || l.Release(t.Context()) != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = m.Close()
	}
	if _, err := lease.NewManager(nil, lease.Options{}); err == nil {
		t.Error("a manager without a store")
	}
}

func TestOwner(t *testing.T) {
	m, err := lease.NewManager(memory.New(memory.Options{}), lease.Options{Name: strings.Repeat("n", 100)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if parts := strings.Split(m.Holder(), "/"); len(parts) != 4 || len(m.Holder()) > store.MaxKey || len(parts[3]) != 13 {
		t.Errorf("owner %q", m.Holder())
	}
	s, err := m.OpenSession(t.Context())
	if err != nil || len(s.Key()) > store.MaxKey || !keyspace.Reserved(s.Key()) {
		t.Errorf("session %v, %v", s, err)
	}
}

// Whatever a host is called, owner ids made of its name are keys of their four parts.
func TestOwnerOfAnyHost(t *testing.T) {
	for host, want := range map[string]string{"node-1": "node-1", "a/b": "a-b", "tab\there": "tab-here", "é": "é", "": "unknown-host"} {
		if got := lease.HostPart(host, nil); got != want {
			t.Errorf("%q is %q in an owner id, want %q", host, got, want)
		}
	}
	if got := lease.HostPart("node-1", errRefused); got != "unknown-host" {
		t.Errorf("a host that can't be asked is %q", got)
	}
}

func TestErrorMessages(t *testing.T) {
	errTaken := errors.New("two of three are taken")
	held := &lease.HeldError{Name: "job", Holder: "a", Err: errTaken, Since: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), Token: 7}
	lost := &lease.LostError{Name: "job", Token: 7, Cause: lease.CauseOutage, Err: errRefused}
	released := &lease.LostError{Name: "job", Token: 7, Cause: lease.CauseReleased}
	for err, want := range map[error]string{
		held: "job is held by a since 2026-06-01T12:00:00Z (token 7)", lost: "lease job (token 7) is lost: store outage: connection refused",
		released: "lease job (token 7) was released",
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if !errors.Is(held, lease.ErrHeld) || !errors.Is(held, errTaken) || errors.Is(held, lease.ErrLost) || !errors.Is(lost, lease.ErrLost) || !errors.Is(lost, errRefused) || errors.Is(released, lease.ErrLost) {
		t.Error("what the errors match")
	}
}

// A manager says by which options it works, with the defaults; who changes what it says changes nothing.
func TestOptionsOfAManager(t *testing.T) {
	st := memory.New(memory.Options{})
	m, err := lease.NewManager(st, lease.Options{Name: "east", Info: map[string]string{"job": "nightly"}, Sightings: &sightings.Book{}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := m.Options()
	if o.TTL != 15*time.Second || o.Margin != 0.2 || o.Drift != 0.11 || o.Renew != 5*time.Second || o.Attempt != 750*time.Millisecond {
		t.Errorf("timings %+v", o)
	}
	if o.Name != "east" || o.Info["job"] != "nightly" || o.Clock == nil || o.Sightings != nil {
		t.Errorf("%+v; the store vouches for ages, so there are no sightings", o)
	}
	o.Info["job"] = "another"
	if m.Options().Info["job"] != "nightly" {
		t.Error("what was returned is the manager's own")
	}
}
