//go:build linux

package versions

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

var engines = []string{"file", "etcd", "postgres"}

// forEnv is set by scripts/versions: how long versions share a store.
const forEnv = "LEASEHOLD_VERSIONS_FOR"

// lasts is how long versions share a store, a few seconds by default.
func lasts(t *testing.T) time.Duration {
	text := os.Getenv(forEnv)
	if text == "" {
		return 8 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		t.Fatalf("%s=%q: want a duration of a second or more, such as 60s", forEnv, text)
	}
	return d
}

// ttl is longer than what a busy machine is late by.
const ttl = "5s"

// load has every version take a name, run a job, and give it back, again and again: an unfair lock, a fair one, and values of a
// pool; and make ids.
type load struct {
	*place
	clk clock.Clock

	mu    sync.Mutex
	ids   map[string]string // id → the version that made it
	calls map[string]int    // by version: those that succeeded
	kills int
}

func newLoad(p *place) *load {
	return &load{place: p, clk: clock.System(), ids: map[string]string{}, calls: map[string]int{}}
}

// strike kills commands until ctx ends.
func (l *load) strike(ctx context.Context) {
	for clock.Sleep(ctx, l.clk, 2*time.Second) == nil {
		for !l.kill(ctx) && clock.Sleep(ctx, l.clk, 10*time.Millisecond) == nil {
			// nobody holds it at this moment
		}
	}
}

// waitsForTurn returns a version that hasn't had a turn, or "". A waiter of the oldest one isn't told of the releases of later ones
// on PostgreSQL: it looks every 5 to 10 s.
func (l *load) waitsForTurn() string {
	locks, queue := turns(l.terms(plain)), turns(l.terms(fair))
	for _, v := range l.versions {
		if locks[v.name] == 0 || queue[v.name] == 0 {
			return v.name
		}
	}
	return ""
}

// enough is how many turns at the unfair lock a version has before it leaves the lock to those that have had none: who is told of a
// release always comes before a waiter that looks every 5 to 10 s.
const enough = 3

// stepsAside reports whether v has had enough while another version has had no turn at the unfair lock.
func (l *load) stepsAside(v version) bool {
	had := turns(l.terms(plain))
	return had[v.name] >= enough && slices.ContainsFunc(l.versions, func(other version) bool { return had[other.name] == 0 })
}

// The names of the load. Jobs of a pool's values have names of their own.
const (
	plain = "plain"
	fair  = "fair"
)

// run works until ctx ends.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, v := range l.versions {
		for _, args := range [][]string{
			job("run", plain, "--ttl", ttl), job("run", fair, "--fair", "--ttl", ttl), job("id", "assign", "pool", "--range", "1-2", "--ttl", ttl),
		} {
			all.Go(func() {
				for ctx.Err() == nil {
					if args[1] == plain && l.stepsAside(v) {
						_ = clock.Sleep(ctx, l.clk, 200*time.Millisecond)
						continue
					}
					l.once(ctx, v, args)
					_ = clock.Sleep(ctx, l.clk, 200*time.Millisecond)
				}
			})
		}
		all.Go(func() {
			for ctx.Err() == nil {
				l.makeIDs(ctx, v)
				_ = clock.Sleep(ctx, l.clk, 400*time.Millisecond)
			}
		})
	}
	all.Wait()
}

// once is one call. A loss, code 79, is none that may be; nor is any other failure.
func (l *load) once(ctx context.Context, v version, args []string) {
	_, errs, code := l.call(ctx, v, "150ms", args...)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case code == 0:
		l.calls[v.name]++
	case ctx.Err() != nil, code == -1 && l.kills > 0: // told to end, or killed
	default:
		l.t.Errorf("%s: leasehold %s: exit code %d\n%s", v.name, strings.Join(args, " "), code, errs)
	}
}

func (l *load) makeIDs(ctx context.Context, v version) {
	out, errs, code := l.call(ctx, v, "", "id", "next", "twitter", "-n", "20")
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range strings.FieldsSeq(out) {
		if other, ok := l.ids[id]; ok {
			l.t.Errorf("id %s was made twice: by %s and by %s", id, other, v.name)
		}
		l.ids[id] = v.name
	}
	if code != 0 && ctx.Err() == nil {
		l.t.Errorf("%s: id next: exit code %d\n%s", v.name, code, errs)
	}
}

// kill ends the command that holds the unfair lock with SIGKILL: what it ran ends with it, and a command of some version has the name
// after the TTL at the latest. It reports whether it found one.
func (l *load) kill(ctx context.Context) bool {
	out, _, _ := l.call(ctx, l.versions[len(l.versions)-1], "", "show", plain, "-o", "json")
	var shown struct {
		Info map[string]string `json:"info"`
	}
	if json.Unmarshal([]byte(out), &shown) != nil {
		return false // not held yet
	}
	pid := 0
	if _, err := fmt.Sscan(shown.Info["pid"], &pid); err != nil || pid <= 1 {
		return false // between two terms
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || filepath.Base(exe) != "leasehold" {
		return false // it has ended
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kills++
	return syscall.Kill(pid, syscall.SIGKILL) == nil
}

// Versions share a store: nothing of an earlier term lives beside a later one, no token and no id is given out twice, tokens rise, every
// version has its turns, and nobody loses a lease. An election goes through the hands of all versions, by orders
// of all versions.
func TestVersionsShareAStore(t *testing.T) {
	versions(t) // builds them before time counts
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, engine)
			witness := stalltest.Watch()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := newLoad(p)
			var all sync.WaitGroup
			all.Go(func() { l.run(ctx) })
			all.Go(func() { l.strike(ctx) })
			end := l.clk.Now().Add(lasts(t))
			p.until("each version has its turn", func() bool { return l.clk.Now() >= end && l.waitsForTurn() == "" })
			cancel()
			all.Wait()
			stall, _ := witness()
			t.Logf("%d kills, %d ids; this process was late by %v at most", l.kills, len(l.ids), stall)
			for _, name := range []string{plain, fair, "identity/pool/1", "identity/pool/2"} {
				terms := p.terms(name)
				t.Logf("%s: terms %v; without a job, %s", name, turns(terms), gaps(terms))
			}
		})
	}
}

// candidate is a process that stands for the election, of one version after the other.
type candidate struct {
	name string
	cmd  *exec.Cmd
	errs *os.File
}

// lead is the name of the election.
const lead = "lead"

// stand starts the candidate with a version.
func (p *place) stand(c *candidate, v version) {
	p.t.Helper()
	c.cmd = p.command(context.WithoutCancel(p.t.Context()), v, "", job("elect", lead, "--as", c.name, "--ttl", ttl)...)
	c.cmd.Stderr = c.errs
	if err := c.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.until(c.name+" stands for election", func() bool {
		out, _, _ := p.call(p.t.Context(), v, "", "candidates", lead)
		return strings.Contains(out, c.name+" ")
	})
}

// stop ends the candidate in order.
func (p *place) stop(c *candidate) {
	p.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	_ = c.cmd.Wait()
	if code := c.cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
		p.t.Errorf("candidate %s ended with exit code %d", c.name, code)
	}
}

// until waits for what has to happen soon.
func (p *place) until(what string, ok func() bool) {
	p.t.Helper()
	clk := clock.System()
	for end := clk.Now().Add(lasts(p.t) + time.Minute); !ok(); {
		if clk.Now() > end {
			p.t.Fatalf("it never happened: %s", what)
		}
		if err := clock.Sleep(p.t.Context(), clk, 50*time.Millisecond); err != nil {
			p.t.Fatal(err)
		}
	}
}

// leads returns the latest term of the election.
func (p *place) leads() term {
	p.t.Helper()
	terms := p.terms(lead)
	if len(terms) == 0 {
		return term{}
	}
	return terms[len(terms)-1]
}

// leader returns the candidate that leads.
func (p *place) leader(all []*candidate, v version) *candidate {
	p.t.Helper()
	var found *candidate
	p.until("a candidate leads", func() bool {
		out, _, code := p.call(p.t.Context(), v, "", "observe", lead, "--once", "-o", "json")
		for _, c := range all {
			if code == 0 && strings.Contains(out, `"`+c.name+"/") {
				found = c
			}
		}
		return found != nil
	})
	return found
}

// replace replaces the candidates one by one. Those that don't lead come first, and the leader's term goes on; then the
// leader, which makes one new term.
func (p *place) replace(all []*candidate, with version) {
	p.t.Helper()
	leader := p.leader(all, with)
	before := p.leads()
	for _, c := range all {
		if c != leader {
			p.stop(c)
			p.stand(c, with)
		}
	}
	if now := p.leads(); now.token != before.token || now.to == before.to {
		p.t.Errorf("to %s: the leader was not replaced, and its term did not go on: %+v, then %+v", with.name, before, now)
	}
	p.stop(leader)
	p.until("another candidate leads", func() bool { return p.leads().token > before.token })
	p.stand(leader, with)
	if now := p.leads(); now.who != with.name {
		p.t.Errorf("all were replaced, and %s leads, want %s", now.who, with.name)
	}
}

// order hands the election over by one version, and pauses and resumes it by two others. The terms are in the history, by each version.
func (p *place) order(all []*candidate, round int) {
	p.t.Helper()
	by := func(i int) version { return p.versions[(round+i)%len(p.versions)] }
	leader := p.leader(all, by(0))
	for _, c := range all {
		if c != leader {
			p.say(by(0), "handoff", lead, "--to", c.name)
			break
		}
	}
	before := p.leads()
	p.say(by(1), "pause", lead, "--reason", "a move")
	if out := p.say(by(0), "show", lead); !strings.Contains(out, "a move") {
		p.t.Errorf("%s does not show the pause of %s:\n%s", by(0).name, by(1).name, out)
	}
	p.say(by(2), "resume", lead)
	p.until("a candidate leads after the pause", func() bool { return p.leads().token > before.token })
	terms := p.terms(lead)
	for _, v := range p.versions {
		out := p.say(v, "history", lead)
		for _, t := range terms[max(len(terms)-4, 0):] {
			if !strings.Contains(out, t.token.String()) {
				p.t.Errorf("%s: the history lacks the term %d:\n%s", v.name, t.token, out)
			}
		}
	}
}

// A rolling upgrade and a rollback, while all versions work on the same store. No lease is lost by it, elections keep their terms and their
// history, and the orders of every version reach the candidates of every other.
func TestUpgradeAndRollback(t *testing.T) {
	versions(t)
	for _, engine := range engines {
		if engine != "file" && os.Getenv(forEnv) == "" {
			continue // at length only: what differs by engine is in the other test
		}
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, engine)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := newLoad(p)
			var all sync.WaitGroup
			defer all.Wait()
			defer cancel()
			all.Go(func() { l.run(ctx) })

			var candidates []*candidate
			for _, name := range []string{"east", "north", "west"} {
				errs, err := os.Create(filepath.Join(p.dir, "stderr-"+name))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = errs.Close() }()
				c := &candidate{name: name, errs: errs}
				candidates = append(candidates, c)
				p.stand(c, p.versions[0])
			}
			path := append(slices.Clone(p.versions[1:]), p.versions[0]) // up by each, and back at once
			for round, v := range path {
				p.replace(candidates, v)
				p.order(candidates, round)
			}
			for _, c := range candidates {
				p.stop(c)
				said, err := os.ReadFile(c.errs.Name())
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(said), "lost") {
					t.Errorf("%s lost a lease:\n%s", c.name, said)
				}
			}
			t.Logf("terms of the election: %v; without a job, %s", turns(p.terms(lead)), gaps(p.terms(lead)))
			for _, name := range []string{plain, fair, "identity/pool/1", "identity/pool/2"} {
				p.terms(name)
			}
		})
	}
}
