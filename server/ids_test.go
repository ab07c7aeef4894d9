package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

func (s *site) made(t *testing.T, path string) api.IDs {
	t.Helper()
	var ids api.IDs
	want(t, s.ask(t, "GET", "/v1/ids/"+path, "", &ids), http.StatusOK)
	return ids
}

// Ids of all layouts: as many as were asked for, of now, of the server's number, and with the metadata.
func TestIDs(t *testing.T) {
	s := newSite(t, server.Options{})
	for _, l := range flake.Layouts() {
		ids := s.made(t, l.Name()+"?n=20")
		if len(ids.IDs) != 20 || ids.Layout != l.Name() {
			t.Fatalf("%+v", ids)
		}
		for _, text := range ids.IDs {
			var p flake.Parts
			var err error
			if l.Bits() > 64 {
				id, failed := flake.ParseBase32[flake.ID96](text)
				if err = failed; err == nil {
					p, err = flake.Decode(l, id)
				}
			} else {
				id, failed := flake.Parse(text)
				if err = failed; err == nil {
					p, err = flake.Decode(l, id)
				}
			}
			if err != nil || p.Node != ids.Node || time.Since(p.Time).Abs() > 10*time.Second {
				t.Errorf("%s %s: %+v, %v", l.Name(), text, p, err)
			}
		}
	}
	id, err := flake.ParseBase32[flake.ID96](s.made(t, "scatter?metadata=0xcafe").IDs[0])
	if err != nil {
		t.Fatal(err)
	}
	if p, err := flake.Decode(flake.Scatter(), id); err != nil || p.Metadata != 0xcafe {
		t.Errorf("%+v, %v", p, err)
	}
	for path, field := range map[string]string{
		"snowfall": "layout", "twitter?n=0": "n", "twitter?n=10001": "n", "twitter?n=x": "n", "twitter?metadata=1": "metadata",
		"scatter?metadata=0x100000000": "metadata", "scatter?metadata=x": "metadata",
	} {
		if p := s.refused(t, "GET", "/v1/ids/"+path, "", api.CodeInvalid); p.Field != field {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// Servers on one store, asked side by side, and one after the other, make no id twice.
func TestServersMakeNoIDTwice(t *testing.T) {
	first := newSite(t, server.Options{})
	seen := map[string]bool{}
	var mu sync.Mutex
	for range 3 { // of servers that come and go
		var wg sync.WaitGroup
		for range 2 {
			srv, err := server.New(first.db.Open(), server.Options{})
			if err != nil {
				t.Fatal(err)
			}
			hs := httptest.NewServer(srv)
			s := &site{hs, srv, first.db}
			for range 4 {
				wg.Go(func() {
					for _, id := range s.made(t, "twitter?n=500").IDs {
						mu.Lock()
						if seen[id] {
							t.Errorf("%s twice", id)
						}
						seen[id] = true
						mu.Unlock()
					}
				})
			}
			defer hs.Close()
			defer func() { _ = srv.Close() }()
		}
		wg.Wait()
	}
	if len(seen) != 3*2*4*500 {
		t.Errorf("%d ids", len(seen))
	}
}

// A server that closes gives its number back, with the time up to which it was used: the next one makes ids with it at once.
func TestServerGivesItsNumberBack(t *testing.T) {
	first := newSite(t, server.Options{})
	want(t, first.ask(t, "POST", "/v1/identities/one", `{"range": "7-7", "as": "declares"}`, nil), http.StatusCreated)
	want(t, first.ask(t, "DELETE", "/v1/identities/one/7?as=declares&used="+time.Now().UTC().Format(time.RFC3339), "", nil), http.StatusNoContent)
	opts := server.Options{IDPools: map[string]string{"twitter": "one"}}
	for range 3 {
		srv, err := server.New(first.db.Open(), opts)
		if err != nil {
			t.Fatal(err)
		}
		hs := httptest.NewServer(srv)
		s := &site{hs, srv, first.db}
		if ids := s.made(t, "twitter"); ids.Node != 7 {
			t.Errorf("%+v", ids)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		s.refused(t, "GET", "/v1/ids/twitter", "", api.CodeClosing)
		hs.Close()
	}
	s := newSite(t, server.Options{IDPools: map[string]string{"twitter": "none"}})
	s.refused(t, "GET", "/v1/ids/twitter", "", api.CodeInternal)
	if _, err := server.New(first.db.Open(), server.Options{IDPools: map[string]string{"x": "y"}}); err == nil || !strings.Contains(err.Error(), "IDPools") {
		t.Error(fmt.Sprint("a layout that there isn't: ", err))
	}
}
