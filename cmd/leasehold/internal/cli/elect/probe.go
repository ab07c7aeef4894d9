package elect

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
)

// probe asks a command for the shell a question again and again: yes is the exit code 0. Whoever
// asks it doesn't wait, and gets the latest answer, which is no if there is none from the last
// while.
type probe struct {
	clk     clock.Clock
	command string
	env     []string
	limit   time.Duration // for one run of the command; an answer counts for three of them
	news    func(yes bool, why error)

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	running bool
	known   bool // it has answered
	yes     bool
	at      clock.Instant
}

// errProbeLate says that a command has not answered in time.
var errProbeLate = errors.New("it has not ended in time")

func newProbe(clk clock.Clock, command string, env []string, limit time.Duration, news func(yes bool, why error)) *probe {
	p := &probe{clk: clk, command: command, env: env, limit: limit, news: news}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// close ends the command if it runs, and waits for that.
func (p *probe) close() {
	p.stop()
	p.wg.Wait()
}

// ask returns the latest answer, and has the command run for the next one.
func (p *probe) ask() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running && p.ctx.Err() == nil {
		p.running = true
		p.wg.Go(func() { p.run(p.ctx) })
	}
	return p.yes && p.clk.Now().Sub(p.at) < 3*p.limit
}

// run runs the command and takes note of its answer. It blocks for the limit at most.
func (p *probe) run(ctx context.Context) {
	limited, cancel := clock.WithTimeout(ctx, p.clk, p.limit)
	defer cancel()
	err := p.once(limited)
	if ctx.Err() != nil {
		return
	}
	if limited.Err() != nil {
		err = errProbeLate
	}
	p.mu.Lock()
	news := !p.known || p.yes != (err == nil)
	p.running, p.known, p.yes, p.at = false, true, err == nil, p.clk.Now()
	p.mu.Unlock()
	if news {
		p.news(err == nil, err)
	}
}

func (p *probe) once(ctx context.Context) error {
	argv := shell(p.command)
	cmd := exec.CommandContext(ctx, argv[0])
	cmd.Args, cmd.Env, cmd.Stdout, cmd.Stderr = argv[1:], p.env, os.Stderr, os.Stderr
	cmd.WaitDelay = time.Second
	whole(cmd)
	return cmd.Run()
}

// askEligible has --eligible-if decide whether this candidate may lead. It blocks until there is a
// first answer.
func (e *elector) askEligible(ctx context.Context) *probe {
	p := e.probe(e.opts.eligibleIf, func(yes bool, why error) {
		if yes {
			e.words.Say("%s: eligible", e.name)
		} else {
			e.words.Say("%s: not eligible: --eligible-if: %v", e.name, why)
		}
	})
	p.run(ctx)
	e.rules.Eligible = p.ask
	return p
}

// askIdle has --idle-if decide when this candidate gives way.
func (e *elector) askIdle() *probe {
	p := e.probe(e.opts.idleIf, func(yes bool, why error) {
		if yes {
			e.words.Say("%s: idle", e.name)
		} else {
			e.words.Say("%s: a candidate that is preferred has to wait: --idle-if: %v", e.name, why)
		}
	})
	e.rules.FailBack.Idle = p.ask
	return p
}

func (e *elector) probe(command string, news func(yes bool, why error)) *probe {
	own := []string{hold.EnvName + "=" + e.name, hold.EnvStore + "=" + e.url}
	return newProbe(e.a.Clock, command, hold.Environment(own), e.timing.TTL/3, news)
}
