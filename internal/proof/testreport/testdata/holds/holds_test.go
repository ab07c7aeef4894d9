// Package holds has a test that starts servers and waits: the tests of testreport interrupt it.
package holds

import (
	"os"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main(m).Run()) }

// TestHolds makes the file that LEASEHOLD_HOLDS names once its servers are up, and waits.
func TestHolds(t *testing.T) {
	name := os.Getenv("LEASEHOLD_HOLDS")
	if name == "" {
		t.Skip("LEASEHOLD_HOLDS names no file")
	}
	servers.Redis(t)
	servers.Postgres(t)
	servers.Redis(t, servers.Shared())
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {}
}
