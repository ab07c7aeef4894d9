package election_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
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

	mu      sync.Mutex
	leading map[string]election.Term // by candidate, while OnStartedLeading runs
	story   []string
	last    fence.Token
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{Clock: clock.NewFake(0)})
		w := &world{t: t, db: db, st: db.Open(), leading: map[string]election.Term{}}
		defer w.st.Close()
		f(t, w)
	})
}

// process is one candidate.
type process struct {
	name string
	w    *world
	clk  *clock.Fake
	m    *lease.Manager
	net  *faulty.Store
	stop context.CancelCauseFunc
	done chan struct{}
	err  error

	mu      sync.Mutex
	cut     bool
	stuck   []error
	leaders []string
	work    func(ctx context.Context, term election.Term) // what leading is; until its context ends when nil
}

// candidate starts one.
func (w *world) candidate(name string, opts election.Options, change ...func(*process)) *process {
	w.t.Helper()
	p := &process{name: name, w: w, clk: clock.NewFake(0), done: make(chan struct{})}
	for _, f := range change {
		f(p)
	}
	p.net = faulty.Wrap(w.db.Open(), func(faulty.Op) faulty.Fault {
		p.mu.Lock()
		defer p.mu.Unlock()
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
			OnStoppedLeading: func() { w.tell("%s stopped", name) },
			OnNewLeader: func(l election.Leader) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.leaders = append(p.leaders, strings.SplitN(l.Owner, "/", 2)[0])
			},
			OnStuck: func(_ election.Term, cause error) {
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

func (p *process) lead(ctx context.Context, term election.Term) {
	w := p.w
	w.mu.Lock()
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
	w.tell("%s leads", p.name)
	if p.work != nil {
		p.work(ctx, term)
	} else {
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), election.ErrExpiring) && term.Check() != nil {
			w.t.Errorf("%s: the context ended after the validity", p.name)
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
	l, err := election.Now(w.t.Context(), w.st, "job")
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

func TestLeaderDies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		b := w.candidate("b", election.Options{})
		time.Sleep(time.Minute)
		w.expect("a leads")
		a.setCut(true)
		time.Sleep(2 * ttl)
		w.expect("a stopped, b leads")
		a.setCut(false)
		time.Sleep(time.Minute)
		w.expect("") // it campaigns again, and waits
		b.end()
		time.Sleep(time.Second)
		w.expect("b stopped, a leads")
		if !errors.Is(b.err, errEnd) {
			t.Errorf("%v", b.err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if got := strings.Join(a.leaders, ","); got != "a,b,a" {
			t.Errorf("a saw %s lead", got)
		}
	})
}

// A leader that can't renew is told before its validity ends, and when it doesn't stop, its program is: before it ends, too.
func TestLeaderThatDoesNotStop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release, terms, told := make(chan struct{}), make(chan election.Term, 1), make(chan time.Time, 1)
		a := w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(ctx context.Context, t election.Term) {
				terms <- t
				<-ctx.Done()
				told <- time.Now()
				<-release
			}
		})
		term := <-terms
		time.Sleep(time.Minute)
		a.setCut(true)
		var stuck time.Time
		for term.Check() == nil {
			a.mu.Lock()
			if len(a.stuck) > 0 && stuck.IsZero() {
				stuck = time.Now()
			}
			a.mu.Unlock()
			time.Sleep(10 * time.Millisecond)
		}
		ended, at := time.Now(), <-told
		if stuck.IsZero() || !at.Before(stuck) || !stuck.Before(ended) {
			t.Errorf("told %v, stuck %v, ended %v", at, stuck, ended)
		}
		if early := ended.Sub(at); early < ttl/10-50*time.Millisecond || early > ttl/10+50*time.Millisecond {
			t.Errorf("it was told %v before the end", early)
		}
		a.mu.Lock()
		if len(a.stuck) != 1 || !errors.Is(a.stuck[0], election.ErrExpiring) {
			t.Errorf("%v", a.stuck)
		}
		a.mu.Unlock()
		close(release)
	})
}

// However patient one is with a leader that was told to stop: the end of its validity is the end.
func TestPatienceEndsWithTheValidity(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release, terms := make(chan struct{}), make(chan election.Term, 1)
		a := w.candidate("a", election.Options{StopWithin: time.Hour}, func(p *process) {
			p.work = func(_ context.Context, t election.Term) {
				terms <- t
				<-release
			}
		})
		term := <-terms
		go a.end()
		time.Sleep(10 * time.Minute)
		a.setCut(true)
		for term.Check() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		a.mu.Lock()
		if len(a.stuck) != 1 {
			t.Errorf("when its validity has ended: %v", a.stuck)
		}
		a.mu.Unlock()
		close(release)
	})
}

// What is told to stop keeps the name until it has stopped.
func TestNameIsKeptUntilTheLeaderHasStopped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release := make(chan struct{})
		a := w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(ctx context.Context, _ election.Term) {
				<-ctx.Done()
				<-release
			}
		})
		time.Sleep(time.Second)
		b := w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		go a.end()
		time.Sleep(10 * ttl)
		w.expect("a leads")
		a.mu.Lock()
		if len(a.stuck) != 1 || !errors.Is(a.stuck[0], errEnd) {
			t.Errorf("%v", a.stuck)
		}
		a.mu.Unlock()
		close(release)
		time.Sleep(time.Second)
		w.expect("a stopped, b leads")
		b.end()
		<-a.done
	})
}

func TestReturningIsResigning(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		work := func(p *process) {
			p.work = func(ctx context.Context, _ election.Term) {
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
			}
		}
		w.candidate("a", election.Options{}, work)
		time.Sleep(2*time.Minute + 30*time.Second)
		if got := w.told(); got != "a leads, a stopped, a leads, a stopped, a leads" {
			t.Error(got)
		}
	})
}

func TestPauseAndResume(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		causes := make(chan error, 10)
		a := w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(ctx context.Context, _ election.Term) {
				<-ctx.Done()
				causes <- context.Cause(ctx)
			}
		})
		time.Sleep(time.Second)
		w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		w.told()
		if err := election.Resume(t.Context(), w.st, "job"); !errors.Is(err, election.ErrNotPaused) {
			t.Errorf("%v", err)
		}
		if err := election.SetPause(t.Context(), w.st, "job", "ada", "migration", time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if l := w.leader(); l.Owner != "" {
			t.Errorf("%+v leads", l)
		}
		state, err := election.Read(t.Context(), w.st, "job")
		if err != nil || state.Pause == nil || state.Pause.By != "ada" || state.Pause.Reason != "migration" || len(state.Candidates) != 2 {
			t.Errorf("%+v, %v", state, err)
		}
		time.Sleep(time.Hour)
		if got := w.told(); got != "a stopped" && got != "b stopped" {
			t.Error(got)
		}
		if err := election.Resume(t.Context(), w.st, "job"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if l := w.leader(); l.Owner == "" {
			t.Error("nobody leads after the pause")
		}
		a.end()
		if cause := <-causes; !errors.Is(cause, election.ErrPaused) || !strings.Contains(cause.Error(), "by ada: migration") {
			t.Errorf("%v", cause)
		}
	})
}

// A transfer is one write: the successor leads within a push, and nobody else comes in between.
func TestTransfer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		for _, name := range []string{"b", "c", "d"} {
			w.candidate(name, election.Options{})
			time.Sleep(time.Second)
		}
		w.told()
		l := w.leader()
		if err := election.StepDown(t.Context(), w.st, "job", l.Token-1, "c", "ada"); !errors.Is(err, fence.ErrStale) {
			t.Errorf("another term: %v", err)
		}
		if err := election.StepDown(t.Context(), w.st, "job", l.Token, "x", "ada"); !errors.Is(err, election.ErrNoCandidate) {
			t.Errorf("nobody: %v", err)
		}
		start := time.Now()
		if err := election.StepDown(t.Context(), w.st, "job", l.Token, "c", "ada"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		w.expect("a stopped, c leads")
		if took := time.Since(start); took > time.Second {
			t.Errorf("%v", took)
		}
		now := w.leader()
		if now.Token <= l.Token || !strings.HasPrefix(now.Owner, "c/") {
			t.Errorf("%+v", now)
		}
		// Without a successor anybody else is next.
		if err := election.StepDown(t.Context(), w.st, "job", now.Token, "", "ada"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := w.told(); strings.HasSuffix(got, "c leads") || !strings.HasPrefix(got, "c stopped") {
			t.Error(got)
		}
	})
}

func TestFailBack(t *testing.T) {
	for name, c := range map[string]struct {
		opts   election.Options
		better election.Options
		after  time.Duration // 0: never
	}{
		"never":      {election.Options{}, election.Options{Priority: 5}, 0},
		"after":      {election.Options{FailBack: election.FailBack{After: time.Minute}}, election.Options{Priority: 5}, time.Minute},
		"equal":      {election.Options{FailBack: election.FailBack{After: time.Minute}}, election.Options{}, 0},
		"idle":       {election.Options{FailBack: election.FailBack{Idle: func() bool { return true }}}, election.Options{Priority: 1}, time.Second},
		"busy":       {election.Options{FailBack: election.FailBack{Idle: func() bool { return false }}}, election.Options{Priority: 1}, 0},
		"minimum":    {election.Options{FailBack: election.FailBack{After: time.Second}, MinHold: 3 * time.Minute}, election.Options{Priority: 5}, 170 * time.Second},
		"zone":       {election.Options{Zone: "b", Zones: []string{"a"}, Priority: 9, FailBack: election.FailBack{After: time.Minute}}, election.Options{Zone: "a"}, time.Minute},
		"ineligible": {election.Options{FailBack: election.FailBack{After: time.Minute}}, election.Options{Priority: 5, Eligible: func() bool { return false }}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.candidate("a", c.opts)
				time.Sleep(10 * time.Second)
				w.candidate("b", c.better)
				if c.after != time.Second {
					time.Sleep(time.Second)
					w.expect("a leads")
				}
				if c.after > 2*time.Second {
					time.Sleep(c.after - 3*time.Second)
					w.expect("")
				}
				time.Sleep(20 * time.Second)
				switch c.after {
				case 0:
					time.Sleep(time.Hour)
					w.expect("")
				case time.Second:
					w.expect("a leads, a stopped, b leads")
				default:
					w.expect("a stopped, b leads")
				}
			})
		})
	}
}

func TestEligibility(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		well := true
		w.candidate("a", election.Options{Eligible: func() bool { mu.Lock(); defer mu.Unlock(); return well }})
		time.Sleep(time.Second)
		w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		mu.Lock()
		well = false
		mu.Unlock()
		time.Sleep(ttl)
		w.expect("a leads, a stopped, b leads")
		state, err := election.Read(t.Context(), w.st, "job")
		if err != nil || len(state.Candidates) != 2 || !state.Candidates[0].Ineligible {
			t.Errorf("%+v, %v", state, err)
		}
	})
}

// Those who are gone are no candidates: neither who ended, nor who died.
func TestCandidatesThatAreGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		b, c := w.candidate("b", election.Options{}), w.candidate("c", election.Options{})
		time.Sleep(time.Minute)
		names := func() string {
			state, err := election.Read(t.Context(), w.st, "job")
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, c := range state.Candidates {
				all = append(all, c.Name)
			}
			return strings.Join(all, ",")
		}
		if n := len(names()); n != len("a,b,c") {
			t.Errorf("%s", names())
		}
		b.end()
		c.setCut(true)
		time.Sleep(3 * ttl)
		if names() != "a" {
			t.Errorf("%s", names())
		}
	})
}

func TestObserve(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		clk := clock.NewFake(0)
		var net faulty.Outage
		st := faulty.Wrap(w.db.Open(), net.Plan(nil))
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var seen []string
		var oldest time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			for l, err := range election.Observe(ctx, st, clk, "job", ttl/3) {
				mu.Lock()
				oldest = l.Age
				if err == nil {
					seen = append(seen, strings.SplitN(l.Owner, "/", 2)[0])
				}
				mu.Unlock()
			}
		})
		a := w.candidate("a", election.Options{})
		time.Sleep(time.Minute)
		a.setCut(true)
		time.Sleep(3 * ttl)
		b := w.candidate("b", election.Options{})
		time.Sleep(time.Minute)
		b.end()
		time.Sleep(time.Minute)
		mu.Lock()
		if got := strings.Join(seen, ","); got != ",a,,b," {
			t.Errorf("%s", got)
		}
		mu.Unlock()
		net.Start()
		time.Sleep(time.Minute)
		mu.Lock()
		if oldest < 30*time.Second {
			t.Errorf("what is known has an age of %v after a minute without the store", oldest)
		}
		mu.Unlock()
		net.End()
		cancel()
		wg.Wait()
		st.Close()
	})
}

func TestBadArguments(t *testing.T) {
	m, err := lease.NewManager(memory.New(memory.Options{}), lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	cb := election.Callbacks{OnStartedLeading: func(context.Context, election.Term) {}}
	for what, err := range map[string]error{
		"no manager":     election.Run(t.Context(), nil, "x", cb, election.Options{}),
		"no callback":    election.Run(t.Context(), m, "x", election.Callbacks{}, election.Options{}),
		"no name":        election.Run(t.Context(), m, "", cb, election.Options{}),
		"reserved name":  election.Run(t.Context(), m, ".x", cb, election.Options{}),
		"long name":      election.Run(t.Context(), m, strings.Repeat("x", 250), cb, election.Options{}),
		"wide margin":    election.Run(t.Context(), m, "x", cb, election.Options{StopMargin: 14 * time.Second}),
		"negative":       election.Run(t.Context(), m, "x", cb, election.Options{MinHold: -1}),
		"long zone":      election.Run(t.Context(), m, "x", cb, election.Options{Zone: strings.Repeat("x", 256)}),
		"nobody pauses":  election.SetPause(t.Context(), m.Store(), "x", "", "", time.Now()),
		"nobody leads":   election.StepDown(t.Context(), m.Store(), "x", 1, "", "ada"),
		"bad name there": election.Resume(t.Context(), m.Store(), ""),
	} {
		if err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Whatever the network between the candidates and the store does, no two lead under valid terms at one instant (world.lead checks
// that), and when all is well again somebody leads.
func TestPartitions(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				rng := rand.New(rand.NewPCG(seed, 3))
				var all []*process
				for _, name := range []string{"a", "b", "c"} {
					all = append(all, w.candidate(name, election.Options{Priority: rng.IntN(3), FailBack: election.FailBack{After: time.Duration(rng.IntN(60)) * time.Second}}))
				}
				for range 30 {
					p := all[rng.IntN(3)]
					p.setCut(true)
					time.Sleep(time.Duration(rng.IntN(40)) * time.Second)
					p.setCut(false)
					time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
				}
				time.Sleep(4 * ttl)
				if l := w.leader(); l.Owner == "" {
					t.Error("nobody leads when all is well")
				}
				if n := strings.Count(w.told(), "leads"); n < 4 {
					t.Errorf("only %d terms", n)
				}
			})
		})
	}
}
