package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// managed is the socket of a service manager.
type managed struct {
	t testing.TB
	*net.UnixConn
}

// manage starts a server whose service manager has a watchdog of 0.3 s.
func (p place) manage(args ...string) (managed, *program) {
	p.t.Helper()
	sock, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: p.path("notify"), Net: "unixgram"})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = sock.Close() })
	cmd := p.command(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+p.path("notify"), "WATCHDOG_USEC=300000")
	return managed{p.t, sock}, p.launch(cmd)
}

func (m managed) told() string {
	m.t.Helper()
	if err := m.SetReadDeadline(time.Now().Add(patienceOfTests)); err != nil {
		m.t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := m.Read(b)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(b[:n])
}

// until waits for a message that begins so, with nothing but beats before it.
func (m managed) until(want string) string {
	m.t.Helper()
	for deadline := time.Now().Add(patienceOfTests); ; {
		switch got := m.told(); {
		case strings.HasPrefix(got, want):
			return got
		case got != "WATCHDOG=1" || time.Now().After(deadline):
			m.t.Fatalf("%q, want %q", got, want)
		}
	}
}

// A service manager is told when the server is ready, that it lives, that it reads its files again, and that it ends.
func TestServeTellsItsManager(t *testing.T) { stalltest.Run(t, serveTellsItsManager) }

func serveTellsItsManager(t testing.TB) {
	m, prog := newPlace(t).manage("--drain-delay", "3s", "--admin", "127.0.0.1:0")
	ready := m.told()
	if !strings.HasPrefix(ready, "READY=1\nSTATUS=serving file:") || !strings.HasSuffix(ready, "; 0 wait\nWATCHDOG=1") {
		t.Fatalf("at first: %q", ready)
	}
	_, url, _ := strings.Cut(strings.SplitN(ready, ";", 2)[0], " on ")
	if resp, err := http.Get(url + "/readyz"); err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("it said that it was ready: %v", err)
	}
	if got := m.told(); got != "WATCHDOG=1" {
		t.Errorf("then: %q", got)
	}
	prog.signal(syscall.SIGHUP)
	m.until("RELOADING=1\nMONOTONIC_USEC=")
	m.until("READY=1")
	var state string
	eventually(t, "it says where its state is", func() (said bool) { // by a pipe that may be read later than the socket
		_, rest, _ := strings.Cut(prog.stderr.String(), "serving the state on ")
		state, _, said = strings.Cut(rest, "\n")
		return said
	})
	prog.signal(syscall.SIGTERM)
	m.until("STOPPING=1\nSTATUS=ending")
	resp, err := http.Get(state + "/readyz")
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("ready while it ends: %+v, %v", resp, err)
	}
	if code := prog.code(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d: %s", code, prog.stderr)
	}
}

// seek waits for a message in which all of these are. A store that takes its time for a look is told of, too, so others may come before.
func (m managed) seek(wants ...string) {
	m.t.Helper()
	var before []string
	for deadline := time.Now().Add(patienceOfTests); ; {
		got := m.told()
		if !slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(got, want) }) {
			return
		}
		if before = append(before, got); time.Now().After(deadline) {
			m.t.Fatalf("%q, want one with %q", before, wants)
		}
	}
}

// A store that doesn't answer is told; to start the server anew would not mend it, so it lives.
func TestServeTellsOfItsStore(t *testing.T) {
	p := newPlace(t)
	m, _ := p.manage()
	m.seek("READY=1\n")
	if err := os.Rename(p.path("leases.db"), p.path("elsewhere")); err != nil {
		t.Fatal(err)
	}
	m.seek("STATUS=serving ", "; 0 wait: ", "leases.db was removed or replaced while the store was open", "\nWATCHDOG=1")
	m.seek("WATCHDOG=1")
}

// The log is JSON, has each request at level debug, and no secret.
func TestServeLog(t *testing.T) {
	p := newPlace(t)
	const token = "the-token"
	text := "callers:\n- name: ci\n  token_sha256: [" + sha256sum(token) + "]\n  allow: [{actions: [acquire], names: ['*']}]\n"
	if err := os.WriteFile(p.path("policy.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	prog := p.start("serve", "--listen", "127.0.0.1:0", "--policy", "policy.yaml", "--log-format", "json", "--log-level", "debug")
	s := &served{place: p, program: prog}
	eventually(t, "it listens", func() bool {
		_, rest, ok := strings.Cut(prog.stderr.String(), " on http://")
		s.url = "http://" + strings.SplitN(rest, `"`, 2)[0]
		return ok && strings.Contains(rest, "\n")
	})
	if status, body := s.ask(http.MethodPost, "/v1/leases/a", `{"holder": "in-the-body"}`, token); status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	if status, body := s.ask(http.MethodPost, "/v1/leases/a?access_token=in-the-query", "", token); status != http.StatusBadRequest { // it is refused, and not logged
		t.Fatalf("%d %s", status, body)
	}
	s.ask(http.MethodGet, "/v1/leases/a", "", "wrong-token")
	s.ask(http.MethodGet, "/", "", "")
	var seen []string
	eventually(t, "the requests are told", func() bool {
		seen = nil
		for line := range strings.Lines(prog.stderr.String()) {
			var l struct {
				Time                     time.Time
				Level, Msg, Method, Path string
				Caller, Remote           string
				Status, Bytes            int
				Seconds                  float64
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil || l.Time.IsZero() {
				t.Fatalf("%s: %v", line, err)
			}
			if l.Msg == "request" {
				if l.Level != "DEBUG" || l.Bytes == 0 || l.Seconds <= 0 || !strings.HasPrefix(l.Remote, "127.0.0.1:") {
					t.Errorf("%s", line)
				}
				seen = append(seen, strings.Join([]string{l.Method, l.Path, http.StatusText(l.Status), l.Caller}, " "))
			}
		}
		return len(seen) == 4
	})
	if got, want := strings.Join(seen, "|"), "POST /v1/leases/a Created ci|POST /v1/leases/a Bad Request ci|GET /v1/leases/a Unauthorized |GET / Unauthorized "; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, secret := range []string{token, "wrong-token", "in-the-query", "in-the-body", sha256sum(token)} {
		if strings.Contains(prog.stderr.String(), secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
}

// Who says nothing, or reads nothing, doesn't keep a connection; who has as many as it may is not let in.
func TestServeLimitsConnections(t *testing.T) { stalltest.Run(t, serveLimitsConnections) }

func serveLimitsConnections(t testing.TB) {
	p := newPlace(t)
	s := p.serve("--max-connections-per-client", "2")
	addr := strings.TrimPrefix(s.url, "http://")
	var slow []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: ")); err != nil { // and no more
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	eventually(t, "a third is refused", func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, err = c.Read(make([]byte, 1))
		return err != nil && !os.IsTimeout(err)
	})
	for _, c := range slow { // they are ended when their headers have not come for 10 s
		if err := c.SetReadDeadline(time.Now().Add(patienceOfTests)); err != nil {
			t.Fatal(err)
		}
		for b := make([]byte, 1024); ; {
			if _, err := c.Read(b); os.IsTimeout(err) {
				t.Fatal("a client that says nothing keeps its connection")
			} else if err != nil {
				break
			}
		}
	}
	var text string
	eventually(t, "there is room again", func() bool { // for this very request: the next may need a place of its own
		resp, err := http.Get(s.url + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		text = string(b)
		return err == nil
	})
	if !strings.Contains(text, `leasehold_connections_refused_total{limit="client"} `) || strings.Contains(text, `{limit="client"} 0`) || !strings.Contains(text, "\nprocess_open_fds ") {
		t.Errorf("%s", text)
	}
	s.says("limit=client most=2")
}

// A renewed certificate, and other authorities, count without a restart; wrong ones don't.
func TestServeReadsCertificatesAgain(t *testing.T) {
	p := newPlace(t)
	before := selfSigned(t, p)
	prog := p.start("serve", "--listen", "127.0.0.1:0", "--client-ca", "cert.pem", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	var url string
	eventually(t, "it listens", func() bool {
		_, rest, ok := strings.Cut(prog.stderr.String(), " on https://")
		url = "https://" + strings.SplitN(rest, "\n", 2)[0]
		return ok && strings.Contains(rest, "\n")
	})
	// asks has a client that has and trusts that certificate ask.
	asks := func(cert tls.Certificate) error {
		pool := x509.NewCertPool()
		pool.AddCert(cert.Leaf)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get(url + "/readyz")
		if err == nil {
			err = resp.Body.Close()
		}
		if err == nil && resp.ProtoMajor != 2 {
			err = errors.New("it is " + resp.Proto)
		}
		return err
	}
	if err := asks(before); err != nil {
		t.Fatal(err)
	}
	after := selfSigned(t, p)
	if err := asks(after); err != nil {
		t.Errorf("with what was renewed: %v", err)
	}
	if err := asks(before); err == nil {
		t.Error("what was replaced is still taken")
	}
	p.write("cert.pem") // empty
	prog.signal(syscall.SIGHUP)
	eventually(t, "it says so", func() bool {
		return strings.Contains(prog.stderr.String(), "the certificate from before stays in force")
	})
	if err := asks(after); err != nil {
		t.Errorf("after an error: %v", err)
	}
}

// What the manual has operators alert on is there.
func TestAlertsAreOfMetrics(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(text), "\n## What to alert on\n")
	if !ok {
		t.Fatal("the part is gone")
	}
	part, _, _ = strings.Cut(part, "\n## ")
	s := newPlace(t).serve("--journal", filepath.Join(t.TempDir(), "journal"))
	s.ask(http.MethodPost, "/v1/leases/a", `{"ttl": 60}`, "")
	_, metrics := s.ask(http.MethodGet, "/metrics", "", "")
	names := regexp.MustCompile(`leasehold_[a-z_]+`).FindAllString(part, -1)
	for _, name := range names {
		if name = strings.TrimSuffix(name, "_bucket"); !strings.Contains(metrics, "\n# TYPE "+name+" ") {
			t.Errorf("%s is not served", name)
		}
	}
	if len(names) < 10 {
		t.Errorf("only %v", names)
	}
}
