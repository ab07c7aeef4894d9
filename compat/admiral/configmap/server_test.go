package configmap_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/compat/admiral/configmap"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

// bearer authenticates by a token.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// On a real API server: four instances that allocate at the same time hand out no address twice, and what a fifth finds in the
// ConfigMap is what they handed out.
func TestAllocationOnARealServer(t *testing.T) {
	srv := servers.Kubernetes(t)
	transport := &http.Transport{TLSClientConfig: srv.TLSConfig(), DialContext: (&net.Dialer{}).DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: bearer{transport, srv.Extra["token"]}, Timeout: 20 * time.Second}
	allocator := func() *admiral.Allocator {
		st, err := configmap.New(client, "https://"+srv.Addr, "default", "se-address-configmap")
		if err != nil {
			t.Fatal(err)
		}
		a, err := admiral.NewAllocator(st, "240.0")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	var mu sync.Mutex
	names := map[string]string{} // by address
	var wg sync.WaitGroup
	for i := range 4 {
		a := allocator()
		wg.Go(func() {
			for n := range 10 {
				name := fmt.Sprintf("svc-%d.instance-%d.global", n, i)
				address, err := a.Address(t.Context(), name)
				for errors.Is(err, admiral.ErrChanged) { // three tries each, as Admiral has it
					address, err = a.Address(t.Context(), name)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if other, taken := names[address]; taken {
					t.Errorf("%s was handed out to %s and to %s", address, other, name)
				}
				names[address] = name
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	a := allocator()
	for address, name := range names {
		if got, err := a.Address(t.Context(), name); err != nil || got != address {
			t.Errorf("%s: %s, %v; want %s", name, got, err, address)
		}
	}
	if len(names) != 40 {
		t.Errorf("%d addresses for 40 names", len(names))
	}
}
