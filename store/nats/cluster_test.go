package nats

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// member is one server of a cluster.
type member struct {
	t       testing.TB
	addr    string
	program string
	config  string
	cmd     *exec.Cmd
}

// startCluster starts three servers that replicate, and returns them when they do.
func startCluster(t testing.TB) []*member {
	t.Helper()
	routes := freeAddrs(t, 3)
	return startClusterWith(t, func(i int) string {
		return fmt.Sprintf("listen: %q, routes: [%s]", routes[i], `"nats://`+strings.Join(routes, `", "nats://`)+`"`)
	})
}

// startClusterWith starts it with those settings of each member's routes.
func startClusterWith(t testing.TB, routes func(i int) string) []*member {
	t.Helper()
	program, err := servers.Program("nats", "nats-server")
	if err != nil {
		if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
			t.Fatal(err)
		}
		t.Skip("not tried here: ", err)
	}
	clients := freeAddrs(t, 3)
	var members []*member
	for i := range clients {
		dir := t.TempDir()
		m := &member{t: t, addr: clients[i], program: program, config: filepath.Join(dir, "nats.conf")}
		text := fmt.Sprintf("server_name: n%d\nlisten: %q\njetstream { store_dir: %q, sync_interval: always }\ncluster { name: c, %s }\n",
			i, m.addr, dir, routes(i))
		if err := os.WriteFile(m.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m.start()
		t.Cleanup(m.kill)
		members = append(members, m)
	}
	eventually(t, "a cluster", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		nc, err := natsgo.Connect("nats://"+members[0].addr, natsgo.Timeout(soon))
		if err != nil {
			return false
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		return err == nil && Create(ctx, js, "ready", 3) == nil
	})
	return members
}

// TestFinding_S8_TheBucketIsLookedAtAgain: it gets more replicas while it is open, or another one takes its place, which acknowledges
// before it writes to a file. A handle that only waits, or is only asked, notices, too.
func TestFinding_S8_TheBucketIsLookedAtAgain(t *testing.T) {
	members := startCluster(t)
	js := dial(t, members[0].addr)
	bucket := newBucket(t, js, 1)
	s, err := Open(t.Context(), js, bucket, Options{SyncAlways: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Properties().Fencing; got != store.FencingLinearizable {
		t.Fatalf("fencing %q", got)
	}
	changed := func(what string, there func(store.Properties) bool) {
		s.mu.Lock()
		s.due = 0 // what the next 30 s would bring
		s.mu.Unlock()
		eventually(t, what, func() bool { return there(s.Properties()) })
	}

	config := s.stream.CachedInfo().Config
	config.Replicas = 3
	eventually(t, "two replicas more", func() bool { _, err := js.UpdateStream(t.Context(), config); return err == nil })
	changed("a look at the replicas", func(p store.Properties) bool {
		return s.config.Load().Replicas == 3 && p.Fencing == store.FencingLinearizable
	})

	if err := js.DeleteKeyValue(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	config.Replicas, config.PersistMode = 1, jetstream.AsyncPersistMode
	eventually(t, "another bucket", func() bool { _, err := js.CreateStream(t.Context(), config); return err == nil })
	changed("a look at the persist mode", func(p store.Properties) bool { return p.Fencing == store.FencingPerPrimary })
	for _, f := range s.Inspect(t.Context()) {
		if f.What == "durability" && (f.Status != driver.StatusWarn || !strings.Contains(f.Detail, "async")) {
			t.Errorf("doctor: %+v", f)
		}
	}
}

// freeAddrs returns addresses on which nobody listens just now.
func freeAddrs(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for range n {
		addrs = append(addrs, servers.FreeAddr(t))
	}
	return addrs
}

func (m *member) start() {
	m.t.Helper()
	m.cmd = exec.Command(m.program, "-c", m.config)
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *member) kill() {
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}
