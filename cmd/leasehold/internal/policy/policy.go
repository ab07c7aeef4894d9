// Package policy says who a lock server's callers are, and what each may do: a file of bearer
// tokens and certificates, of issuers whose tokens name their callers (OpenID Connect, Kubernetes),
// and of the names that each caller may use.
package policy

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/server"
)

// file is what a policy file says.
type file struct {
	Issuers    []trusted `yaml:"issuers"`
	Kubernetes *cluster  `yaml:"kubernetes"`
	Callers    []*caller `yaml:"callers"`
	Anonymous  []rule    `yaml:"anonymous"` // what callers without a name may do
}

// caller is somebody known.
type caller struct {
	Called string   `yaml:"name"`
	Tokens []string `yaml:"token_sha256"`    // hex
	Dated  []dated  `yaml:"expiring_tokens"` // tokens that expire
	// Common names, DNS names, e-mail addresses or URIs of client certificates.
	Certs []string `yaml:"certificates"`
	// Names that issuers, or Kubernetes, give; or prefixes with a * behind them.
	Subjects []string `yaml:"subjects"`
	Roles    []string `yaml:"roles"` // roles that issuers give, or Kubernetes' groups
	Allow    []rule   `yaml:"allow"`
}

// dated is a token that expires.
type dated struct {
	Sum     string    `yaml:"sha256"` // hex
	Expires time.Time `yaml:"expires"`
}

// known is a token, and whose it is.
type known struct {
	of      *caller
	expires time.Time // zero: never
}

// rule allows actions on names.
type rule struct {
	// Read, acquire, break, handoff, pause, assign, metrics, records; * for all.
	Actions []string `yaml:"actions"`
	Names   []string `yaml:"names"` // a name, or a prefix with a * behind it
}

// Policy is a policy file as it was last read without an error. It is safe for concurrent use.
type Policy struct {
	path string
	now  atomic.Pointer[rules]

	// OnReload, if set, is called when the file was read again because it had changed, with the
	// error of that.
	OnReload func(error)
	// Wall tells whether a token has expired: the system's clock by default.
	Wall func() time.Time

	reloading sync.Mutex // so that what is made of the file is made once

	mu     sync.Mutex
	looked time.Time // when the file was last looked at
	stamp  stamp     // of the file as it was read
}

// stamp is what changes with a file.
type stamp struct {
	at   time.Time
	size int64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// lookEvery is how often the file is looked at while there are requests.
const lookEvery = time.Second

// rules are a file, ready for use.
type rules struct {
	tokens    map[[sha256.Size]byte]known
	certs     map[string]*caller
	callers   []*caller
	anonymous *caller // nil if nothing is allowed to strangers
	trust     *trust
}

// Load reads a policy file. Its errors name the line or the caller that is wrong. It does no
// network I/O: whom the policy trusts is asked when a token has to be judged. Close the policy when
// it is done with.
func Load(path string) (*Policy, error) {
	p := &Policy{path: path, Wall: clock.System().Wall}
	return p, p.Reload()
}

// Close ends what is asked of those whom the policy trusts.
func (p *Policy) Close() {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	if r := p.now.Load(); r != nil {
		r.trust.close(&trust{})
	}
}

// Reload reads the file again. After an error the policy is what it was.
func (p *Policy) Reload() error {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	p.mu.Lock()
	p.stamp = stampOf(p.path) // before it is read: what changes meanwhile is read once more
	p.mu.Unlock()
	text, err := os.ReadFile(p.path)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	f, err := read(text)
	if err != nil {
		return fmt.Errorf("policy %s: %w", p.path, err)
	}
	r, err := f.rules()
	if err != nil {
		return fmt.Errorf("policy %s: %w", p.path, err)
	}
	before := &trust{}
	if old := p.now.Load(); old != nil {
		before = old.trust
	}
	if r.trust, err = p.connect(f, before); err != nil {
		return fmt.Errorf("policy %s: %w", p.path, err)
	}
	p.now.Store(r)
	before.close(r.trust)
	return nil
}

// follow reads the file again if it has changed since it was read.
func (p *Policy) follow() {
	now := p.Wall()
	p.mu.Lock()
	due := now.Sub(p.looked).Abs() >= lookEvery
	if due {
		p.looked = now
	}
	before := p.stamp
	p.mu.Unlock()
	if !due {
		return
	}
	if as := stampOf(p.path); as == before || as == (stamp{}) {
		return
	}
	if err := p.Reload(); p.OnReload != nil {
		p.OnReload(err)
	}
}

func read(text []byte) (*file, error) {
	var f file
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &f, nil
}

// rules makes the file ready for use, but for whom it trusts.
func (f *file) rules() (*rules, error) {
	r := &rules{tokens: map[[sha256.Size]byte]known{}, certs: map[string]*caller{}, callers: f.Callers, trust: &trust{}}
	for i, c := range f.Callers {
		if c == nil || c.Called == "" {
			return nil, fmt.Errorf("caller %d has no name", i+1)
		}
		if err := r.add(c); err != nil {
			return nil, fmt.Errorf("caller %s: %w", c.Called, err)
		}
	}
	if len(f.Anonymous) > 0 {
		if err := check(f.Anonymous); err != nil {
			return nil, fmt.Errorf("anonymous: %w", err)
		}
		r.anonymous = &caller{Allow: f.Anonymous}
	}
	if len(r.callers) == 0 && r.anonymous == nil {
		return nil, errors.New("nobody may do anything: want callers, or rules under anonymous")
	}
	return r, f.checkTrust()
}

func (r *rules) add(c *caller) error {
	if len(c.Tokens)+len(c.Dated)+len(c.Certs)+len(c.Subjects)+len(c.Roles) == 0 {
		return errors.New("want token_sha256 or certificates, to know it by; or expiring_tokens, subjects or roles")
	}
	all := c.Dated
	for _, text := range c.Tokens {
		all = append(all, dated{Sum: text})
	}
	for i, token := range all {
		text := token.Sum
		if i < len(c.Dated) && token.Expires.IsZero() {
			return fmt.Errorf("expiring_tokens: %.8s…: want expires, a time such as 2026-12-31T00:00:00Z; one that doesn't expire is a token_sha256", text)
		}
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != sha256.Size {
			return fmt.Errorf(`token_sha256 %.20q: want 64 hexadecimal digits: printf %%s "$TOKEN" | sha256sum`, text)
		}
		if other := r.tokens[[sha256.Size]byte(sum)].of; other != nil {
			return fmt.Errorf("token_sha256 %.8s…: caller %s has that token, too", text, other.Called)
		}
		r.tokens[[sha256.Size]byte(sum)] = known{c, token.Expires}
	}
	for _, name := range c.Certs {
		if other := r.certs[name]; name == "" || other != nil {
			return fmt.Errorf("certificates %q: want a name that no other caller has", name)
		}
		r.certs[name] = c
	}
	return check(c.Allow)
}

// actions are what a rule may allow.
var actions = func() []string {
	all := []string{"*"}
	for _, a := range server.Actions() {
		all = append(all, string(a))
	}
	return all
}()

func check(allow []rule) error {
	for _, r := range allow {
		if len(r.Actions) == 0 || len(r.Names) == 0 {
			return errors.New("allow: want actions and names in each rule")
		}
		for _, a := range r.Actions {
			if !slices.Contains(actions, a) {
				return fmt.Errorf("actions %q: want %s", a, strings.Join(actions, ", "))
			}
		}
		for _, n := range r.Names {
			if i := strings.Index(n, "*"); n == "" || i >= 0 && i != len(n)-1 {
				return fmt.Errorf("names %q: want a name, or a prefix with one * behind it", n)
			}
		}
	}
	return nil
}

// Name implements [server.Caller].
func (c *caller) Name() string { return c.Called }

// May implements [server.Caller].
func (c *caller) May(action server.Action, name string) bool {
	return slices.ContainsFunc(c.Allow, func(r rule) bool {
		return (slices.Contains(r.Actions, "*") || slices.Contains(r.Actions, string(action))) &&
			(name == "" || slices.ContainsFunc(r.Names, func(pattern string) bool { return covers(pattern, name) }))
	})
}

// Names implements [server.Scoped]: what another of the names covers is left out.
func (c *caller) Names(action server.Action) []string {
	var all []string
	for _, r := range c.Allow {
		if slices.Contains(r.Actions, "*") || slices.Contains(r.Actions, string(action)) {
			all = append(all, r.Names...)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return slices.ContainsFunc(all, func(other string) bool { return other != name && covers(other, name) })
	})
}

// covers reports whether a pattern allows a name, or all names of a prefix if it ends in "*".
func covers(pattern, name string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	if !open {
		return name == pattern
	}
	return strings.HasPrefix(strings.TrimSuffix(name, "*"), prefix)
}

// Authenticate is [server.Options.Authenticate]: a bearer token decides, then a client's
// certificate, then what strangers may do.
func (p *Policy) Authenticate(r *http.Request) (server.Caller, error) {
	p.follow()
	now := p.now.Load()
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") { // schemes have no case
			return nil, errors.New("Authorization: want a bearer token") //nolint:staticcheck // the header's name
		}
		c, err := now.byToken(token, p.Wall())
		if errors.Is(err, errUnknownToken) {
			return now.bySigned(r.Context(), token)
		}
		return c, err
	}
	if c := now.byCertificate(r.TLS); c != nil {
		return c, nil
	}
	if now.anonymous != nil {
		return now.anonymous, nil
	}
	return nil, errors.New("want a bearer token in the header Authorization, or a client's certificate that the policy knows")
}

// byToken compares hashes with all that are known, so that the time it takes says nothing about
// them.
func (r *rules) byToken(token string, now time.Time) (server.Caller, error) {
	sum := sha256.Sum256([]byte(token))
	var found known
	for other, k := range r.tokens {
		if subtle.ConstantTimeCompare(other[:], sum[:]) == 1 {
			found = k
		}
	}
	switch {
	case found.of == nil:
		return nil, errUnknownToken
	case !found.expires.IsZero() && !now.Before(found.expires):
		return nil, fmt.Errorf("the bearer token of %s expired at %s: ask for a new one", found.of.Called, found.expires.UTC().Format(time.RFC3339))
	}
	return found.of, nil
}

// byCertificate returns who a verified certificate belongs to, or nil.
func (r *rules) byCertificate(state *tls.ConnectionState) server.Caller {
	if state == nil || len(state.VerifiedChains) == 0 {
		return nil
	}
	cert := state.VerifiedChains[0][0]
	names := slices.Concat([]string{cert.Subject.CommonName}, cert.DNSNames, cert.EmailAddresses)
	for _, uri := range cert.URIs { // SPIFFE's, for instance
		names = append(names, uri.String())
	}
	for _, name := range names {
		if c := r.certs[name]; c != nil {
			return c
		}
	}
	return nil
}
