package shards

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/shardchild"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/shard"
)

// The environment of CMD beside that of `leasehold run`.
const (
	EnvShard = "LEASEHOLD_SHARD"
	EnvSpace = "LEASEHOLD_SPACE"
	EnvFrom  = "LEASEHOLD_SHARD_FROM" // of a hashed space: the first hash
	EnvTo    = "LEASEHOLD_SHARD_TO"   // and the last
)

// task is the command of one slice.
type task struct {
	j        *job
	s        *shard.Slice
	draining chan struct{} // closed by Drain
	once     sync.Once
	done     chan struct{} // closed when no command of it runs, or will

	mu    sync.Mutex
	child *shardchild.Child // the last one; nil before the first
}

// start is called when the slice is this worker's.
func (j *job) start(_ context.Context, s *shard.Slice) error {
	t := &task{j: j, s: s, draining: make(chan struct{}), done: make(chan struct{})}
	j.mu.Lock()
	j.tasks[s] = t // its host may be stopped while it starts, too
	j.mu.Unlock()
	child, err := t.launch()
	if err != nil {
		j.forget(s)
		return hold.StartError(j.argv[0], err)
	}
	j.say(slog.LevelInfo, s, "%s: running (token %d)", j.name(s), s.Token)
	go t.run(child)
	return nil
}

// drain is called when the slice is to leave this worker.
func (j *job) drain(ctx context.Context, s *shard.Slice) {
	t := j.task(s)
	if t == nil {
		return
	}
	j.say(slog.LevelInfo, s, "%s: draining", j.name(s))
	t.once.Do(func() { close(t.draining) })
	select {
	case <-t.done:
	case <-ctx.Done():
	}
}

// stop is called last. The slice is another's as soon as stop has returned.
func (j *job) stop(s *shard.Slice) {
	t := j.task(s)
	if t == nil {
		return // its command could not be started
	}
	<-t.done
	j.forget(s)
	j.say(slog.LevelInfo, s, "%s: stopped", j.name(s))
}

func (j *job) task(s *shard.Slice) *task {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tasks[s]
}

func (j *job) forget(s *shard.Slice) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.tasks, s)
}

// say writes a line about one slice.
func (j *job) say(level slog.Level, s *shard.Slice, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if j.a.Plain() {
		j.words.Log.Log(context.Background(), level, text)
		return
	}
	j.words.Log.LogAttrs(context.Background(), level, text, slog.Any("lease", s.Sequencer()))
}

// launch starts the command, and blocks until it runs.
func (t *task) launch() (*shardchild.Child, error) {
	j, s := t.j, t.s
	sequencer, err := cli.SequencerText(j.keys, s.Sequencer())
	if err != nil {
		return nil, err
	}
	own := []string{
		EnvShard + "=" + s.ID(), EnvSpace + "=" + s.Space, hold.EnvName + "=" + s.Sequencer().Name, hold.EnvToken + "=" + s.Token.String(),
		hold.EnvHolder + "=" + s.Sequencer().Holder, hold.EnvStore + "=" + j.url, fence.EnvVar + "=" + sequencer,
	}
	if s.Name == "" {
		own = append(own, fmt.Sprintf("%s=%016x", EnvFrom, s.From), fmt.Sprintf("%s=%016x", EnvTo, s.To))
	}
	child, err := shardchild.Start(shardchild.Command{
		Path: j.path, Args: j.argv, Env: hold.Environment(own, hold.EnvSlot, EnvFrom, EnvTo), Contain: j.a.Contain(), Timing: j.timing,
		Until: s.ValidUntil(), Proof: j.proof(),
		Tell: func(n supervise.Notice) {
			if n != supervise.Asked {
				j.words.Notice(n, fmt.Sprintf("%s of %s", j.argv[0], s.ID()), s.ValidUntil().Sub(j.a.Clock.Now()))
			}
		},
		Guards: j.words.Guards,
	})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.child = child
	t.mu.Unlock()
	if err := child.Started(s.Context().Done()); err != nil {
		return nil, err
	}
	return child, nil
}

// until tells the host of the command, which may have been stopped.
func (t *task) until(at clock.Instant) {
	t.mu.Lock()
	child := t.child
	t.mu.Unlock()
	if child != nil {
		child.Until(at)
		child.Wake()
	}
}

// run keeps the command running until the slice is to leave.
func (t *task) run(child *shardchild.Child) {
	defer close(t.done)
	var rest hold.Backoff
	for {
		began := t.j.a.Clock.Now()
		if child != nil && !t.await(child) {
			return
		}
		if child != nil {
			status, lost, known := child.Status()
			t.j.say(slog.LevelWarn, t.s, "%s: %s %s", t.j.name(t.s), t.j.argv[0], ended(status, lost, known))
			if t.j.opts.onExit == onExitLeave && !lost && known {
				t.j.end(hold.EndError(status))
				t.rest(clock.NoDeadline)
				return
			}
		}
		pause := rest.Next(t.j.a.Clock.Now().Sub(began))
		if !t.rest(t.j.a.Clock.Now().Add(pause)) {
			return
		}
		var err error
		if child, err = t.launch(); err != nil {
			child = nil
			t.j.say(slog.LevelWarn, t.s, "%s: %s", t.j.name(t.s), cli.OneLine(hold.StartError(t.j.argv[0], err)))
		}
	}
}

// await blocks until the command is gone, and reports whether it ended by itself.
func (t *task) await(child *shardchild.Child) bool {
	term := t.s.Context().Done()
	select {
	case <-child.Gone():
		return !closed(term) && !closed(t.draining)
	case <-term:
	case <-t.draining:
		child.Drain()
		select {
		case <-child.Gone():
			return false
		case <-term:
		}
	}
	child.End()
	<-child.Gone()
	return false
}

// rest blocks until then, and returns false if the slice is to leave before.
func (t *task) rest(until clock.Instant) bool {
	timer := clock.NewTimer(t.j.a.Clock, until.Sub(t.j.a.Clock.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.draining:
	case <-t.s.Context().Done():
	}
	return false
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ended says how a command ended by itself.
func ended(s supervise.Status, lost, known bool) string {
	switch {
	case !known:
		return "was ended, since the process that supervised it was; starting it again"
	case lost:
		return "was ended, since the session was not renewed in time"
	case s.Signal != nil:
		return fmt.Sprintf("was ended by signal %v", s.Signal)
	}
	return fmt.Sprintf("has ended with code %d", s.Code)
}
