package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	tick     = 10 * time.Millisecond
	patience = 2 * time.Minute // for a server to serve, on a machine that is busy with others
)

// pause waits.
func pause(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	<-ctx.Done()
}

// get fetches a URL from the server and returns the status and the body.
func (s *Server) get(ctx context.Context, url string, header ...string) (int, string, error) {
	return s.ask(ctx, http.MethodGet, url, "", header...)
}

// ask makes a request. The headers are names and values by turns.
func (s *Server) ask(ctx context.Context, method, url, body string, header ...string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	config, err := s.clientTLS()
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(text), err
}

// wants turns the answer to a request into an error unless it has the status and contains the text.
func wants(status int, text string) func(int, string, error) error {
	return func(gotStatus int, got string, err error) error {
		if err == nil && (gotStatus != status || !strings.Contains(got, text)) {
			err = fmt.Errorf("answered %d %q", gotStatus, got)
		}
		return err
	}
}

// clientTLS is how a client reaches the server, or nil without TLS.
func (s *Server) clientTLS() (*tls.Config, error) {
	if s.Extra["ca"] == "" {
		return nil, nil //nolint:nilnil // no TLS is a configuration, and tls and net/http write it so
	}
	return loadTLS(s.Extra["ca"], s.Extra["cert"], s.Extra["key"])
}

// dials returns an error unless somebody listens there.
func dials(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// exchange sends a text and returns all that the server answers until it closes the connection.
func (s *Server) exchange(ctx context.Context, text string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	config, err := s.clientTLS()
	if err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if config != nil {
		conn = tls.Client(conn, config)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
