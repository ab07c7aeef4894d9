//go:build !lite

package review

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/issuer"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store/open"
)

// The bounds of what is asked.
const (
	// So long an answer is used again: a deleted account's, too; the API server itself remembers
	// what it said for 10 s.
	CachedFor   = 10 * time.Second
	Limit       = 5 * time.Second // for the API server to answer, and for a turn to ask it
	atATime     = 16
	mostAnswers = 10_000
)

// Reviewer asks an API server about tokens. It is safe for concurrent use. Close it when it is done
// with.
type Reviewer struct {
	o      Options
	client client.TokenReviewInterface
	host   string
	http   *http.Client
	turns  chan struct{}

	mu      sync.Mutex
	answers map[[sha256.Size]byte]*answer
}

// answer is what the API server says of a token.
type answer struct {
	done    chan struct{} // closed when the rest is there
	account Account
	err     error
	until   time.Time
}

// New returns a reviewer. It does no network I/O. Its errors name the option that is wrong.
func New(o Options) (*Reviewer, error) {
	if o.Audience == "" {
		return nil, errors.New("audience: want what tokens have to be made for, such as leasehold: a token that is good for the API server itself must not be sent here")
	}
	config, hc, err := open.DialCluster(o.Kubeconfig, o.Context)
	if err != nil {
		return nil, err
	}
	hc.Timeout = Limit
	c, err := client.NewForConfigAndClient(config, hc)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", o.Kubeconfig, err)
	}
	return &Reviewer{o: o, client: c.TokenReviews(), host: config.Host, http: hc, turns: make(chan struct{}, atATime), answers: map[[sha256.Size]byte]*answer{}}, nil
}

// Close closes the connections that nothing is asked on.
func (r *Reviewer) Close() { r.http.CloseIdleConnections() }

// Review returns whose a token is. It blocks while the API server is asked, for twice [Limit] at
// most. The error matches [server.ErrAuthUnavailable] when it can't be asked; it never has the
// token in it.
func (r *Reviewer) Review(ctx context.Context, token string) (Account, error) {
	_, expires, ok := issuer.Claimed(token)
	if !ok {
		return Account{}, errors.New("the bearer token is not known, and is no service account's")
	}
	sum := sha256.Sum256([]byte(token))
	r.mu.Lock()
	a := r.answers[sum]
	if a != nil && !a.over(r.o.Wall()) {
		r.mu.Unlock()
		select {
		case <-a.done:
			return a.account, a.err
		case <-ctx.Done():
			return Account{}, fmt.Errorf("%w: %w", server.ErrAuthUnavailable, context.Cause(ctx))
		}
	}
	a = &answer{done: make(chan struct{})}
	r.makeRoom()
	r.answers[sum] = a
	r.mu.Unlock()
	r.ask(context.WithoutCancel(ctx), token, expires, a) // others may wait for it, too
	if errors.Is(a.err, server.ErrAuthUnavailable) {
		r.mu.Lock()
		if r.answers[sum] == a {
			delete(r.answers, sum)
		}
		r.mu.Unlock()
	}
	return a.account, a.err
}

// over reports whether an answer is too old. One that isn't there yet is not.
func (a *answer) over(now time.Time) bool {
	select {
	case <-a.done:
		return !now.Before(a.until) || now.Before(a.until.Add(-CachedFor)) // the clock was set back
	default:
		return false
	}
}

// makeRoom forgets what is over when there are many answers, and all that are there if that makes
// no room. r.mu is held.
func (r *Reviewer) makeRoom() {
	if len(r.answers) < mostAnswers {
		return
	}
	now := r.o.Wall()
	for sum, a := range r.answers {
		if a.over(now) {
			delete(r.answers, sum)
		}
	}
	if len(r.answers) >= mostAnswers {
		clear(r.answers)
	}
}

// ask asks the API server, and fills in the answer.
func (r *Reviewer) ask(ctx context.Context, token string, expires time.Time, a *answer) {
	defer close(a.done)
	now := r.o.Wall()
	a.until = now.Add(CachedFor)
	if expires.After(now) && expires.Before(a.until) {
		a.until = expires
	}
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), 2*Limit)
	defer cancel()
	turn := clock.NewTimer(clock.System(), Limit)
	defer turn.Stop()
	select {
	case r.turns <- struct{}{}:
		defer func() { <-r.turns }()
	case <-turn.C:
		a.err = r.unavailable(fmt.Errorf("%d requests for it were waiting", atATime))
		return
	}
	review, err := r.client.Create(ctx, &authentication.TokenReview{
		Spec: authentication.TokenReviewSpec{Token: token, Audiences: []string{r.o.Audience}},
	}, meta.CreateOptions{})
	if err != nil {
		a.err = r.unavailable(err)
		return
	}
	a.account, a.err = r.accountOf(review.Status)
}

// accountOf judges what the API server says.
func (r *Reviewer) accountOf(s authentication.TokenReviewStatus) (Account, error) {
	switch {
	case !s.Authenticated:
		return Account{}, fmt.Errorf("the service account's token is refused: %.300s: want one for the audience %s that has not expired, of an account that exists", s.Error, r.o.Audience)
	case !slices.Contains(s.Audiences, r.o.Audience):
		return Account{}, fmt.Errorf("the service account's token is refused: it is not for the audience %s", r.o.Audience)
	case !strings.HasPrefix(s.User.Username, Accounts):
		return Account{}, fmt.Errorf("the bearer token is of %.100q: want one of a service account", s.User.Username)
	}
	return Account{s.User.Username, s.User.Groups}, nil
}

// unavailable is the error of an API server that has said nothing of a token.
func (r *Reviewer) unavailable(err error) error {
	advice := ""
	if apierrors.IsForbidden(err) {
		advice = ": bind the ClusterRole system:auth-delegator to the account that this server runs as"
	}
	return fmt.Errorf("%w: Kubernetes at %s: %.300s%s", server.ErrAuthUnavailable, r.host, err, advice)
}

// probe is signed by nobody: to be told so is an answer.
const probe = "eyJhbGciOiJFUzI1NiJ9.e30.AAAA"

// Check sees whether the API server answers, to this server's account.
func (r *Reviewer) Check(ctx context.Context) error {
	if _, err := r.Review(ctx, probe); errors.Is(err, server.ErrAuthUnavailable) {
		return err
	}
	return nil
}
