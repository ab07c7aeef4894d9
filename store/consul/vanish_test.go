package consul

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// afterRefusal calls do when a write was refused, before the writer hears of it.
type afterRefusal struct {
	http.RoundTripper
	do func()
}

func (a *afterRefusal) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusConflict {
		a.do()
	}
	return resp, err
}

// TestCreationInTheWayOfADeletion: a creation that meets a record which is deleted at that moment comes after the deletion. To say that it
// met nothing would be no answer that any order of the two explains.
func TestCreationInTheWayOfADeletion(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	prefix := aPrefix()
	s, r := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix})
	other, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix})
	there := storetest.MustPut(t, other, held("k"))
	refused := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.RoundTripper = &afterRefusal{r.RoundTripper, func() {
		refused++
		if err := other.Delete(t.Context(), "k", there.Version); err != nil {
			t.Error(err)
		}
	}}
	made, err := s.Put(ctx, held("k"))
	if err != nil || refused != 1 {
		t.Fatalf("%v, after %d refusals", err, refused)
	}
	if got, err := other.Get(t.Context(), "k"); err != nil || got.Version != made.Version {
		t.Errorf("%+v, %v; want version %q", got, err, made.Version)
	}
	r.RoundTripper.(*afterRefusal).do = func() {
		if err := other.Delete(t.Context(), "k", made.Version); err != nil {
			t.Error(err)
		}
		cancel()
	}
	if _, err := s.Put(ctx, held("k")); err == nil || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("given up after a refusal: %v", err)
	}
}
