package kubernetes

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/driver"
)

// identityOf returns what Inspect says of who we are.
func identityOf(ctx context.Context, t *testing.T, s *Store) driver.Finding {
	t.Helper()
	for _, f := range s.Inspect(ctx) {
		if f.What == "identity" {
			return f
		}
	}
	t.Error("Inspect says nothing of who we are")
	return driver.Finding{}
}

func TestInspectSaysWhoWeAre(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	s, namespace := boundStore(t, srv, "")
	if f := identityOf(t.Context(), t, s); f.Status != driver.StatusOK || f.Detail != "leasehold" {
		t.Errorf("a user with the Role alone: %+v", f)
	}
	c := config(t, srv, srv.Addr)
	c.BearerToken = "wrong"
	if f := identityOf(t.Context(), t, open(t, dial(t, c), namespace)); f.Status != driver.StatusFail || f.Advice == "" {
		t.Errorf("with a wrong token: %+v", f)
	}
}

// TestInspectOfAServerThatDoesNotTell: it is no failure where the server is older than the question.
func TestInspectOfAServerThatDoesNotTell(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	f := identityOf(t.Context(), t, open(t, dial(t, &rest.Config{Host: web.URL}), "default"))
	if f.Status != driver.StatusOK || f.Detail != "the server doesn't tell" {
		t.Errorf("%+v", f)
	}
}
