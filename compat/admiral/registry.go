package admiral

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// StateChecker finds out whether this instance may write, and sets the state accordingly.
type StateChecker interface {
	// Run keeps s up to date until ctx is done; then s is read-only and Run returns nil. An error
	// means that it can't go on: s is read-only then, too. It blocks. Run it once.
	Run(ctx context.Context, s *State) error
}

// Params are what a [Maker] may use.
type Params struct {
	Config  Config // of the configuration file; the zero Config when none was given
	Options Options

	// Table opens the table that Config names, in Admiral's schema and under Config's role; for
	// [DynamoDB].
	Table func(context.Context, Config) (store.Store, error)
	// Store opens the store that Config.Store names, or a default one when that is ""; for
	// [Leasehold].
	Store func(context.Context, Config) (store.Store, error)
}

// Maker makes a checker. It does no I/O. Its errors name the wrong key or field.
type Maker func(Params) (StateChecker, error)

// The names of the checkers that are always there.
const (
	// Always active, without a lease: for a deployment of one instance.
	NoOP      = "NoOPStateChecker"
	DynamoDB  = "dynamodbbasedstatechecker" // Admiral's table in DynamoDB
	Leasehold = "leasehold"                 // any store of Leasehold's
)

// Registry finds checkers by name, without regard to case. Make one with [Checkers].
type Registry struct {
	makers map[string]Maker  // by name in lower case
	names  map[string]string // as they are written
}

// Checkers returns a registry of the checkers that are always there.
func Checkers() *Registry {
	r := &Registry{makers: map[string]Maker{}, names: map[string]string{}}
	for name, m := range map[string]Maker{NoOP: always, DynamoDB: onTable, Leasehold: onStore} {
		r.put(name, m)
	}
	return r
}

func (r *Registry) put(name string, m Maker) {
	key := strings.ToLower(name)
	r.makers[key], r.names[key] = m, name
}

// Add adds a checker under a name of its own. It is not safe for use while others use r.
func (r *Registry) Add(name string, m Maker) error {
	key := strings.ToLower(name)
	switch {
	case name == "" || m == nil:
		return errors.New("a state checker needs a name and a maker")
	case r.makers[key] != nil:
		return fmt.Errorf("a state checker called %s is there already", r.names[key])
	}
	r.put(name, m)
	return nil
}

// Names returns the names of all checkers, in order.
func (r *Registry) Names() []string { return slices.Sorted(maps.Values(r.names)) }

// Check returns an error that lists the known checkers if none has that name.
func (r *Registry) Check(name string) error {
	if r.makers[strings.ToLower(name)] == nil {
		return fmt.Errorf("admiral_state_checker_name %q: there is no such state checker: known are %s", name, strings.Join(r.Names(), ", "))
	}
	return nil
}

// New makes the checker of that name. An unknown name is the error of [Registry.Check].
func (r *Registry) New(name string, p Params) (StateChecker, error) {
	if err := r.Check(name); err != nil {
		return nil, err
	}
	return r.makers[strings.ToLower(name)](p)
}

func always(Params) (StateChecker, error) { return noOP{}, nil }

// noOP is active as long as it runs.
type noOP struct{}

// Run implements [StateChecker].
func (noOP) Run(ctx context.Context, s *State) error {
	t := s.promote(nil, 0, func(*Status) {})
	<-ctx.Done()
	s.demote(reasonStopped)
	<-t.quiet()
	return nil
}

func onTable(p Params) (StateChecker, error) {
	if err := p.Config.check(DynamoDB); err != nil {
		return nil, err
	}
	return opened(p, "Table", p.Table)
}

func onStore(p Params) (StateChecker, error) {
	if err := p.Config.check(Leasehold); err != nil {
		return nil, err
	}
	return opened(p, "Store", p.Store)
}

func opened(p Params, field string, open func(context.Context, Config) (store.Store, error)) (StateChecker, error) {
	if open == nil {
		return nil, fmt.Errorf("admiral.Params: %s is missing: nothing can open what the configuration names", field)
	}
	cfg := p.Config
	return New(func(ctx context.Context) (store.Store, error) { return open(ctx, cfg) }, cfg, p.Options)
}
