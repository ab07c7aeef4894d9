package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = leasetest.TTL

// world sees who leads, and that no two do.
type world struct {
	*leasetest.World
	st    store.Store // of observers and operators
	cheap bool        // its Waits are cheap for candidates that come, and it vouches for no Age

	mu      sync.Mutex
	leading map[string]election.Term // by candidate, while OnStartedLeading runs
	story   []string
	errs    []string // that candidates were told of
	last    fence.Token
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	leasetest.Run(t, func(t *testing.T, of *leasetest.World) {
		w := &world{World: of, st: of.Open(), leading: map[string]election.Term{}}
		defer w.st.Close()
		f(t, w)
	})
}

// process is one candidate.
type process struct {
	*leasetest.Host
	name string
	w    *world
	m    *lease.Manager
	stop context.CancelCauseFunc
	done chan struct{}
	err  error

	mu      sync.Mutex
	plan    faulty.Plan // a delay by default
	trace   []string    // of the last term: how it ended
	stuck   []error
	leaders []string
	work    func(ctx context.Context, term election.Term) // what leading is; until its context ends when nil
}

// candidate starts one.
func (w *world) candidate(name string, opts election.Options, change ...func(*process)) *process {
	w.T.Helper()
	w.Ageless = w.Ageless || w.cheap
	p := &process{Host: w.Host(nil), name: name, w: w, done: make(chan struct{})}
	p.plan = func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: 5 * time.Millisecond} }
	for _, f := range change {
		f(p)
	}
	p.Plan(func(op faulty.Op) faulty.Fault {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.plan(op)
	})
	st := store.Store(p.Net)
	if w.cheap {
		st = cheap{st}
	}
	p.m = p.Manage(st, lease.Options{Name: name})
	opts.Name = name
	ctx, stop := context.WithCancelCause(w.T.Context())
	p.stop = stop
	go func() {
		defer close(p.done)
		p.err = election.Run(ctx, p.m, "job", election.Callbacks{
			OnStartedLeading: p.lead,
			OnStopping:       func(election.Term, error) { p.note("told") },
			OnStoppedLeading: func() { p.note("stopped"); w.tell("%s stopped", name) },
			OnNewLeader: func(l election.Leader) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.leaders = append(p.leaders, strings.SplitN(l.Owner, "/", 2)[0])
			},
			OnError: func(err error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.errs = append(w.errs, fmt.Sprintf("%s: %v", name, err))
			},
			OnStopTimeout: func(_ election.Term, cause error) {
				p.note("stuck")
				p.mu.Lock()
				defer p.mu.Unlock()
				p.stuck = append(p.stuck, cause)
			},
		}, opts)
	}()
	w.T.Cleanup(p.end)
	return p
}

// end has the candidate stop, and waits for it.
func (p *process) end() {
	p.stop(errEnd)
	<-p.done
}

var errEnd = errors.New("the test ends")

func (p *process) note(event string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trace = append(p.trace, event)
}

// traced returns the events of the last term so far.
func (p *process) traced() string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.trace, ",")
}

func (p *process) lead(ctx context.Context, term election.Term) {
	w := p.w
	w.mu.Lock()
	if term.Check() != nil {
		w.T.Errorf("%s leads, and its term is over", p.name)
	}
	for other, t := range w.leading {
		if t.Check() == nil {
			w.T.Errorf("%s leads while %s does", p.name, other)
		}
	}
	if term.Token <= w.last {
		w.T.Errorf("token %d after %d", term.Token, w.last)
	}
	w.last = term.Token
	w.leading[p.name] = term
	w.mu.Unlock()
	p.mu.Lock()
	p.trace = nil
	p.mu.Unlock()
	w.tell("%s leads", p.name)
	began := time.Now()
	if p.work != nil {
		p.work(ctx, term)
	} else {
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), election.ErrExpiring) && term.Check() != nil {
			w.T.Errorf("%s: the context ended after the validity", p.name)
		}
		if errors.Is(context.Cause(ctx), election.ErrExpiring) && time.Since(began) == 0 {
			w.T.Errorf("%s: the term was about to expire when it began", p.name)
		}
	}
	w.mu.Lock()
	delete(w.leading, p.name)
	w.mu.Unlock()
}

func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

// told returns the story since it was asked for last.
func (w *world) told() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := strings.Join(w.story, ", ")
	w.story = nil
	return s
}

func (w *world) leader() election.Leader {
	w.T.Helper()
	l, err := election.Current(w.T.Context(), w.st, "job")
	if err != nil {
		w.T.Fatal(err)
	}
	return l
}

func (w *world) expect(want string) {
	w.T.Helper()
	if got := w.told(); got != want {
		w.T.Errorf("%q, want %q", got, want)
	}
}
