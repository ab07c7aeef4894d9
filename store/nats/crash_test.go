package nats

import (
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestServerCrashes(t *testing.T) {
	srv := servers.NATS(t)
	js := dial(t, srv.Addr)
	bucket := newBucket(t, js, 1)
	s, other := open(t, js, bucket), open(t, dial(t, srv.Addr), bucket)
	if err := storetest.Crashes(t.Context(), s, other, func() { srv.Kill(); srv.Restart() }); err != nil {
		t.Error(err)
	}
}
