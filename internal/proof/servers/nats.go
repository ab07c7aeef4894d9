package servers

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var nats = &engine{
	name: "nats", title: "NATS", ports: 2, options: "tls password settings",
	find: installed("nats", "nats-server"),
	plan: planNATS,
	ready: func(ctx context.Context, s *Server) error {
		monitor := s.Extra["monitor"]
		if monitor == "" {
			return dials(ctx, s.Addr)
		}
		return wants(200, `"ok"`)(s.get(ctx, monitor+"/healthz"))
	},
	adopt: func(s *Server, text string) error {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "nats" || u.Host == "" {
			return fmt.Errorf("want nats://HOST:PORT")
		}
		s.Addr, s.URL = u.Host, text
		s.Env["NATS_URL"] = text
		return nil
	},
}

// NATS starts NATS with JetStream, which writes to the disk before it acknowledges.
// Extra["monitor"] is the URL of its monitoring.
func NATS(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, nats, opts) }

func planNATS(_ context.Context, s *Server, program string) (command, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %q\nhttp: %q\n", s.Addr, s.ports[1].addr())
	fmt.Fprintf(&b, "jetstream { store_dir: %q, sync_interval: always }\n", s.Dir+"/data")
	u := url.URL{Scheme: "nats", Host: s.Addr}
	s.Extra["monitor"] = "http://" + s.ports[1].addr()
	if s.config.tls {
		u.Scheme = "tls"
		fmt.Fprintf(&b, "tls { cert_file: %q, key_file: %q, ca_file: %q, verify: %t }\n",
			s.Extra["server-cert"], s.Extra["server-key"], s.Extra["ca"], s.config.mutual)
	}
	if p := s.config.password; p != "" {
		fmt.Fprintf(&b, "authorization { user: leasehold, password: %q }\n", p)
		s.Extra["user"], s.Extra["password"] = "leasehold", p
		u.User = url.UserPassword("leasehold", p)
	}
	b.WriteString(s.config.lines("%s: %s"))
	s.URL = u.String()
	s.Env["NATS_URL"] = s.URL
	file := filepath.Join(s.Dir, "nats.conf")
	return command{args: []string{program, "-c", file}}, os.WriteFile(file, []byte(b.String()), 0o600)
}
