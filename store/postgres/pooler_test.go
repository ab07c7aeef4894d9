package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// pooler starts PgBouncer before a server, in transaction mode, with few connections to the server and many to clients. It
// returns the URL of the database behind it.
func pooler(t testing.TB, srv *servers.Server) (dsn string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
		if _, err := os.Stat(program); err != nil {
			if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
				t.Fatal("PgBouncer is not installed: apt-get install pgbouncer")
			}
			t.Skip("PgBouncer is not installed: apt-get install pgbouncer")
		}
	}
	host, port, err := net.SplitHostPort(srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	_, own, err := net.SplitHostPort(servers.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
postgres = host=%s port=%s dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
`, host, port, own)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{file}
	if os.Getuid() == 0 { // as which it refuses to run
		args = append([]string{"-u", "nobody"}, args...)
		dir := filepath.Dir(file)
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log := new(strings.Builder)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	dsn = at(t, srv.URL, net.JoinHostPort("127.0.0.1", own))
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", own))
		if err == nil {
			conn.Close()
			return dsn
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestConformanceBehindAPooler: in transaction mode each statement may meet another process of the server, and LISTEN and
// prepared statements are of no use.
func TestConformanceBehindAPooler(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	behind := pooler(t, srv)
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		table := newTable(t, srv.URL)
		return storetest.Instance{
			Open: func(ctx context.Context) (store.Store, error) {
				s, err := openOwner(ctx, behind, Options{Table: table})
				if err == nil && store.Describe(s).Push {
					return nil, errors.Join(errors.New("it relies on LISTEN"), s.Close())
				}
				return s, err
			},
			Pushes: true,
			Slow:   true, // each Wait takes a poll
		}
	})
}

// TestAPoolerThatComesLater: the statements of a handle were prepared on a connection straight to the server, and the next
// one leads through a pooler, on which others have prepared the same.
func TestAPoolerThatComesLater(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	behind := pooler(t, srv)
	table := newTable(t, srv.URL)
	s := mustOpen(t, behind, Options{Table: table})
	s.plain.Store(false) // what Open found on a direct connection
	together(t, 20, func() {
		key := newVersion()
		rec := storetest.MustPut(t, s, held(key, 1))
		for range 10 {
			rec = storetest.MustPut(t, s, rec)
		}
		if err := s.Delete(t.Context(), key, rec.Version); err != nil {
			t.Error(err)
		}
	})
	if !s.plain.Load() {
		t.Error("no statement failed for being prepared elsewhere: the test shows nothing")
	}
}
