package servers

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// engines are the kinds of servers that register has entered, by name.
var engines []*engine

// register enters a kind of server. Each calls it in its own file.
func register(e *engine) *engine {
	at, _ := slices.BinarySearchFunc(engines, e, func(a, b *engine) int { return strings.Compare(a.name, b.name) })
	engines = slices.Insert(engines, at, e)
	return e
}

func (e *engine) start(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, e, opts) }

// Kind is one kind of server that an engine keeps its records on.
type Kind struct{ engine *engine }

// Kinds returns all, by name. Emulators of others are left out.
func Kinds() []Kind {
	var all []Kind
	for _, e := range engines {
		if !e.extra {
			all = append(all, Kind{e})
		}
	}
	return all
}

// Name returns what the kind is called in [Launch] and in scripts/engines.
func (k Kind) Name() string { return k.engine.name }

// Start starts a server, as [Etcd] does.
func (k Kind) Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return start(t, k.engine, opts)
}

// Page returns how the commands of a page call such a server.
func (k Kind) Page() Page { return k.engine.page }

// Page is how the commands of a page call a server, where they do.
type Page struct {
	// What stands for the server's address; nil if commands find the server by Env.
	Address *regexp.Regexp
	// What the real address begins with; "" if that is [Server.URL].
	Scheme string
	// Tools are programs that a page calls and that may be on no PATH: the file that
	// scripts/engines installed, or a script, which begins with #!.
	Tools map[string]string
}

// Store is how the command reaches a store on a server.
type Store struct {
	URL string
	Env []string // NAME=VALUE, beside the URL
	// What `leasehold init` calls what makes the store; "" if nothing has to.
	Init string
}

// Store returns a store on the server. Records of others may be there.
func (s *Server) Store() Store { return s.engine.store(s) }
