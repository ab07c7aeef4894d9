package dr

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
)

// lookAgain is how often the configuration file is read again. Kubernetes takes about a minute to
// bring a ConfigMap that was changed to a pod.
const lookAgain = 10 * time.Second

// reload follows the configuration file. What it says is settled at the start: a lease whose TTL
// or table changes under its holder is two leases. So a change is told, and takes effect when the
// instance starts again, one after the other. pollSeconds is the exception: no lease depends on it.
type reload struct {
	s *standIn

	mu    sync.Mutex
	said  string // what was told last
	paced paced  // the table that is open; nil for none
	poll  bool   // pollSeconds has changed since the start:
	next  time.Duration
}

// paced is a store whose waiters' pace can be changed.
type paced interface{ PollEvery(most time.Duration) }

// opened tells of a store that was opened, which begins with the pace of the start.
func (r *reload) opened(st store.Store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paced, _ = st.(paced)
	if r.paced != nil && r.poll {
		r.pace()
	}
}

// pace has the table looked at as the file now says. r.mu is held.
func (r *reload) pace() {
	cfg := r.s.lease.cfg
	cfg.Poll = r.next
	r.paced.PollEvery(cfg.Looks(r.s.lease.checker))
}

// follow reads the file from time to time, until ctx ends.
func (r *reload) follow(ctx context.Context) {
	for clock.Sleep(ctx, r.s.a.Clock, lookAgain) == nil {
		r.look(false)
	}
}

// look tells what the file says otherwise than at the start; asked has it told again, or that it is
// the same.
func (r *reload) look(asked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.news()
	if line == r.said && !asked {
		return
	}
	r.said = line
	if line == "" {
		line = "the configuration is that of the start"
	}
	r.s.words.Say("%s: %s", r.s.lease.name(), line)
}

// news is what is to be told. It changes what may change. r.mu is held.
func (r *reload) news() string {
	l := r.s.lease
	if l.path == "" {
		return ""
	}
	now, err := admiral.LoadConfig(l.path)
	if err != nil {
		return "the configuration can't be read, and that of the start stays in force: " + cli.OneLine(err)
	}
	var said []string
	if r.paced != nil {
		before := l.read
		before.Poll = now.Poll
		if changed := l.read.Differences(now); len(changed) > len(before.Differences(now)) {
			said = append(said, changed[len(changed)-1]+" from now on") // the last of the keys
		}
		r.next, r.poll = now.Poll, true
		r.pace()
		l.read = before
	}
	if changes := l.read.Differences(now); len(changes) > 0 {
		said = append(said, "that of the start stays in force until this instance is restarted: "+strings.Join(changes, ", "))
	}
	if len(said) == 0 {
		return ""
	}
	return l.path + " has changed: " + strings.Join(said, "; ")
}
