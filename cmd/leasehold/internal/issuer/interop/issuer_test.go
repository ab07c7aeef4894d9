package interop

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// provider is an OpenID Connect issuer. Its storage is that of the library's example, but for what a test decides.
type provider struct {
	*storage.Storage
	*httptest.Server

	mu        sync.Mutex
	keys      []key // published; the last one signs
	audience  string
	lifetime  time.Duration
	then      time.Duration // the lifetime of those after the next one, if it is another
	groups    []string
	callsKeys int
	browser   browser // of the page
}

// key is one that signs, or verifies.
type key struct {
	id    string
	value any
}

func (k key) ID() string                                  { return k.id }
func (k key) Key() any                                    { return k.value }
func (k key) Use() string                                 { return "sig" }
func (k key) Algorithm() jose.SignatureAlgorithm          { return jose.RS256 }
func (k key) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{audience: "leasehold", lifetime: time.Hour, groups: []string{"sre"}}
	var handler http.Handler
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.answer(w, r, handler) }))
	t.Cleanup(p.Server.Close)
	p.Storage = storage.NewStorage(storage.NewUserStore(p.URL))
	p.rotate(t, "2026-a")
	o, err := op.NewProvider(&op.Config{CryptoKey: [32]byte{1}, AuthMethodPost: true, CodeMethodS256: true, GrantTypeRefreshToken: true}, p, op.StaticIssuer(p.URL), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	handler = o
	return p
}

// rotate has a new key sign from now on.
func (p *provider) rotate(t *testing.T, id string) {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, key{id, k})
}

// withdraw takes the oldest key away.
func (p *provider) withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = p.keys[1:]
}

func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *provider) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.callsKeys
}

// SigningKey implements [op.Storage].
func (p *provider) SigningKey(context.Context) (op.SigningKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1], nil
}

// KeySet implements [op.Storage].
func (p *provider) KeySet(context.Context) (all []op.Key, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callsKeys++
	for _, k := range p.keys {
		all = append(all, key{k.id, k.value.(*rsa.PrivateKey).Public()})
	}
	return all, nil
}

// CreateAccessToken implements [op.Storage].
func (p *provider) CreateAccessToken(ctx context.Context, r op.TokenRequest) (string, time.Time, error) {
	id, _, err := p.Storage.CreateAccessToken(ctx, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	return id, time.Now().Add(p.lifetime), err
}

// GetPrivateClaimsFromScopes implements [op.Storage].
func (p *provider) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return map[string]any{"groups": p.groups}, nil
}

// machine is a client of the issuer whose tokens are JWTs.
type machine struct{ op.Client }

func (machine) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

// ClientCredentials implements [op.ClientCredentialsStorage].
func (p *provider) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	c, err := p.Storage.ClientCredentials(ctx, id, secret)
	return machine{c}, err
}

// ClientCredentialsTokenRequest implements [op.ClientCredentialsStorage].
func (p *provider) ClientCredentialsTokenRequest(_ context.Context, id string, scopes []string) (op.TokenRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &oidc.JWTTokenRequest{Subject: id, Audience: []string{p.audience}, Scopes: scopes}, nil
}

// token asks the issuer for one, as a machine does.
func (p *provider) token(t *testing.T) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"sid1"}, "client_secret": {"verysecret"}}
	resp, err := p.Client().Post(p.URL+"/oauth/token", "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s %v", resp.StatusCode, text, err)
	}
	var got struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(text, &got); err != nil || strings.Count(got.Token, ".") != 2 {
		t.Fatalf("%s: %v", text, err)
	}
	return got.Token
}
