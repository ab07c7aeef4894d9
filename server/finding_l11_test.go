package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// On a store that vouches for no age the server remembers since when a record stands: what it granted expires by its own clock, and what others
// took a TTL after it first saw that. It says how long there is no sign of life.
func TestFinding_L11_TheServerRemembersSinceWhen(t *testing.T) {
	clk, db := clock.NewFake(0), memory.NewDB(memory.Options{})
	st := faulty.Ageless(db.Open())
	srv, err := server.New(st, server.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Server: httptest.NewServer(srv), db: db}
	t.Cleanup(func() {
		_ = srv.Close()
		s.Close()
		_ = st.Close()
	})
	shown := func(name string, state api.State, left, silent time.Duration) {
		t.Helper()
		var l api.Lease
		want(t, s.ask(t, "GET", "/v1/leases/"+name, "", &l), http.StatusOK)
		near := func(got *api.Seconds, want time.Duration) bool {
			if got == nil {
				return want == 0
			}
			return (time.Duration(*got) - want).Abs() < time.Minute // the fake clock runs
		}
		if l.State != state || !near(l.ExpiresIn, left) || !near(l.Silent, silent) {
			t.Errorf("%s: %s, expires in %v, silent for %v; want %s, %v, %v", name, l.State, l.ExpiresIn, l.Silent, state, left, silent)
		}
	}
	want(t, s.ask(t, "POST", "/v1/leases/granted", `{"holder": "a", "ttl": 36000}`, nil), http.StatusCreated)
	s.put(t, store.Record{Key: "other", Owner: "b", Token: 1, TTL: 10 * time.Hour, Nonce: "n"})
	clk.Jump(9 * time.Hour)
	shown("granted", api.StateHeld, time.Hour, 9*time.Hour)
	shown("other", api.StateHeld, 10*time.Hour, 0)
	clk.Jump(2 * time.Hour)
	shown("granted", api.StateExpired, 0, 11*time.Hour)
	clk.Jump(8 * time.Hour)
	shown("other", api.StateExpired, 0, 10*time.Hour)
}
