package open

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
)

// TestFinding_L7_OneConnectionPerWaiter: a process that waits for a name on PostgreSQL has the connection that listens, and reads on it.
// Where the machine stalls, a request takes too long: its connection is given up, and the server still has it beside the next one.
func TestFinding_L7_OneConnectionPerWaiter(t *testing.T) {
	srv := servers.Postgres(t)
	noEnv(t, postgresEnv...)
	postgresTable(t, srv.URL)
	stalltest.Run(t, func(t testing.TB) { oneConnectionPerWaiter(t, srv.URL) })
}

func oneConnectionPerWaiter(t testing.TB, url string) {
	const waiting, ttl = 5, 15 * time.Second
	name := fmt.Sprint("crowded-", time.Now().UnixNano())
	join := func(as string) *lease.Manager {
		st := openURL(t, url+"&application_name="+as)
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		m, err := lease.NewManager(st, lease.Options{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	held, err := join("holder").Acquire(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	ended, tokens := make(chan error, waiting), make(chan struct{}, waiting)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range waiting {
		m := join("waiter")
		go func() {
			l, err := m.Acquire(ctx, name)
			if err == nil {
				tokens <- struct{}{}
				err = l.Release(ctx)
			}
			ended <- err
		}()
	}
	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	count := func() (n int) {
		t.Helper()
		err := admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'waiter'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	settled := time.Now().Add(2 * time.Minute)
	for count() != waiting {
		if time.Now().After(settled) {
			t.Fatalf("%d who wait have %d connections", waiting, count())
		}
		time.Sleep(time.Second)
	}
	for end := time.Now().Add(ttl); time.Now().Before(end); time.Sleep(100 * time.Millisecond) { // with renewals, and with looks at everything
		if n := count(); n > waiting {
			t.Fatalf("%d who wait have %d connections", waiting, n)
		}
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range waiting {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if len(tokens) != waiting {
		t.Errorf("%d of %d got the name", len(tokens), waiting)
	}
}
