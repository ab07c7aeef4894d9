package open

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// asAdmin sends requests with a bearer token or another header.
type asAdmin struct {
	t             *testing.T
	client        *http.Client
	header, value string
}

// try returns the status of the answer, and reads the answer into result if that isn't nil.
func (a asAdmin) try(method, url string, body, result any) int {
	a.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		a.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(a.t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(a.header, a.value)
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err == nil && result != nil && resp.StatusCode/100 == 2 {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode
}

func (a asAdmin) must(method, url string, body, result any) {
	a.t.Helper()
	if status := a.try(method, url, body, result); status/100 != 2 {
		a.t.Fatalf("%s %s: %d", method, url, status)
	}
}

// mutualFront is a TLS end in front of a server.
type mutualFront struct {
	target string

	mu     sync.Mutex
	config *tls.Config
	conns  []net.Conn
}

// trust has it use the certificates that the files have now, and ends all connections.
func (f *mutualFront) trust(t *testing.T, certs *servers.Server) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certs.Extra["server-cert"], certs.Extra["server-key"])
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(certs.Extra["ca"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.config = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.conns = nil
}

func (f *mutualFront) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			client := tls.Server(conn, f.config)
			f.conns = append(f.conns, conn)
			f.mu.Unlock()
			running.Go(func() { f.serve(client) })
		}
	})
	t.Cleanup(func() { // before the store's, which ends its connections by itself
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

func (f *mutualFront) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		return
	}
	defer server.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(server, client)
	_ = server.Close()
	back.Wait()
}
