package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

// A machine starts its programs before the store answers, and after an outage all at once: what waits for a name waits for the store, and
// says so. What isn't to wait fails at once.
func TestFinding_L6_AStoreThatIsDownAtTheStart(t *testing.T) {
	for name, start := range map[string]func(testing.TB) (addr, url string){
		"PostgreSQL": func(t testing.TB) (string, string) {
			srv := postgresWithSchema(t)
			return srv.Addr, strings.Replace(srv.URL, srv.Addr, "%s", 1)
		},
		"NATS":      func(t testing.TB) (string, string) { return servers.NATS(t).Addr, "nats://%s?create=true" },
		"etcd":      func(t testing.TB) (string, string) { return servers.Etcd(t).Addr, "etcd://%s" },
		"ZooKeeper": func(t testing.TB) (string, string) { return servers.ZooKeeper(t).Addr, "zk://%s" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, form := start(t)
			network := servers.Proxy(t, addr)
			network.Refuse()
			url := fmt.Sprintf(form, network.Addr)
			p := newPlace(t)
			waits := []*program{
				p.start("run", "--store", url, "job", "--", "touch", p.path("ran")),
				p.start("elect", "--store", url, "election", "--", "touch", p.path("led")),
				p.start("serve", "--store", url, "--listen", "127.0.0.1:0"),
			}
			if code := p.start("run", "-n", "--store", url, "job", "--", "true").code(); code != 125 {
				t.Errorf("run -n: exit code %d, want 125", code)
			}
			if code := p.start("run", "-w", "1s", "--store", url, "job", "--", "true").code(); code != 75 {
				t.Errorf("run -w 1s: exit code %d, want 75", code)
			}
			for i, prog := range waits {
				eventually(t, "it says why it waits", func() bool { return strings.Contains(prog.stderr.String(), "waiting for the store: open") })
				select {
				case <-prog.ended:
					t.Errorf("%d has ended: %s", i, prog.stderr)
				default:
				}
			}
			network.Heal()
			if code := waits[0].code(); code != 0 {
				t.Errorf("exit code %d: %s", code, waits[0].stderr)
			}
			p.read("ran")
			for _, prog := range waits {
				_, why, _ := strings.Cut(prog.stderr.String(), "waiting for the store: open")
				if strings.Contains(why, cli.SlowStore) || strings.Contains(why, "\n\t") {
					t.Errorf("it says why in one line, and then no guess: %s", prog.stderr)
				}
			}
			eventually(t, "it leads", func() bool {
				_, err := os.Stat(p.path("led"))
				return err == nil
			})
			eventually(t, "it serves", func() bool { return strings.Contains(waits[2].stderr.String(), " on http://127.0.0.1:") })
		})
	}
}
