package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Marks keep the high-water mark of each resource where it survives whatever the resource survives.
// Those of package filemarks are in a file.
type Marks interface {
	// Load returns the mark of a resource; for an unknown one, the zero Mark.
	Load(ctx context.Context, resource string) (Mark, error)
	// Save makes m the mark of a resource. It returns nil only when m is durable.
	Save(ctx context.Context, resource string, m Mark) error
}

// Offline is a [Guard] that remembers, for each resource, the highest token that it has admitted,
// with its holder. It asks no server, so it works when the store of leases can't be reached. It
// writes once for each new token, before the first request of that token is admitted, and never for
// another request.
//
// It admits any first token of an unknown name. So a client that may choose the name of a request
// chooses its mark, and adds one to the marks. Make sure that the name is the one that guards the
// resource, by [Sequencer.Of], or by the option Name of package fence/fencehttp.
//
// One Offline guards a resource: a second one, in another process, would know nothing of what the
// first admits. It has no goroutines and needs no Close. All methods may be called from any
// goroutine.
type Offline struct {
	marks Marks

	mu        sync.Mutex
	resources map[string]*resource
	// Resources to remember: those that are in use stay, the others' marks can be loaded again.
	most int
}

// remembered is how many resources an [Offline] remembers when few of them are in use.
const remembered = 10_000

// resource is one guarded resource, from its first request on.
type resource struct {
	mu    sync.Mutex
	gone  bool // forgotten: another one has its place
	known bool // mark is loaded
	mark  Mark
	users map[*user]struct{} // requests under way in Do, all of the mark's term
	idle  chan struct{}      // closed when the last user has ended; nil when there is none
	// Closed when a new term has been let in, or not; nil when none is coming.
	taking chan struct{}
}

// user is a request under way.
type user struct{ cancel context.CancelCauseFunc }

// NewOffline returns a guard that keeps its marks in marks.
func NewOffline(marks Marks) (*Offline, error) {
	if marks == nil {
		return nil, errors.New("offline guard: marks is nil")
	}
	return &Offline{marks: marks, resources: map[string]*resource{}, most: remembered}, nil
}

// Check is [Guard.Check]. The resource is the lease's name. What can't be a sequencer is an error
// that matches [ErrMalformed].
func (o *Offline) Check(ctx context.Context, s Sequencer) error {
	return o.enter(ctx, s, nil)
}

// Do calls f if the request may continue, and returns the result of f. Otherwise it returns the
// error of Check, and doesn't call f. When a request of a later term arrives, the context of f is
// cancelled with a *[StaleError], and that request waits for f to return. So nothing that f does
// comes after anything of a later term. Requests of one term run in parallel.
func (o *Offline) Do(ctx context.Context, s Sequencer, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u := &user{cancel}
	if err := o.enter(ctx, s, u); err != nil {
		return err
	}
	defer o.leave(s.Name, u)
	return f(ctx)
}

// enter admits a request, and counts it as one under way if u is not nil.
func (o *Offline) enter(ctx context.Context, s Sequencer, u *user) error {
	for {
		r := o.lock(s.Name)
		if r.taking == nil && r.known {
			next, err := r.mark.Admit(s.Name, s.Holder, s.Token)
			if err != nil || next == r.mark {
				if err == nil {
					r.add(u)
				}
				r.mu.Unlock()
				return err
			}
		}
		// 0 is for the mark to refuse: nobody has presented a token.
		if err := s.Valid(); err != nil && s.Token != 0 {
			r.mu.Unlock()
			return err
		}
		taking, idle := r.taking, r.idle
		if taking == nil {
			r.taking = make(chan struct{})
			for other := range r.users {
				other.cancel(&StaleError{Name: s.Name, Got: r.mark.Token, Current: s.Token, Holder: s.Holder})
			}
		}
		r.mu.Unlock()
		if taking == nil {
			return o.take(ctx, r, s, u, idle)
		}
		select {
		case <-taking:
		case <-ctx.Done():
			return unsettled(s, context.Cause(ctx))
		}
	}
}

// take lets a new term in: when the requests of the one before have returned, and the mark is
// durable.
func (o *Offline) take(ctx context.Context, r *resource, s Sequencer, u *user, idle chan struct{}) (err error) {
	mark, known := r.mark, r.known // nobody else changes them while taking is set
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.mark, r.known = mark, known
		if err == nil {
			r.add(u)
		}
		close(r.taking)
		r.taking = nil
	}()
	if !known {
		if mark, err = o.marks.Load(ctx, s.Name); err != nil {
			mark = Mark{}
			return fmt.Errorf("%s: its mark can't be read: %w", s.Name, err)
		}
		known = true
	}
	next, err := mark.Admit(s.Name, s.Holder, s.Token)
	if err != nil || next == mark {
		return err
	}
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			return unsettled(s, context.Cause(ctx))
		}
	}
	// If this fails, the mark may be stored all the same. Then it is refused what is admitted now,
	// after a restart: no harm.
	if err := o.marks.Save(ctx, s.Name, next); err != nil {
		return fmt.Errorf("%s: the mark of token %d can't be stored: %w", s.Name, s.Token, err)
	}
	mark = next
	return nil
}

func (r *resource) add(u *user) {
	if u == nil {
		return
	}
	if r.users == nil {
		r.users = map[*user]struct{}{}
	}
	if len(r.users) == 0 {
		r.idle = make(chan struct{})
	}
	r.users[u] = struct{}{}
}

func (o *Offline) leave(name string, u *user) {
	r := o.lock(name) // the same one: it is in use
	defer r.mu.Unlock()
	delete(r.users, u)
	if len(r.users) == 0 {
		close(r.idle)
		r.idle = nil
	}
}

// lock returns the resource of that name, locked.
func (o *Offline) lock(name string) *resource {
	for {
		r := o.resource(name)
		r.mu.Lock()
		if !r.gone {
			return r
		}
		r.mu.Unlock()
	}
}

func (o *Offline) resource(name string) *resource {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.resources[name]
	if r == nil {
		if len(o.resources) >= o.most {
			o.forget()
		}
		r = &resource{}
		o.resources[name] = r
	}
	return r
}

// forget drops every resource that nobody uses.
func (o *Offline) forget() {
	for name, r := range o.resources {
		r.mu.Lock()
		if r.taking == nil && len(r.users) == 0 {
			r.gone = true
			delete(o.resources, name)
		}
		r.mu.Unlock()
	}
	o.most = max(o.most, 2*len(o.resources)) // not again for each that comes while all are in use
}
