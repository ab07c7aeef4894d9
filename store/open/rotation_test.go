package open

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
)

// rotation is a change of credentials: the server refuses the old ones and ends all connections, and then the files hold the new ones.
type rotation struct {
	url    string
	revoke func()
	files  map[string]string // what is in them afterwards, by path
}

// under has a holder and a waiter live through the rotation. The holder keeps its term, and the waiter has the name when it is released.
func (r rotation) under(t *testing.T) {
	t.Helper()
	// A server that is slow to start again, on a machine that is busy, ends no lease. What the
	// credentials are worth shows at each renewal.
	opts := lease.Options{TTL: time.Minute, Renew: 5 * time.Second, Attempt: time.Second}
	manager := func() *lease.Manager {
		st := openURL(t, r.url)
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		m, err := lease.NewManager(st, opts)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	held, err := manager().Acquire(t.Context(), "rotated")
	if err != nil {
		t.Fatal(err)
	}
	other, followed := manager(), make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	go func() {
		next, err := other.Acquire(ctx, "rotated")
		if err == nil {
			err = next.Release(ctx)
		}
		followed <- err
	}()
	r.revoke()
	for path, text := range r.files {
		replaceFile(t, path, text)
	}
	last := held.ValidUntil()
	for renewals := 0; renewals < 2; {
		if err := held.Check(); err != nil {
			t.Fatalf("the lease was lost after %d renewals: %v", renewals, err)
		}
		if until := held.ValidUntil(); until != last {
			last, renewals = until, renewals+1
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-followed; err != nil {
		t.Errorf("the waiter: %v", err)
	}
}

// replaceFile replaces a file as a whole, as tools that rotate credentials do.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// secretIn makes a file with a secret.
func secretIn(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	replaceFile(t, path, text)
	return path
}

// must ends the test on an error of a step of which the result is of no interest.
func must(t *testing.T) func(_ any, err error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ownFiles copies the certificates that clients of a server use, and returns the copies.
func ownFiles(t *testing.T, srv *servers.Server) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"ca", "cert", "key"} {
		text, err := os.ReadFile(srv.Extra[name])
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		replaceFile(t, path, string(text))
		paths = append(paths, path)
	}
	return paths[0], paths[1], paths[2]
}

// certified are the engines whose servers take certificates. Each is entered in a file of its own.
var certified = map[string]certificatesOf{}

// certificatesOf is how an engine has certificates.
type certificatesOf struct {
	start func(testing.TB, ...servers.Option) *servers.Server
	form  string // of a URL, with the address and the three files
	clear func(t *testing.T)
	// prepare is called with the URL when the server is up; may be nil.
	prepare func(t *testing.T, url string)
}

// TestFinding_L5_CertificatesAndAuthorities: the server has another authority from one moment to the next, and demands a certificate of it.
func TestFinding_L5_CertificatesAndAuthorities(t *testing.T) {
	for name, c := range certified {
		t.Run(name, func(t *testing.T) {
			srv := c.start(t, servers.MutualTLS())
			c.clear(t)
			ca, cert, key := ownFiles(t, srv)
			url := fmt.Sprintf(c.form, srv.Addr, ca, cert, key)
			if c.prepare != nil {
				c.prepare(t, url)
			}
			rotation{url: url, revoke: func() {
				srv.Recertify()
				srv.Restart()
				for path, from := range map[string]string{ca: "ca", cert: "cert", key: "key"} {
					text, err := os.ReadFile(srv.Extra[from])
					if err != nil {
						t.Fatal(err)
					}
					replaceFile(t, path, string(text))
				}
			}}.under(t)
		})
	}
}
