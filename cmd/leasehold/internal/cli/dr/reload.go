package dr

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/compat/admiral"
)

// lookAgain is how often the configuration file is read again. Kubernetes takes about a minute to
// bring a ConfigMap that was changed to a pod.
const lookAgain = 10 * time.Second

// reload follows the configuration file. What it says is settled at the start: a lease whose TTL
// or table changes under its holder is two leases. So a change is told, and takes effect when the
// instance starts again, one after the other.
type reload struct {
	s *standIn

	mu   sync.Mutex
	said string // what was told last
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
	line := r.news()
	r.mu.Lock()
	defer r.mu.Unlock()
	if line == r.said && !asked {
		return
	}
	r.said = line
	if line == "" {
		line = "the configuration is that of the start"
	}
	r.s.words.Say("%s: %s", r.s.lease.name(), line)
}

func (r *reload) news() string {
	l := r.s.lease
	if l.path == "" {
		return ""
	}
	now, err := admiral.LoadConfig(l.path)
	if err != nil {
		return "the configuration can't be read, and that of the start stays in force: " + cli.OneLine(err)
	}
	changes := l.read.Differences(now)
	if len(changes) == 0 {
		return ""
	}
	return l.path + " has changed, and that of the start stays in force until this instance is restarted: " + strings.Join(changes, ", ")
}
