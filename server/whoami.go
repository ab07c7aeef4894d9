package server

import (
	"github.com/leasehold/leasehold/internal/api"
)

// Actions returns every action that there is.
func Actions() []Action {
	return []Action{Read, Acquire, Break, Handoff, Pause, Assign, Metrics, Records}
}

// whoami tells a caller whom it is taken for, and what it may do to a name, or to all names of a
// prefix: so that a page need not offer what is refused. Nothing is allowed by it: each request is
// judged by itself.
func (s *Server) whoami(c *call) (any, error) {
	name := c.r.URL.Query().Get("name")
	if name == "" {
		name = "*"
	}
	me := api.Whoami{Caller: c.caller.Name(), Name: name, May: []string{}}
	for _, action := range Actions() {
		if c.caller.May(action, name) {
			me.May = append(me.May, string(action))
		}
	}
	return me, nil
}
