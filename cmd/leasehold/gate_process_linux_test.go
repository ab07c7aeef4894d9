package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/gate"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// ledger is a program that knows nothing of leases: a TLS server that wants a certificate of its clients.
type ledger struct {
	*httptest.Server
	arrived chan struct{} // a write to /slow is there
	goOn    chan struct{} // and may end
	tokens  chan fence.Token
}

// newLedger starts one. One certificate, in files in the folder, serves for everybody here.
func newLedger(t testing.TB, p place) *ledger {
	t.Helper()
	l := &ledger{arrived: make(chan struct{}, 1), goOn: make(chan struct{}), tokens: make(chan fence.Token, 16)}
	l.Server = httptest.NewUnstartedServer(l)
	cert := selfSigned(t, p)
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	l.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	l.EnableHTTP2 = true
	l.StartTLS()
	t.Cleanup(l.Close)
	client := l.Client().Transport.(*http.Transport).TLSClientConfig
	client.RootCAs, client.Certificates = pool, l.TLS.Certificates
	return l
}

// selfSigned makes a certificate for this machine, as a server and as a client, and writes cert.pem and key.pem.
func selfSigned(t testing.TB, p place) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for name, text := range map[string][]byte{"cert.pem": certPEM, "key.pem": keyPEM} {
		if err := os.WriteFile(p.path(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/stream":
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "tick\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	case r.Method == http.MethodPost:
		if s, err := fence.ParseSequencer(r.Header.Get(fence.Header)); err == nil {
			l.tokens <- s.Token
		}
		if r.URL.Path == "/slow" {
			l.arrived <- struct{}{}
			select {
			case <-l.goOn:
			case <-r.Context().Done():
				panic(http.ErrAbortHandler)
			}
		}
	}
}

var (
	gateURL  = regexp.MustCompile(`serving https://\S+ on (https://\S+)`)
	adminURL = regexp.MustCompile(`serving the state on (http://\S+)`)
)

// gateway is a gate that runs.
type gateway struct {
	*program
	c    *http.Client
	l    *ledger
	url  string
	adm  string
	name string
}

func (l *ledger) gate(t testing.TB, p place, name string) *gateway {
	t.Helper()
	g := &gateway{l: l, c: l.Client(), name: name}
	g.program = p.start("gate", "ledger", "--as", name, "--ttl", "4s", "--upstream", l.URL, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--tls-cert", "cert.pem", "--tls-key", "key.pem", "--client-ca", "cert.pem",
		"--upstream-ca", "cert.pem", "--upstream-cert", "cert.pem", "--upstream-key", "key.pem", "--drain", "20s")
	eventually(t, name+" serves", func() bool {
		text := g.stderr.String()
		return gateURL.MatchString(text) && adminURL.MatchString(text)
	})
	g.url, g.adm = gateURL.FindStringSubmatch(g.stderr.String())[1], adminURL.FindStringSubmatch(g.stderr.String())[1]
	return g
}

// ask returns the status and the body of an answer; 0 when there is none.
func (g *gateway) ask(method, url string) (int, string) {
	ctx, cancel := context.WithTimeout(g.t.Context(), patienceOfTests)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	resp, err := g.c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

func (g *gateway) is(path string) bool {
	code, _ := g.ask(http.MethodGet, g.adm+path)
	return code == http.StatusOK
}

// wants wants an answer.
func (g *gateway) wants(method, path string, want int) string {
	g.t.Helper()
	code, text := g.ask(method, g.url+path)
	if code != want {
		g.t.Fatalf("%s %s through %s: %d %s, want %d", method, path, g.name, code, text, want)
	}
	return text
}

// Two gates in front of one program, with certificates everywhere: the one that is told to end has its writes end first, then
// releases the name; a stream through the other one goes on all the time.
func TestGateHandsOver(t *testing.T) { stalltest.Run(t, gateHandsOver) }

func gateHandsOver(t testing.TB) {
	p := newPlace(t)
	l := newLedger(t, p)
	east := l.gate(t, p, "east")
	eventually(t, "east is active", func() bool { return east.is("/active") })
	west := l.gate(t, p, "west")
	eventually(t, "west knows who is", func() bool {
		_, text := west.ask(http.MethodGet, west.adm+"/state")
		var s gate.State
		return json.Unmarshal([]byte(text), &s) == nil && strings.HasPrefix(s.Holder, "east/") && !s.Active
	})
	if !west.is("/standby") || !west.is("/healthz") || east.is("/standby") {
		t.Error("the roles are told wrongly")
	}
	west.wants(http.MethodGet, "/", http.StatusOK)
	if text := west.wants(http.MethodPost, "/", http.StatusServiceUnavailable); !strings.Contains(text, `"holder":"east/`) {
		t.Errorf("%s", text)
	}
	east.wants(http.MethodPost, "/", http.StatusOK)
	first := <-l.tokens

	stream, ticks := west.stream(t)
	defer stream()
	answered := make(chan error, 1)
	go func() {
		if code, text := east.ask(http.MethodPost, east.url+"/slow"); code != http.StatusOK {
			answered <- fmt.Errorf("%d %s", code, text)
			return
		}
		answered <- nil
	}()
	select {
	case <-l.arrived:
	case err := <-answered:
		t.Fatalf("the slow write has not arrived: %v", err)
	}
	<-l.tokens
	east.signal(syscall.SIGTERM)
	eventually(t, "east refuses writes", func() bool { return !east.is("/active") })
	if west.is("/active") {
		t.Error("west is active while a write goes on in the east")
	}
	select {
	case l.goOn <- struct{}{}:
	case err := <-answered:
		t.Fatalf("the slow write was not waited for: %v", err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if code := east.code(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d:\n%s", code, east.stderr)
	}
	eventually(t, "west is active", func() bool { return west.is("/active") })
	west.wants(http.MethodPost, "/", http.StatusOK)
	if next := <-l.tokens; next <= first {
		t.Errorf("token %d after %d", next, first)
	}
	for range cap(ticks) + 1 { // those of before, and one of now
		if err := <-ticks; err != nil {
			t.Fatalf("the stream: %v", err)
		}
	}
}

// A gate that was stopped past the end of its term, with a write under way, passes nothing more when it goes on.
func TestGateThatWasStopped(t *testing.T) { stalltest.Run(t, gateThatWasStopped) }

func gateThatWasStopped(t testing.TB) {
	p := newPlace(t)
	l := newLedger(t, p)
	east := l.gate(t, p, "east")
	eventually(t, "east is active", func() bool { return east.is("/active") })
	west := l.gate(t, p, "west")
	answered := make(chan string, 1)
	go func() {
		code, text := east.ask(http.MethodPost, east.url+"/slow")
		answered <- fmt.Sprint(code, " ", text)
	}()
	select {
	case <-l.arrived:
	case text := <-answered:
		t.Fatalf("the slow write has not arrived: %s", text)
	}
	first := <-l.tokens
	p.pause(east.program)
	eventually(t, "west is active", func() bool { return west.is("/active") })
	west.wants(http.MethodPost, "/", http.StatusOK)
	if next := <-l.tokens; next <= first {
		t.Errorf("token %d after %d", next, first)
	}
	east.signal(syscall.SIGCONT)
	east.wants(http.MethodPost, "/", http.StatusServiceUnavailable)
	if text := <-answered; !strings.HasPrefix(text, "503 ") || !strings.Contains(text, `"outcome":"unknown"`) {
		t.Errorf("the write under way: %s", text)
	}
	eventually(t, "east knows who is active", func() bool {
		return strings.Contains(east.wants(http.MethodPost, "/", http.StatusServiceUnavailable), `"holder":"west/`)
	})
	east.wants(http.MethodGet, "/", http.StatusOK)
	if len(l.tokens) > 0 {
		t.Errorf("a write under token %d has reached the program", <-l.tokens)
	}
}

// The program gets sequencers that only who has the keys can make, and Prometheus what the gate does.
func TestGateKeysAndMetrics(t *testing.T) {
	p := newPlace(t)
	const key = "0123456789abcdef"
	if err := os.WriteFile(p.path("keys"), []byte("# mine\n"+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sent := make(chan string, 1)
	program := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			sent <- r.Header.Get(fence.Header)
		}
	}))
	defer program.Close()
	prog := p.start("gate", "ledger", "--keys", "keys", "--upstream", program.URL, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	url := regexp.MustCompile(`serving http://\S+ on (http://\S+)`)
	eventually(t, "it serves", func() bool {
		return url.MatchString(prog.stderr.String()) && adminURL.MatchString(prog.stderr.String())
	})
	g := &gateway{program: prog, c: http.DefaultClient, adm: adminURL.FindStringSubmatch(prog.stderr.String())[1], url: url.FindStringSubmatch(prog.stderr.String())[1]}
	eventually(t, "it is active", func() bool { return g.is("/active") })
	g.wants(http.MethodGet, "/", http.StatusOK)
	g.wants(http.MethodPost, "/", http.StatusOK)
	keys, err := fence.NewKeys([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	seq, err := keys.Verify(<-sent)
	if err != nil || seq.Name != "ledger" {
		t.Errorf("%v, %v", seq, err)
	}
	for _, line := range []string{
		`leasehold_gate_active{lease="ledger"} 1`, `leasehold_gate_requests_total{kind="read",lease="ledger"} 1`,
		`leasehold_gate_requests_total{kind="write",lease="ledger"} 1`, `leasehold_gate_requests_total{kind="refused",lease="ledger"} 0`,
		`leasehold_gate_cut_total{lease="ledger"} 0`, `leasehold_gate_writes_in_flight{lease="ledger"} 0`, // once the gate has noted the end, too
		`leasehold_gate_token{lease="ledger"} ` + strconv.FormatFloat(float64(seq.Token), 'g', -1, 64),
		`leasehold_build_info{version="`,
	} {
		eventually(t, line, func() bool {
			_, text := g.ask(http.MethodGet, g.adm+"/metrics")
			return strings.Contains(text, "\n"+line)
		})
	}
	_, text := g.ask(http.MethodGet, g.adm+"/metrics")
	_, rest, _ := strings.Cut(text, "\n"+`leasehold_gate_left_seconds{lease="ledger"} `)
	value, _, _ := strings.Cut(rest, "\n")
	if left, err := strconv.ParseFloat(value, 64); err != nil || left <= 0 || left > 16 {
		t.Errorf("%v left, of a term that is valid for 16 s: %v\n%s", left, err, text)
	}
}

// stream reads a stream until it is ended. The channel tells of lines that were read, and of the error at its end.
func (g *gateway) stream(t testing.TB) (end func(), ticks chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	ticks = make(chan error, 16)
	go func() {
		resp, err := g.c.Do(r)
		if err == nil {
			defer resp.Body.Close()
		}
		for b := make([]byte, 5); err == nil; {
			if _, err = io.ReadFull(resp.Body, b); err == nil {
				select {
				case ticks <- nil:
				default:
				}
			}
		}
		select {
		case ticks <- err:
		case <-ctx.Done():
		}
	}()
	return cancel, ticks
}

// A gate goes on after SIGHUP, as a service does, and whatever it says is of the format that was asked for.
func TestFinding_G7_GateOutlivesSIGHUPAndLogsAsAsked(t *testing.T) {
	p := newPlace(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // a program that answers each request twice
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					const answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
					_, _ = io.WriteString(c, answer+answer)
				}
			}()
		}
	}()
	prog := p.start("gate", "ledger", "--log-format", "json", "--upstream", "http://"+l.Addr().String(), "--listen", "127.0.0.1:0")
	url := regexp.MustCompile(`serving http://\S+ on (http://[0-9.:]+)`)
	eventually(t, "it serves", func() bool { return url.MatchString(prog.stderr.String()) })
	g := &gateway{program: prog, c: http.DefaultClient, url: url.FindStringSubmatch(prog.stderr.String())[1]}
	g.wants(http.MethodGet, "/", http.StatusOK)
	eventually(t, "it tells of the second answer", func() bool { return strings.Contains(prog.stderr.String(), "Unsolicited response") })
	prog.signal(syscall.SIGHUP)
	eventually(t, "it tells of the signal", func() bool { return strings.Contains(prog.stderr.String(), "SIGHUP") })
	g.wants(http.MethodGet, "/", http.StatusOK)
	prog.signal(syscall.SIGTERM)
	if code := prog.code(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d:\n%s", code, prog.stderr)
	}
	for line := range strings.Lines(prog.stderr.String()) {
		var record struct {
			Msg   string
			Lease struct {
				Name, Holder string
				Token        uint64
			}
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Lease.Name != "ledger" {
			t.Errorf("no JSON about the lease ledger: %v: %s", err, line)
		}
		if strings.Contains(record.Msg, "passing") && (record.Lease.Token == 0 || record.Lease.Holder == "") {
			t.Errorf("it names no term: %s", line)
		}
	}
}
