package review

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/server"
)

// cluster is a Kubernetes API server, and an administrator's client of it.
type cluster struct {
	*servers.Server
	*kubernetes.Clientset
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	srv := servers.Kubernetes(t)
	cfg, err := clientcmd.BuildConfigFromFlags("", srv.Extra["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{srv, c}
}

// account makes a service account.
func (c *cluster) account(t *testing.T, name string) {
	t.Helper()
	if _, err := c.CoreV1().ServiceAccounts("default").Create(t.Context(), &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// token has the API server make a token of an account.
func (c *cluster) token(t *testing.T, name, audience string) string {
	t.Helper()
	req := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{Audiences: []string{audience}}}
	got, err := c.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), name, req, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status.Token
}

// resigned is a token with other claims, signed by the API server's own key.
func (c *cluster) resigned(t *testing.T, token string, change func(map[string]any)) string {
	t.Helper()
	text, err := os.ReadFile(c.Extra["server-key"])
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	change(claims)
	if payload, err = json.Marshal(claims); err != nil {
		t.Fatal(err)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := s.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// A service account is a caller by a token for this server's audience; what the API server doesn't vouch for is refused.
func TestFinding_V6_ServiceAccountsAreCallers(t *testing.T) {
	c := newCluster(t)
	// Answers count by a clock that stands still: however long the machine takes, they are not too old.
	var wall atomic.Pointer[time.Time]
	clockIsAt := func(at time.Time) { wall.Store(&at) }
	start := time.Now()
	clockIsAt(start)
	reviewer := func(kubeconfig string) *Reviewer {
		r, err := New(Options{Audience: "leasehold", Kubeconfig: kubeconfig, Wall: func() time.Time { return *wall.Load() }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r
	}
	r := reviewer(c.Extra["kubeconfig"])
	good := func(what, token, name string) {
		t.Helper()
		a, err := r.Review(t.Context(), token)
		if err != nil || a.Name != "system:serviceaccount:default:"+name || !strings.Contains(strings.Join(a.Groups, " "), "system:serviceaccounts:default") {
			t.Errorf("%s: %+v, %v", what, a, err)
		}
	}
	refused := func(what, token, says string) {
		t.Helper()
		a, err := r.Review(t.Context(), token)
		if err == nil || errors.Is(err, server.ErrAuthUnavailable) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %+v, %v", what, a, err)
		}
	}
	c.account(t, "web")
	web := c.token(t, "web", "leasehold")
	good("TokenRequest", web, "web")
	good("signed again, so that changes are what is refused", c.resigned(t, web, func(map[string]any) {}), "web")
	refused("for another audience", c.token(t, "web", "vault"), "for the audience leasehold")
	refused("for the API server itself", c.token(t, "web", c.URL), "for the audience leasehold")
	refused("expired", c.resigned(t, web, func(claims map[string]any) { claims["exp"] = time.Now().Add(-time.Minute).Unix() }), "that has not expired")
	refused("changed", web[:len(web)-6]+"AAAAAA", "is refused")
	refused("an administrator's, which is no JWT", c.Extra["token"], "no service account's")

	// An answer counts for CachedFor, and not for longer than its token.
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	clockIsAt(end.Add(-6 * time.Second))
	soon := c.resigned(t, web, func(claims map[string]any) { claims["exp"] = end.Unix() })
	good("soon over", soon, "web")
	if until := r.answers[sha256.Sum256([]byte(soon))].until; !until.Equal(end) {
		t.Errorf("a token that ends at %v counts until %v", end, until)
	}
	clockIsAt(start)
	if err := c.CoreV1().ServiceAccounts("default").Delete(t.Context(), "web", meta.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	good("deleted, and asked about before", web, "web")
	// The API server remembers what it said of a token, too, for 10 s: so each of these is another token.
	unseen := func(i int) string {
		return c.resigned(t, web, func(claims map[string]any) { claims["jti"] = fmt.Sprint("unseen ", i) })
	}
	i := 0
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); i++ {
		if _, err := r.Review(t.Context(), unseen(i)); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	refused("deleted", unseen(i), "of an account that exists")
	c.account(t, "web")
	good("of another account of its name", c.token(t, "web", "leasehold"), "web")
	refused("deleted, and there is another one of its name", unseen(i+1), "of an account that exists")

	// The error of a server that may not review tokens says what to bind.
	poor := reviewer(c.Extra["user-kubeconfig"])
	if err := poor.Check(t.Context()); !errors.Is(err, server.ErrAuthUnavailable) || !strings.Contains(err.Error(), "system:auth-delegator") {
		t.Errorf("without the right: %v", err)
	}
	binding := &rbac.ClusterRoleBinding{
		ObjectMeta: meta.ObjectMeta{Name: "leasehold"}, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects: []rbac.Subject{{APIGroup: rbac.GroupName, Kind: rbac.UserKind, Name: "leasehold"}},
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); poor.Check(t.Context()) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("with the role: %v", poor.Check(t.Context()))
		}
	}

	// An API server that is stopped, or gone, holds requests up for a bounded time; what it said counts until then.
	fresh := c.token(t, "web", "leasehold")
	good("before the end", fresh, "web")
	c.Pause()
	unasked := c.resigned(t, fresh, func(claims map[string]any) { claims["jti"] = "another" })
	begun := time.Now()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := r.Review(context.WithoutCancel(t.Context()), unasked); !errors.Is(err, server.ErrAuthUnavailable) {
				t.Errorf("while it is stopped: %v", err)
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); took < Limit/2 || took > 2*Limit+20*time.Second {
		t.Errorf("while it is stopped: %v", took)
	}
	good("while it is stopped", fresh, "web")
	c.Kill()
	if _, err := r.Review(t.Context(), unasked); !errors.Is(err, server.ErrAuthUnavailable) || !strings.Contains(err.Error(), c.Addr) {
		t.Errorf("when it is gone: %v", err)
	}
	clockIsAt(start.Add(CachedFor))
	if _, err := r.Review(t.Context(), fresh); !errors.Is(err, server.ErrAuthUnavailable) {
		t.Errorf("when it is gone, for longer than answers count: %v", err)
	}
}

func TestFinding_V6_ClustersThatAreNone(t *testing.T) {
	for _, c := range []struct {
		o    Options
		says string
	}{{Options{Kubeconfig: "x"}, "audience"}, {Options{Audience: "a", Kubeconfig: "/nowhere"}, "/nowhere"}} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}
