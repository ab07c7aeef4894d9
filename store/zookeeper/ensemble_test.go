package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

const jar = "/usr/share/java/zookeeper.jar"

// ensemble starts three servers, the third of which follows one of the others over a network that it returns.
func ensemble(t testing.TB) (addrs [3]string, networks []*servers.Network) {
	t.Helper()
	if _, err := os.Stat(jar); err != nil && os.Getenv("LEASEHOLD_TEST_REQUIRE") != "all" {
		t.Skip("not tried here: ZooKeeper is not installed: ", err)
	}
	var quorum, election [3]string
	for i := range addrs {
		addrs[i], quorum[i], election[i] = servers.FreeAddr(t), servers.FreeAddr(t), servers.FreeAddr(t)
	}
	for i := range addrs {
		var text strings.Builder
		dir := t.TempDir()
		_, port, _ := net.SplitHostPort(addrs[i])
		fmt.Fprintf(&text, "tickTime=500\nmaxSessionTimeout=60000\ninitLimit=40\nsyncLimit=40\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n", dir, port)
		for j := range addrs {
			at := quorum[j]
			if i == 2 && j < 2 {
				network := servers.Proxy(t, at)
				networks = append(networks, network)
				at = network.Addr
			}
			fmt.Fprintf(&text, "server.%d=%s:%s\n", j+1, at, election[j][strings.LastIndex(election[j], ":")+1:])
		}
		must(t, os.WriteFile(filepath.Join(dir, "myid"), fmt.Appendf(nil, "%d\n", i+1), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(text.String()), 0o600))
		cmd := exec.CommandContext(t.Context(), "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-cp", jar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"))
		must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Wait() }) // killed by the end of the context
		if i == 1 {                          // the first two elect one of them
			serves(t, func() error { _, err := srvr(t.Context(), addrs[1]); return err })
		}
	}
	serves(t, func() error {
		facts, err := srvr(t.Context(), addrs[2])
		if err == nil && facts["Mode"] != "follower" {
			err = fmt.Errorf("the third server is %q", facts["Mode"])
		}
		return err
	})
	return addrs, networks
}

// serves waits for servers as long as those of internal/proof/servers are waited for.
func serves(t testing.TB, try func() error) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadsOnAServerThatIsBehind: what was acknowledged elsewhere is seen, though the server at hand has not heard of it.
func TestReadsOnAServerThatIsBehind(t *testing.T) { stalltest.Run(t, readsOnAServerThatIsBehind) }

func readsOnAServerThatIsBehind(t testing.TB) {
	addrs, networks := ensemble(t)
	root := aRoot()
	ahead, _ := open(t, addrs[0], root)
	behind, _ := open(t, addrs[2], root)
	rec := storetest.MustPut(t, ahead, held("k"))
	gone := storetest.MustPut(t, ahead, held("gone"))
	if _, err := behind.Get(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	for _, n := range networks {
		n.Delay(500 * time.Millisecond)
	}
	local := func() string {
		f, err := readNode(behind.node("k"))(behind.conn)
		must(t, err)
		r, err := decode("k", f.data, f.stat)
		must(t, err)
		return r.rec.Version
	}

	old := rec
	rec = storetest.MustPut(t, ahead, rec)
	if local() != old.Version {
		t.Fatal("the third server is not behind, so this shows nothing")
	}
	if got, err := behind.Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Errorf("Get: version %q, %v; %q was acknowledged", got.Version, err, rec.Version)
	}

	rec = storetest.MustPut(t, ahead, rec)
	must(t, ahead.Delete(t.Context(), gone.Key, gone.Version))
	seen := map[string]string{}
	for rec, err := range behind.List(t.Context(), "") {
		must(t, err)
		seen[rec.Key] = rec.Version
	}
	if len(seen) != 1 || seen["k"] != rec.Version {
		t.Errorf("List: %v; stored is k at %q alone", seen, rec.Version)
	}

	// A conflict brings what is stored, and a Wait for the version that is stored doesn't end for an older one.
	old, rec = rec, storetest.MustPut(t, ahead, rec)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if got, err := behind.Wait(ctx, "k", rec.Version); ctx.Err() == nil {
		t.Errorf("Wait for a change of version %q returned %q, %v", rec.Version, got.Version, err)
	}
	rec = storetest.MustPut(t, ahead, rec)
	if local() == rec.Version {
		t.Fatal("the third server is not behind, so this shows nothing")
	}
	if _, err := behind.Put(t.Context(), old); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Put: %v", err)
	} else if c := (&store.ConflictError{}); !errors.As(err, &c) || c.Current.Version != rec.Version {
		t.Errorf("the conflict brings %+v, want version %q", err, rec.Version)
	}
	// A refusal in a session that was replaced says nothing about the server at hand.
	rec = storetest.MustPut(t, ahead, rec)
	replaced := behind.conn.SessionID() + 1
	if c := (&store.ConflictError{}); !errors.As(behind.explain(t.Context(), "k", old.Version, &replaced), &c) || c.Current.Version != rec.Version {
		t.Errorf("after another session's refusal: %+v, want version %q", c, rec.Version)
	}
	w := storetest.StartWait(t, behind, rec)
	storetest.MustPut(t, ahead, rec)
	w.End(t)
}
