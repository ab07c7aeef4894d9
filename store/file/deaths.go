package file

import "sync"

// deaths are the lives whose end is waited for.
type deaths struct {
	store *Store

	mu     sync.Mutex
	byName map[string]*death
}

// death is the end of one life, which a goroutine waits for as long as there are users.
type death struct {
	name  string
	users int           // guarded by deaths.mu
	gone  chan struct{} // closed when the life has ended
	stop  chan struct{} // closed when nobody waits any more
}

// watch returns the death of the life of that name. It is nil if there is nothing to wait for; then
// so is its channel.
func (d *deaths) watch(name string) *death {
	if name == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.byName[name]
	if x == nil {
		x = &death{name: name, gone: make(chan struct{}), stop: make(chan struct{})}
		if !d.store.start(func() { d.attend(x) }) {
			return nil
		}
		d.byName[name] = x
	}
	x.users++
	return x
}

func (d *deaths) leave(x *death) {
	if x == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if x.users--; x.users == 0 {
		delete(d.byName, x.name)
		close(x.stop)
	}
}

// ended returns the channel that tells, nil for nobody's.
func (x *death) ended() <-chan struct{} {
	if x == nil {
		return nil
	}
	return x.gone
}

// attend waits for the end. The FIFO tells when to look; where there is none, and while another
// process keeps the life that was given to it, attend polls.
func (d *deaths) attend(x *death) {
	s := d.store
	for s.standing(x.name) == alive {
		if !awaitEnd(s.wakeDir, x.name, x.stop) || s.standing(x.name) == alive && !sleepUntil(s.clock, lifePoll, x.stop) {
			return
		}
	}
	if s.standing(x.name) == gone {
		close(x.gone)
	}
}
