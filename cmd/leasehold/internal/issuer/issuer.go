// Package issuer verifies the tokens of an OpenID Connect issuer (JWT), by the keys that the issuer
// publishes.
//
// Keys are fetched when they are first needed, again when they are older than [RefreshAfter], while
// the old ones are used, and when a token names one that isn't known. While the issuer doesn't
// answer, the last ones are good for [KeptFor].
package issuer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/leasehold/leasehold/server"
)

// The times by which keys and tokens are judged.
const (
	Leeway = 30 * time.Second // between the issuer's clock and this machine's
	// So long a key that the issuer has withdrawn may still be taken.
	RefreshAfter = 5 * time.Minute
	KeptFor      = 24 * time.Hour   // so long keys are good while the issuer doesn't answer
	FetchEvery   = 10 * time.Second // at most, however many tokens name keys that aren't known
	FetchLimit   = 5 * time.Second  // for the issuer to answer
)

// maxName bounds the name that a token gives its caller, in bytes.
const maxName = 200

// algorithms are those whose verifying key is public. None, and those with a shared secret, are not
// among them: a public key is no secret.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// Options of a [Verifier].
type Options struct {
	URL      string // of the issuer, as its tokens say it in iss
	Audience string // that a token has to be for
	Name     string // the claim that names the caller: sub by default
	// The claim with the roles of the caller, a string or a list of them; "" for none.
	Roles string
	// File with the authorities that sign the issuer's certificate; "" for the system's.
	CA string

	Wall func() time.Time // the time of day
}

// Subject is who a token speaks for, as its issuer says.
type Subject struct {
	Name  string
	Roles []string
}

// Verifier verifies the tokens of one issuer. It is safe for concurrent use. Close it when it is
// done with.
type Verifier struct {
	o      Options
	client *http.Client
	verify *oidc.Config
	ctx    context.Context
	stop   context.CancelFunc
	own    sync.WaitGroup

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	at      Endpoints
	fetched time.Time     // when the keys were asked for that are here; zero: never
	tried   time.Time     // when they were last asked for
	failure error         // of that
	running chan struct{} // closed when the fetch has ended that is under way; nil: none is
}

// New returns a verifier. It does no network I/O. Its errors name the option that is wrong.
func New(o Options) (*Verifier, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil, u.Host == "", u.RawQuery != "", u.Fragment != "", !encrypted(u):
		return nil, fmt.Errorf("issuer %s: want its URL as its tokens have it in iss, https://HOST/…, or http:// on this machine", o.URL)
	case o.Audience == "":
		return nil, fmt.Errorf("issuer %s: audience: want what its tokens have in aud when they are for this server", o.URL)
	}
	if o.Name == "" {
		o.Name = "sub"
	}
	// With a leeway, by inTime.
	v := &Verifier{o: o, verify: &oidc.Config{ClientID: o.Audience, SkipExpiryCheck: true}}
	for _, a := range algorithms {
		v.verify.SupportedSigningAlgs = append(v.verify.SupportedSigningAlgs, string(a))
	}
	if v.client, err = newClient(o.CA); err != nil {
		return nil, fmt.Errorf("issuer %s: ca: %w", o.URL, err)
	}
	v.ctx, v.stop = context.WithCancel(context.Background())
	return v, nil
}

// encrypted reports whether nobody between here and the URL can answer in its place.
func encrypted(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// Close ends what is asked of the issuer, and waits for that.
func (v *Verifier) Close() {
	v.stop()
	v.own.Wait()
	v.client.CloseIdleConnections()
}

// Claimed returns who a token says that it is from and until when it is good, unverified; ok is
// false if it isn't signed as a JWT is.
func Claimed(token string) (issuer string, expires time.Time, ok bool) {
	jws, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return "", time.Time{}, false
	}
	c, err := readClaims(jws.UnsafePayloadWithoutVerification())
	return c.Issuer, c.Expires.Time(), err == nil
}

// Verify returns who a token speaks for. It blocks while the issuer is asked for keys, for
// [FetchLimit] at most. The error matches [server.ErrAuthUnavailable] when the issuer would have to
// be asked and can't be; it never has the token in it.
func (v *Verifier) Verify(ctx context.Context, token string) (Subject, error) {
	jws, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return Subject{}, errors.New("the bearer token is no JWT signed with RS, PS, ES or EdDSA")
	}
	claimed, err := readClaims(jws.UnsafePayloadWithoutVerification())
	if err != nil {
		return Subject{}, v.wrong("its claims can't be read")
	}
	keys, err := v.keysOf(ctx, jws.Signatures[0].Header, claimed.Issued.Time())
	if err != nil {
		return Subject{}, err
	}
	set := &oidc.StaticKeySet{}
	for _, k := range keys {
		set.PublicKeys = append(set.PublicKeys, k.Key)
	}
	verified, err := oidc.NewVerifier(v.o.URL, set, v.verify).Verify(ctx, token)
	if err != nil {
		return Subject{}, v.wrong("%s", strings.TrimPrefix(err.Error(), "oidc: "))
	}
	var all map[string]any
	if err := verified.Claims(&all); err != nil {
		return Subject{}, v.wrong("its claims can't be read")
	}
	if err := v.inTime(claimed); err != nil { // claimed is what was verified: there is one payload
		return Subject{}, err
	}
	return v.subject(all)
}

// wrong is the error of a token that is not good.
func (v *Verifier) wrong(format string, args ...any) error {
	return fmt.Errorf("the bearer token of %s is refused: %.300s: get a new one", v.o.URL, fmt.Sprintf(format, args...))
}

// inTime sees that a token is neither over nor for later.
func (v *Verifier) inTime(c claims) error {
	now := v.o.Wall()
	switch expires, from := c.Expires.Time(), c.NotBefore.Time(); {
	case c.Expires == nil:
		return v.wrong("it never expires: want the claim exp")
	case !now.Before(expires.Add(Leeway)):
		return v.wrong("it expired at %s", expires.UTC().Format(time.RFC3339))
	case c.NotBefore != nil && now.Before(from.Add(-Leeway)):
		return v.wrong("it is good from %s on: are the clocks right?", from.UTC().Format(time.RFC3339))
	}
	return nil
}

// subject reads who a verified token speaks for.
func (v *Verifier) subject(all map[string]any) (s Subject, err error) {
	s.Name, _ = all[v.o.Name].(string)
	switch {
	case s.Name == "":
		return s, v.wrong("claim %s: want the caller's name, a string", v.o.Name)
	case !printable(s.Name):
		return s, v.wrong("claim %s: want at most %d bytes of printable text", v.o.Name, maxName)
	case v.o.Name == "email" && all["email_verified"] != true:
		return s, v.wrong("claim email_verified: want true, since email names the caller")
	}
	switch roles := all[v.o.Roles].(type) {
	case string:
		s.Roles = []string{roles}
	case []any:
		for _, r := range roles {
			if text, ok := r.(string); ok {
				s.Roles = append(s.Roles, text)
			}
		}
	}
	return s, nil
}

func printable(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Check asks the issuer for its keys, and returns how many there are.
func (v *Verifier) Check(ctx context.Context) (int, error) {
	v.mu.Lock()
	done := v.start()
	v.mu.Unlock()
	if err := await(ctx, done); err != nil {
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failure != nil {
		return 0, v.unavailable("%v", v.failure)
	}
	return len(v.keys), nil
}

// keysOf returns the keys that a token may be signed with, by its header. issued is when it says
// that it was made.
func (v *Verifier) keysOf(ctx context.Context, h jose.Header, issued time.Time) ([]jose.JSONWebKey, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.o.Wall()
	if since(now, v.fetched) < KeptFor {
		if keys := matching(v.keys, h); len(keys) > 0 {
			if since(now, v.fetched) >= RefreshAfter && since(now, v.tried) >= FetchEvery {
				v.start() // these will do meanwhile
			}
			return keys, nil
		}
	}
	done := v.running
	if done == nil && since(now, v.tried) >= FetchEvery {
		done = v.start()
	}
	if done != nil {
		v.mu.Unlock()
		err := await(ctx, done)
		v.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	keys := matching(v.keys, h)
	switch {
	case v.failure != nil && since(now, v.fetched) < KeptFor && len(keys) > 0:
		return keys, nil
	case v.failure != nil:
		return nil, v.unavailable("%v", v.failure)
	case len(keys) > 0:
		return keys, nil
	case done == nil && issued.After(v.fetched.Add(-Leeway)):
		return nil, v.unavailable("it had no key %.40q when it was last asked, and is asked every %v at most", h.KeyID, FetchEvery)
	}
	return nil, v.wrong("the issuer has no key %.40q for %s", h.KeyID, h.Algorithm)
}

// since is how long ago a time of day was, whichever way the clock was set meanwhile.
func since(now, then time.Time) time.Duration { return now.Sub(then).Abs() }

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", server.ErrAuthUnavailable, context.Cause(ctx))
	}
}

func (v *Verifier) unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: issuer %s: %.300s", server.ErrAuthUnavailable, v.o.URL, fmt.Sprintf(format, args...))
}

// matching returns the keys that a token may be signed with: that which it names, or any if it
// names none.
func matching(keys []jose.JSONWebKey, h jose.Header) []jose.JSONWebKey {
	return slices.DeleteFunc(slices.Clone(keys), func(k jose.JSONWebKey) bool {
		return h.KeyID != "" && k.KeyID != h.KeyID || k.Algorithm != "" && k.Algorithm != h.Algorithm
	})
}
