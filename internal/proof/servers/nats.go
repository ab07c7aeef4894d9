package servers

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var nats = register(&engine{
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
	store:  func(s *Server) Store { return Store{URL: s.URL + "/leasehold?create=true"} },
	client: natsClient{},
})

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

// natsClient is the plainest client.
type natsClient struct{}

// request sends a request and returns the reply.
func (natsClient) request(ctx context.Context, s *Server, subject, body string) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	tcp := conn
	hangUp := func() { _ = tcp.Close() }
	defer hangUp()
	defer context.AfterFunc(ctx, hangUp)()
	in := bufio.NewReader(conn)
	if _, err := in.ReadString('\n'); err != nil { // INFO
		return "", err
	}
	if config, err := s.clientTLS(); err != nil {
		return "", err
	} else if config != nil {
		conn = tls.Client(conn, config)
		in = bufio.NewReader(conn)
	}
	password, _ := u.User.Password()
	if _, err := fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"user\":%q,\"pass\":%q}\r\nSUB in 1\r\nPUB %s in %d\r\n%s\r\n",
		u.User.Username(), password, subject, len(body), body); err != nil {
		return "", err
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(line, "-ERR") {
			return "", errors.New(line)
		}
		if strings.HasPrefix(line, "MSG in ") {
			return in.ReadString('\n')
		}
	}
}

func (n natsClient) put(ctx context.Context, s *Server, value string) error {
	text, err := n.request(ctx, s, "$JS.API.STREAM.CREATE.servers", `{"name":"servers","subjects":["key"],"storage":"file"}`)
	if err := wants(0, `"config"`)(0, text, err); err != nil {
		return err
	}
	text, err = n.request(ctx, s, "key", value)
	return wants(0, `"seq"`)(0, text, err)
}

func (n natsClient) get(ctx context.Context, s *Server) (string, error) {
	text, err := n.request(ctx, s, "$JS.API.STREAM.MSG.GET.servers", `{"last_by_subj":"key"}`)
	var answer struct{ Message struct{ Data []byte } }
	err = errors.Join(err, json.Unmarshal([]byte(text), &answer))
	return string(answer.Message.Data), err
}
