// Package podlabel keeps a label on the pod of a leader, so that a Service selects it.
//
// A label is advice for routing. It stays when the process that keeps it is killed, until the
// process starts again or another candidate leads. It can't be taken off while the API server is
// away.
//
// Beside the label is an annotation that says which election's term set it, and whether that has
// ended. Its key is the label's and ".term". By it a leader knows which pods have the label from an
// earlier term: it takes the label off them before it puts it on its own pod. It never takes off a
// label of a later term, of another election, or of unknown origin.
package podlabel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// suffix makes the annotation's key out of the label's.
const suffix = ".term"

// The variables of the environment that say which pod this is, as the downward API sets them.
const (
	EnvPod       = "POD_NAME"
	EnvNamespace = "POD_NAMESPACE"
)

// Label is the label to keep, and where.
type Label struct {
	Key, Value     string
	Pod, Namespace string
	Election       string // the name that candidates stand for
}

// Parse reads KEY=VALUE. The pod and its namespace are those of the environment: POD_NAME or the
// host's name, POD_NAMESPACE or the account's namespace.
func Parse(text, election string) (Label, error) {
	key, value, ok := strings.Cut(text, "=")
	l := Label{Key: key, Value: value, Election: election, Pod: os.Getenv(EnvPod), Namespace: os.Getenv(EnvNamespace)}
	if !ok || value == "" {
		return l, fmt.Errorf("%q: want KEY=VALUE, such as leasehold.dev/role=leader", text)
	}
	if err := check(key, value); err != nil {
		return l, err
	}
	if l.Pod == "" {
		l.Pod, _ = os.Hostname()
	}
	if l.Namespace == "" {
		namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
		if err != nil {
			return l, fmt.Errorf("the pod's namespace is not known: set %s by the downward API: %w", EnvNamespace, err)
		}
		l.Namespace = strings.TrimSpace(string(namespace))
	}
	return l, nil
}

// Term is what the label is kept for.
type Term struct {
	Token fence.Token
	Check func() error // nil while the term is valid
}

// The bounds of what is asked of the API server.
const (
	Limit     = 5 * time.Second // for one answer
	leastRest = 100 * time.Millisecond
	mostRest  = 5 * time.Second
	idle      = 24 * time.Hour // until something is wanted
)

// Keeper keeps one label. Make one with [New]. Its methods may be called by several goroutines.
type Keeper struct {
	label Label
	pods  pods
	clk   clock.Clock
	every time.Duration
	say   func(string)

	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	want    *Term
	doubt   bool
	changed chan struct{}      // closed when one of these two changes
	abort   context.CancelFunc // of the requests for what was wanted before
	settled chan struct{}      // closed when the label is as it was wanted last
	set     bool
	err     error
}

// New returns a keeper that looks at all labels again each time that every has passed, and calls
// say with what goes wrong and when that ends. It does no network I/O. Until a term begins, it
// takes off a label that an earlier process of this pod has left. Close it when it is done with.
func New(l Label, clk clock.Clock, every time.Duration, say func(string)) (*Keeper, error) {
	p, err := dial(l)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	k := &Keeper{
		label: l, pods: p, clk: clk, every: every, say: say, stop: stop, ended: make(chan struct{}),
		changed: make(chan struct{}), settled: make(chan struct{}), abort: func() {},
	}
	go k.run(ctx)
	return k, nil
}

// Lead has the label put on. It doesn't block.
func (k *Keeper) Lead(t Term) { k.change(func() { k.want = &t }) }

// Leave has the label taken off, and blocks until it is off or ctx is done. After that the keeper
// still tries.
func (k *Keeper) Leave(ctx context.Context) {
	settled := k.change(func() { k.want = nil })
	select {
	case <-settled:
	case <-ctx.Done():
	case <-k.ended:
	}
}

// Doubt has the label taken off while yes, for a term whose renewals fail. It doesn't block.
func (k *Keeper) Doubt(yes bool) {
	k.mu.Lock()
	same := k.doubt == yes
	k.mu.Unlock()
	if !same {
		k.change(func() { k.doubt = yes })
	}
}

// State returns whether this process has put the label on the pod, or may have, and why the label
// isn't as it is to be.
func (k *Keeper) State() (set bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.set, k.err
}

// Close takes the label off, and ends the keeper. It blocks until the API server has answered, for
// [Limit] at most.
func (k *Keeper) Close() {
	ctx, cancel := clock.WithTimeout(context.Background(), k.clk, Limit)
	defer cancel()
	k.Leave(ctx)
	k.stop()
	<-k.ended
}

// change changes what is wanted, and returns what is closed when that is so.
func (k *Keeper) change(f func()) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
	k.abort()
	close(k.changed)
	k.changed = make(chan struct{})
	if closed(k.settled) { // else it is the one that others wait for, too
		k.settled = make(chan struct{})
	}
	return k.settled
}

// run makes the label what it is to be, again and again, until ctx is done.
func (k *Keeper) run(ctx context.Context) {
	defer close(k.ended)
	rest := leastRest
	for ctx.Err() == nil {
		k.mu.Lock()
		want, changed := k.want, k.changed
		if k.doubt {
			want = nil
		}
		try, cancel := clock.WithTimeout(ctx, k.clk, Limit)
		k.abort = cancel
		k.mu.Unlock()

		again, err := k.once(try, want)
		broken := closed(changed)
		cancel()
		k.mu.Lock()
		k.set = k.pods.maybe
		k.mu.Unlock()
		if broken {
			rest = leastRest
			continue
		}
		k.note(err)
		switch {
		case err != nil:
			again, rest = rest, min(2*rest, mostRest)
		default:
			rest = leastRest
			k.mu.Lock()
			if k.changed == changed && !closed(k.settled) {
				close(k.settled)
			}
			k.mu.Unlock()
		}
		wait(ctx, k.clk, changed, again)
	}
}

// once makes the label what it is to be, and returns when to look again.
func (k *Keeper) once(ctx context.Context, want *Term) (time.Duration, error) {
	if want != nil && want.Check() == nil {
		return k.every, k.pods.put(ctx, *want)
	}
	if want != nil { // its end is about to be told
		return k.every, k.pods.remove(ctx)
	}
	return idle, k.pods.remove(ctx)
}

// note keeps what came of it, and says what is new.
func (k *Keeper) note(err error) {
	k.mu.Lock()
	before := k.err
	k.err = err
	k.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		k.say(fmt.Sprintf("label %s=%s: %v", k.label.Key, k.label.Value, err))
	case err == nil && before != nil:
		k.say(fmt.Sprintf("label %s=%s: as it is to be again", k.label.Key, k.label.Value))
	}
}

// wait blocks until c is closed, d has passed or ctx is done.
func wait(ctx context.Context, clk clock.Clock, c <-chan struct{}, d time.Duration) {
	timer := clock.NewTimer(clk, d)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// errLater says that another pod has the label for a later term.
var errLater = errors.New("the term is over: another pod has the label for a later one")
