package server

import (
	"github.com/leasehold/leasehold/internal/api"
)

// Scoped is a caller that can tell on which names it may do something. A [Caller] that implements
// it lets /v1/whoami say so, for people who have to know which prefix is theirs. It decides
// nothing: each request is judged by [Caller.May].
type Scoped interface {
	// Names returns the names on which the caller may do that action: a name, or a prefix with a
	// "*" behind it; none if there is no such name.
	Names(action Action) []string
}

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
	if scoped, ok := c.caller.(Scoped); ok {
		me.Names = map[string][]string{}
		for _, action := range Actions() {
			if names := scoped.Names(action); len(names) > 0 {
				me.Names[string(action)] = names
			}
		}
	}
	return me, nil
}
