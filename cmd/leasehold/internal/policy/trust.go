package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/issuer"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/review"
	"github.com/leasehold/leasehold/server"
)

// trusted is an OpenID Connect issuer, whose tokens name callers.
type trusted struct {
	URL      string `yaml:"issuer"`
	Audience string `yaml:"audience"`
	Name     string `yaml:"name_claim"`  // sub by default
	Roles    string `yaml:"roles_claim"` // none by default
	Prefix   string `yaml:"prefix"`      // before names and roles: the URL and # by default
	CA       string `yaml:"ca"`          // file
	Login    login  `yaml:"login"`       // on the page; none by default
}

// cluster is a Kubernetes API server, which says whose tokens of service accounts are.
type cluster struct {
	Audience   string `yaml:"audience"`
	Kubeconfig string `yaml:"kubeconfig"` // file
	Context    string `yaml:"context"`
}

// trust asks issuers and clusters whom a token is of.
type trust struct {
	issuers map[trusted]*issuer.Verifier
	logins  []trusted // those with which people log in, in the file's order
	cluster cluster
	review  *review.Reviewer // nil without a cluster
}

// before returns what stands before the names that the issuer gives.
func (t trusted) before() string { return cmp.Or(t.Prefix, t.URL+"#") }

// checkTrust sees that nobody whose tokens are trusted can name a caller that is somebody else's.
func (f *file) checkTrust() error {
	prefixes := map[string]string{} // to whose they are
	if f.Kubernetes != nil {
		prefixes["system:"] = "kubernetes"
	}
	for i, t := range f.Issuers {
		who := "issuer " + t.URL
		if t.URL == "" {
			return fmt.Errorf("issuers: the one with the number %d has no issuer: want its URL", i+1)
		}
		for other, of := range prefixes {
			if strings.HasPrefix(other, t.before()) || strings.HasPrefix(t.before(), other) {
				return fmt.Errorf("%s: prefix %q: %s has %q: want prefixes of which none begins with another, so that no two callers have one name", who, t.before(), of, other)
			}
		}
		if slices.ContainsFunc(f.Issuers[:i], func(o trusted) bool { return o.URL == t.URL }) {
			return fmt.Errorf("%s is there twice: want one entry, with one audience", who)
		}
		if err := t.Login.check(t.Audience); err != nil {
			return fmt.Errorf("%s: login: %w", who, err)
		}
		prefixes[t.before()] = who
	}
	for _, c := range f.Callers {
		if err := c.checkNames(prefixes); err != nil {
			return fmt.Errorf("caller %s: %w", c.Called, err)
		}
	}
	return nil
}

// checkNames sees that a caller's subjects and roles may come from somebody, and that its own name
// may not.
func (c *caller) checkNames(prefixes map[string]string) error {
	for prefix, of := range prefixes {
		if len(c.Tokens)+len(c.Dated)+len(c.Certs) > 0 && strings.HasPrefix(c.Called, prefix) {
			return fmt.Errorf("the name begins with %s, as those do that %s gives: want another name", prefix, of)
		}
	}
	for _, s := range []struct {
		field string
		names []string
	}{{"subjects", c.Subjects}, {"roles", c.Roles}} {
		for _, name := range s.names {
			known := false
			for prefix := range prefixes {
				known = known || strings.HasPrefix(name, prefix)
			}
			if !known {
				return fmt.Errorf("%s %q: nobody is called so: want a prefix of one of the issuers, and what it says, or with kubernetes %sNAMESPACE:NAME", s.field, name, review.Accounts)
			}
			if i := strings.Index(name, "*"); i >= 0 && (i != len(name)-1 || s.field == "roles") {
				return fmt.Errorf("%s %q: want a name; one * is allowed at the end, of subjects", s.field, name)
			}
		}
	}
	return nil
}

// connect makes what asks those whom the file trusts: what is the same as before stays, with what
// it knows.
func (p *Policy) connect(f *file, before *trust) (_ *trust, err error) {
	w := &trust{issuers: map[trusted]*issuer.Verifier{}}
	defer func() {
		if err != nil {
			w.close(before)
		}
	}()
	wall := func() time.Time { return p.Wall() }
	for _, t := range f.Issuers {
		if t.Login != (login{}) {
			w.logins = append(w.logins, t)
		}
		if w.issuers[t] = before.issuers[t]; w.issuers[t] != nil {
			continue
		}
		w.issuers[t], err = issuer.New(issuer.Options{URL: t.URL, Audience: t.Audience, Name: t.Name, Roles: t.Roles, CA: t.CA, Wall: wall})
		if err != nil {
			delete(w.issuers, t)
			return nil, fmt.Errorf("issuers: %w", err)
		}
	}
	switch {
	case f.Kubernetes == nil:
	case before.review != nil && *f.Kubernetes == before.cluster:
		w.cluster, w.review = before.cluster, before.review
	default:
		w.cluster = *f.Kubernetes
		w.review, err = review.New(review.Options{Audience: w.cluster.Audience, Kubeconfig: w.cluster.Kubeconfig, Context: w.cluster.Context, Wall: wall})
		if err != nil {
			return nil, fmt.Errorf("kubernetes: %w", err)
		}
	}
	return w, nil
}

// close ends what is not among others, too.
func (w *trust) close(others *trust) {
	for t, v := range w.issuers {
		if others.issuers[t] != v {
			v.Close()
		}
	}
	if w.review != nil && w.review != others.review {
		w.review.Close()
	}
}

// errUnknownToken is the error of a token that nobody is known by.
var errUnknownToken = errors.New("the bearer token is not known")

// bySigned returns who a token is of that somebody else has signed.
func (r *rules) bySigned(ctx context.Context, token string) (server.Caller, error) {
	from, _, ok := issuer.Claimed(token)
	if !ok {
		return nil, errUnknownToken
	}
	for t, v := range r.trust.issuers {
		if t.URL != from {
			continue
		}
		s, err := v.Verify(ctx, token)
		if err != nil {
			return nil, err
		}
		for i := range s.Roles {
			s.Roles[i] = t.before() + s.Roles[i]
		}
		return r.person(t.before()+s.Name, s.Roles), nil
	}
	if r.trust.review == nil {
		return nil, fmt.Errorf("the bearer token is from %.200q, which the policy does not trust", from)
	}
	a, err := r.trust.review.Review(ctx, token)
	if err != nil {
		return nil, err
	}
	return r.person(a.Name, a.Groups), nil
}

// person is a caller whom somebody trusted has named: it may do what all may as whom it is known.
type person struct {
	called string
	as     []*caller
}

// Name implements [server.Caller].
func (p *person) Name() string { return p.called }

// May implements [server.Caller].
func (p *person) May(action server.Action, name string) bool {
	return slices.ContainsFunc(p.as, func(c *caller) bool { return c.May(action, name) })
}

func (r *rules) person(name string, roles []string) *person {
	p := &person{called: name}
	for _, c := range r.callers {
		if slices.ContainsFunc(c.Subjects, func(s string) bool { return covers(s, name) }) ||
			slices.ContainsFunc(c.Roles, func(role string) bool { return slices.Contains(roles, role) }) {
			p.as = append(p.as, c)
		}
	}
	return p
}

// Trusted is what was heard of somebody whose tokens are trusted.
type Trusted struct {
	What   string // "issuer URL", or "kubernetes"
	Detail string
	Err    error
	Login  bool // it is about the login on the page, which nobody else needs
}

// Check asks all whose tokens are trusted whether they can answer. It blocks until they have, or
// for 10 s for each of them.
func (p *Policy) Check(ctx context.Context) (all []Trusted) {
	w := p.now.Load().trust
	for t, v := range w.issuers {
		n, err := v.Check(ctx)
		all = append(all, Trusted{What: "issuer " + t.URL, Detail: fmt.Sprintf("%d keys", n), Err: err})
	}
	for _, t := range w.logins { // after the keys, with which the endpoints come
		at, err := w.issuers[t].Endpoints(ctx, false)
		all = append(all, Trusted{What: "login with " + t.URL, Detail: "at " + at.Authorization, Err: err, Login: true})
	}
	if w.review != nil {
		all = append(all, Trusted{What: "kubernetes", Detail: "reviews tokens", Err: w.review.Check(ctx)})
	}
	slices.SortFunc(all, func(a, b Trusted) int { return cmp.Compare(a.What, b.What) })
	return all
}
