package rdlm

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// A lock's lifetime ends as RDLM's does, also on a store that vouches for no age: this server has granted it, and counts by its own clock.
// Nobody has to ask for the name before.
func TestFinding_L11_LifetimesEnd(t *testing.T) {
	clk, st := clocktest.New(0), faulty.Ageless(memory.NewDB(memory.Options{}).Open())
	reg := lessor.New(st, lessor.Options{Clock: clk})
	s := &site{reg: reg, Server: httptest.NewServer(New(reg, st, clk, Options{}))}
	t.Cleanup(func() {
		_ = reg.Close()
		s.Close()
		_ = st.Close()
	})
	path := s.locked(t, "job", `{"title": "me", "wait": 0, "lifetime": 3600}`)
	clk.Jump(time.Hour - time.Minute)
	if a := s.ask(t, http.MethodGet, path, ""); a.status != http.StatusOK {
		t.Errorf("a lock whose lifetime isn't over: %+v", a)
	}
	clk.Jump(time.Minute)
	if a := s.ask(t, http.MethodGet, path, ""); a.status != http.StatusNotFound {
		t.Errorf("a lock whose lifetime is over: %+v", a)
	}
	if a := s.ask(t, http.MethodGet, "/resources/job", ""); strings.Contains(a.body, `"active"`) {
		t.Errorf("it is shown: %+v", a)
	}
	if a := s.ask(t, http.MethodDelete, path, ""); a.status != http.StatusNotFound {
		t.Errorf("it is released: %+v", a)
	}
}
