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

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 15 * time.Second

// world is one database and the candidates on it, in virtual time. It sees who leads, and that no two do.
type world struct {
	t  *testing.T
	db *memory.DB
	st store.Store

	ageless bool // the store of those who come vouches for no Age
	cheap   bool // its Waits are cheap, and it vouches for no Age

	mu      sync.Mutex
	leading map[string]election.Term // by candidate, while OnStartedLeading runs
	story   []string
	errs    []string // that candidates were told of
	last    fence.Token
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{Clock: clocktest.New(0)})
		w := &world{t: t, db: db, st: db.Open(), leading: map[string]election.Term{}}
		defer w.st.Close()
		f(t, w)
	})
}

// process is one candidate.
type process struct {
	name string
	w    *world
	clk  *clocktest.Clock
	m    *lease.Manager
	net  *faulty.Store
	stop context.CancelCauseFunc
	done chan struct{}
	err  error

	mu      sync.Mutex
	cut     bool
	plan    faulty.Plan // of what is not cut; may be nil
	trace   []string    // of the last term: how it ended
	stuck   []error
	leaders []string
	work    func(ctx context.Context, term election.Term) // what leading is; until its context ends when nil
}

// candidate starts one.
func (w *world) candidate(name string, opts election.Options, change ...func(*process)) *process {
	w.t.Helper()
	p := &process{name: name, w: w, clk: clocktest.New(0), done: make(chan struct{})}
	for _, f := range change {
		f(p)
	}
	st := store.Store(w.db.Open())
	if w.ageless || w.cheap {
		st = faulty.Ageless(st)
	}
	if w.cheap {
		st = cheap{st}
	}
	p.net = faulty.Wrap(st, func(op faulty.Op) faulty.Fault {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.plan != nil && !p.cut {
			return p.plan(op)
		}
		return faulty.Fault{Drop: p.cut, Delay: 5 * time.Millisecond}
	})
	var err error
	if p.m, err = lease.NewManager(p.net, lease.Options{TTL: ttl, Clock: p.clk, Name: name}); err != nil {
		w.t.Fatal(err)
	}
	opts.Name = name
	ctx, stop := context.WithCancelCause(w.t.Context())
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
	w.t.Cleanup(func() {
		p.end()
		if err := errors.Join(p.m.Close(), p.net.Close()); err != nil {
			w.t.Error(err)
		}
	})
	return p
}

// end has the candidate stop, and waits for it.
func (p *process) end() {
	p.stop(errEnd)
	<-p.done
}

var errEnd = errors.New("the test ends")

func (p *process) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

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
		w.t.Errorf("%s leads, and its term is over", p.name)
	}
	for other, t := range w.leading {
		if t.Check() == nil {
			w.t.Errorf("%s leads while %s does", p.name, other)
		}
	}
	if term.Token <= w.last {
		w.t.Errorf("token %d after %d", term.Token, w.last)
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
			w.t.Errorf("%s: the context ended after the validity", p.name)
		}
		if errors.Is(context.Cause(ctx), election.ErrExpiring) && time.Since(began) == 0 {
			w.t.Errorf("%s: the term was about to expire when it began", p.name)
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
	w.t.Helper()
	l, err := election.Current(w.t.Context(), w.st, "job")
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) expect(want string) {
	w.t.Helper()
	if got := w.told(); got != want {
		w.t.Errorf("%q, want %q", got, want)
	}
}
