package issuer

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority is an issuer that does what no real one would.
type authority struct {
	*httptest.Server
	fetches atomic.Int32 // of keys
	down    atomic.Bool
	stall   atomic.Pointer[chan struct{}] // answers come when it is closed

	mu   sync.Mutex
	keys map[string]crypto.Signer // published
	said map[string]any           // of itself, beyond what is so
}

func newAuthority(t *testing.T, ids ...string) *authority {
	t.Helper()
	a := &authority{said: map[string]any{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stall := a.stall.Load(); stall != nil {
			select {
			case <-*stall:
			case <-r.Context().Done():
				return
			}
		}
		if a.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if r.URL.Path == "/.well-known/openid-configuration" {
			doc := map[string]any{"issuer": a.URL, "jwks_uri": a.URL + "/keys"}
			maps.Copy(doc, a.said)
			_ = json.NewEncoder(w).Encode(doc)
			return
		}
		a.fetches.Add(1)
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
		for id, k := range a.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Public(), KeyID: id, Use: "sig"})
		}
		_ = json.NewEncoder(w).Encode(set)
	}))
	t.Cleanup(a.Close)
	a.publish(t, ids...)
	return a
}

// publish has the issuer publish keys of those names: those that it had stay the same.
func (a *authority) publish(t *testing.T, ids ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	keys := map[string]crypto.Signer{}
	for _, id := range ids {
		if keys[id] = a.keys[id]; keys[id] == nil {
			keys[id] = newKey(t)
		}
	}
	a.keys = keys
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sign makes a token.
func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(s).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// noon is what the test's clock says first.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// claims are good ones, but for what is changed; nil takes one away.
func (a *authority) claims(changed map[string]any) map[string]any {
	all := map[string]any{"iss": a.URL, "aud": []string{"other", "leasehold"}, "sub": "alice", "iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix()}
	maps.Copy(all, changed)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// token is one that is signed by a published key.
func (a *authority) token(t *testing.T, id string, changed map[string]any) string {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	return sign(t, jose.ES256, a.keys[id], id, a.claims(changed))
}

// wall is a clock that a test sets.
type wall struct{ now atomic.Int64 }

func (w *wall) read() time.Time      { return noon.Add(time.Duration(w.now.Load())) }
func (w *wall) pass(d time.Duration) { w.now.Add(int64(d)) }

func verifier(t *testing.T, o Options) (*Verifier, *wall) {
	t.Helper()
	clk := &wall{}
	o.Audience, o.Wall = "leasehold", clk.read
	v, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v, clk
}

// What a token says has to be so: who it is from and for, when it is good, and by which key, of which kind.
func TestFinding_V6_TokensThatProveNothing(t *testing.T) {
	a := newAuthority(t, "k1")
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.keys["rsa"] = rsaKey
	a.mu.Unlock()
	v, _ := verifier(t, Options{URL: a.URL})
	at := func(d time.Duration) int64 { return noon.Add(d).Unix() }
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k1"}`)) + "." + strings.Split(a.token(t, "k1", nil), ".")[1] + "."
	public, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	confused := sign(t, jose.HS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), "rsa", a.claims(nil))
	good := a.token(t, "k1", nil)
	for _, c := range []struct{ what, token, says string }{
		{"good", good, ""},
		{"good, RSA", sign(t, jose.PS256, rsaKey, "rsa", a.claims(nil)), ""},
		{"no key named", sign(t, jose.ES256, a.keys["k1"], "", a.claims(nil)), ""},
		{"within the leeway after exp", a.token(t, "k1", map[string]any{"exp": at(-29 * time.Second)}), ""},
		{"within the leeway before nbf", a.token(t, "k1", map[string]any{"nbf": at(29 * time.Second)}), ""},
		{"expired", a.token(t, "k1", map[string]any{"exp": at(-31 * time.Second)}), "it expired at 2026-11-22T11:59:29Z"},
		{"never expires", a.token(t, "k1", map[string]any{"exp": nil}), "want the claim exp"},
		{"not yet", a.token(t, "k1", map[string]any{"nbf": at(31 * time.Second)}), "are the clocks right?"},
		{"for another", a.token(t, "k1", map[string]any{"aud": "other"}), `expected audience "leasehold"`},
		{"for nobody", a.token(t, "k1", map[string]any{"aud": nil}), `expected audience "leasehold"`},
		{"from another", a.token(t, "k1", map[string]any{"iss": a.URL + "/"}), "issued by a different provider"},
		{"nobody's", a.token(t, "k1", map[string]any{"sub": nil}), "claim sub: want the caller's name"},
		{"a list's", a.token(t, "k1", map[string]any{"sub": []string{"alice"}}), "failed to unmarshal claims"},
		{"an unprintable one's", a.token(t, "k1", map[string]any{"sub": "a\nb"}), "printable text"},
		{"a long one's", a.token(t, "k1", map[string]any{"sub": strings.Repeat("x", 201)}), "at most 200 bytes"},
		{"another's key under a name that is known", sign(t, jose.ES256, newKey(t), "k1", a.claims(nil)), "verify signature"},
		{"a key of another kind", sign(t, jose.PS256, rsaKey, "k1", a.claims(nil)), "verify signature"},
		{"signed by nobody", none, "is no JWT signed with"},
		{"signed by the public key as a shared secret", confused, "is no JWT signed with"},
		{"changed", good[:len(good)-6] + "AAAAAA", "verify signature"},
		{"cut off", good[:len(good)/2], "is no JWT signed with"},
		{"no JWT", "secret", "is no JWT signed with"},
	} {
		s, err := v.Verify(t.Context(), c.token)
		if c.says == "" {
			if err != nil || s.Name != "alice" {
				t.Errorf("%s: %+v, %v", c.what, s, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, server.ErrAuthUnavailable) {
			t.Errorf("%s: %+v, %v; want it to say %q", c.what, s, err, c.says)
		}
		if err != nil && strings.Contains(err.Error(), c.token) {
			t.Errorf("%s: the token is in %v", c.what, err)
		}
	}
	if n := a.fetches.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// Claims name the caller, and its roles.
func TestFinding_V6_ClaimsNameTheCaller(t *testing.T) {
	a := newAuthority(t, "k1")
	v, _ := verifier(t, Options{URL: a.URL, Name: "email", Roles: "groups"})
	for _, c := range []struct {
		claims map[string]any
		roles  []string
		good   bool
	}{
		{map[string]any{"email": "a@example.org", "email_verified": true, "groups": []any{"dev", "ops", 7}}, []string{"dev", "ops"}, true},
		{map[string]any{"email": "a@example.org", "email_verified": true, "groups": "dev"}, []string{"dev"}, true},
		{map[string]any{"email": "a@example.org", "email_verified": true}, nil, true},
		{map[string]any{"email": "a@example.org", "email_verified": false}, nil, false},
		{map[string]any{"email": "a@example.org"}, nil, false},
		{nil, nil, false},
	} {
		s, err := v.Verify(t.Context(), a.token(t, "k1", c.claims))
		if (err == nil) != c.good || c.good && (s.Name != "a@example.org" || !slices.Equal(s.Roles, c.roles)) {
			t.Errorf("%v: %+v, %v", c.claims, s, err)
		}
	}
}

// A key that is new is fetched when it is needed, and one that is gone is refused; tokens of unknown keys don't have the issuer asked more often
// than every 10 s.
func TestFinding_V6_KeysRotate(t *testing.T) {
	a := newAuthority(t, "k1")
	v, clk := verifier(t, Options{URL: a.URL})
	check := func(id, token, says string, fetches int32) {
		t.Helper()
		_, err := v.Verify(t.Context(), token)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", id, err, says)
		}
		if n := a.fetches.Load(); n != fetches {
			t.Errorf("%s: the keys were fetched %d times, want %d", id, n, fetches)
		}
	}
	old := a.token(t, "k1", nil)
	check("k1", old, "", 1)
	a.publish(t, "k1", "k2")
	clk.pass(20 * time.Second)
	fresh := a.token(t, "k2", map[string]any{"iat": noon.Add(20 * time.Second).Unix()})
	check("k2", fresh, "", 2)
	a.publish(t, "k2")
	check("k1, of which nothing was heard yet", old, "", 2)
	forged := sign(t, jose.ES256, newKey(t), "k3", a.claims(map[string]any{"iat": noon.Add(20 * time.Second).Unix()}))
	for range 50 {
		check("k3, at once", forged, "is asked every 10s", 2)
	}
	clk.pass(FetchEvery)
	check("k3", forged, `has no key "k3"`, 3)
	check("k1, which is gone", old, `has no key "k1"`, 3)
	check("k2", fresh, "", 3)
	// Without unknown keys, too, what is gone is noticed: while the old ones are used.
	a.publish(t, "k4")
	clk.pass(RefreshAfter)
	check4 := func() error { _, err := v.Verify(t.Context(), fresh); return err }
	if err := check4(); err != nil {
		t.Error(err)
	}
	v.own.Wait()
	if err := check4(); err == nil || a.fetches.Load() != 4 {
		t.Errorf("k2 is gone: %v; %d fetches", err, a.fetches.Load())
	}
}

// An issuer that is down at the start is no reason to be, nor to be asked by every request; later its keys are good for a day.
func TestFinding_V6_AnIssuerThatIsDown(t *testing.T) {
	a := newAuthority(t, "k1")
	a.down.Store(true)
	v, clk := verifier(t, Options{URL: a.URL})
	token := a.token(t, "k1", map[string]any{"exp": noon.Add(1000 * time.Hour).Unix()})
	unavailable := func(what, says string) {
		t.Helper()
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, server.ErrAuthUnavailable) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), a.URL) {
			t.Errorf("%s: %v", what, err)
		}
	}
	good := func(what string) {
		t.Helper()
		if s, err := v.Verify(t.Context(), token); err != nil || s.Name != "alice" {
			t.Errorf("%s: %+v, %v", what, s, err)
		}
	}
	unavailable("at the start", "502")
	a.down.Store(false)
	unavailable("at once after that", "502")
	clk.pass(FetchEvery)
	good("later")
	a.down.Store(true)
	clk.pass(KeptFor - time.Second)
	good("a day later")
	v.own.Wait()
	good("the keys are asked for, and don't come")
	clk.pass(2 * time.Second)
	unavailable("after a day", "502")
	a.down.Store(false)
	clk.pass(FetchEvery)
	good("it is up again")
	// One that never answers holds nobody up whose key is known, and others for a bounded time.
	stall := make(chan struct{})
	defer close(stall)
	a.stall.Store(&stall)
	clk.pass(RefreshAfter)
	good("it stalls")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := v.Verify(ctx, sign(t, jose.ES256, newKey(t), "k9", a.claims(nil))); !errors.Is(err, server.ErrAuthUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it stalls, and is needed: %v", err)
	}
}

// What an issuer says of itself has to be so, and to come by a way on which nobody can change it.
func TestFinding_V6_IssuersThatAreNone(t *testing.T) {
	for url, says := range map[string]string{
		"": "want its URL", "example.org": "want its URL", "http://example.org": "want its URL", "https://example.org/?a=b": "want its URL",
	} {
		if _, err := New(Options{URL: url, Audience: "leasehold"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := New(Options{URL: "https://example.org"}); err == nil || !strings.Contains(err.Error(), "audience") {
		t.Errorf("without an audience: %v", err)
	}
	a := newAuthority(t, "k1")
	for _, c := range []struct{ field, value, says string }{
		{"issuer", "https://other.example", "did not match"},
		{"jwks_uri", "http://keys.example/", `its jwks_uri is "http://keys.example/"`},
		{"padding", strings.Repeat("x", maxAnswer), "unexpected"},
	} {
		a.mu.Lock()
		a.said = map[string]any{c.field: c.value}
		a.mu.Unlock()
		v, _ := verifier(t, Options{URL: a.URL})
		if _, err := v.Verify(t.Context(), a.token(t, "k1", nil)); !errors.Is(err, server.ErrAuthUnavailable) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 600 {
			t.Errorf("%s: %.600v", c.field, err)
		}
	}
}
