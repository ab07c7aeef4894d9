package server

import (
	"sync"
	"time"

	"github.com/leasehold/leasehold/internal/api"
)

// quota bounds how many requests of each caller wait, or watch, at a time.
type quota struct {
	most int

	mu sync.Mutex
	of map[string]int // by caller; without an entry, none
}

func newQuota(most int) *quota { return &quota{most: most, of: map[string]int{}} }

// enter counts a request of who, until leave is called. It returns a problem when there are as many
// as there may be.
func (q *quota) enter(who string) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of[who] >= q.most {
		p := api.NewProblem(api.CodeTooMany, "%s has %d requests that wait or watch: want one of them to end first", who, q.most)
		p.Field = "wait"
		return nil, p
	}
	q.of[who]++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.of[who]--; q.of[who] == 0 {
			delete(q.of, who)
		}
	}, nil
}

// enterFor is enter for the "wait" of a request, which is 0 to Options.MaxWait, and returns it.
func (s *Server) enterFor(c *call, given *api.Seconds) (wait time.Duration, leave func(), err error) {
	if wait, err = within("wait", given, 0, 0, s.opts.MaxWait); err == nil {
		leave, err = s.enter(c, wait)
	}
	return wait, leave, err
}

// enter counts a request that waits, until leave is called; one that doesn't wait it lets by.
func (s *Server) enter(c *call, wait time.Duration) (leave func(), err error) {
	if wait <= 0 {
		return func() {}, nil
	}
	return s.waiting.enter(c.payer)
}
