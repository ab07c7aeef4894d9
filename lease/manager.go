package lease

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/internal/sessions"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
)

// Manager acquires leases in one store, in the name of one owner: this process. It is safe for
// concurrent use.
type Manager struct {
	run    drive.Runner
	opts   Options
	timing protocol.Timing
	clk    clock.Clock
	owner  string
	info   map[string]string
	events *dispatcher // nil when nobody observes them

	ctx  context.Context // done when the manager is closed
	stop context.CancelFunc
	wg   sync.WaitGroup

	suppose bool            // a name that isn't known is supposed to be new
	follows bool            // a waiter for a name follows the session that keeps it
	memory  *drive.Memory   // of names that aren't held here
	book    *sightings.Book // keeps what it sees for other processes; may be nil
	watch   *sessions.Watch // of those who are members of names of other kinds

	mu     sync.Mutex
	closed bool
	asleep map[*keeper]struct{} // whose leases Close has to end
}

// NewManager returns a manager of leases in st, which the manager doesn't own. If the options'
// timings are unsafe, it returns an error that shows the arithmetic. NewManager does no I/O. The
// caller closes the manager after use.
func NewManager(st store.Store, opts Options) (*Manager, error) {
	if st == nil {
		return nil, errors.New("lease: NewManager needs a store")
	}
	if err := opts.check(st); err != nil {
		return nil, err
	}
	if opts.Clock == nil {
		opts.Clock = clock.System()
	}
	owner, info := newOwner(opts.Name)
	maps.Copy(info, opts.Info)
	props := store.Describe(st)
	m := &Manager{
		run: drive.Runner{Store: st, Clock: opts.Clock, HTTP: props.OverHTTP}, opts: opts, timing: opts.timing(), clk: opts.Clock, owner: owner, info: info,
		memory: &drive.Memory{}, asleep: map[*keeper]struct{}{}, suppose: props.CheapRefusal, follows: props.CheapWait,
	}
	m.run.Go = m.start
	m.events = newDispatcher(opts.OnEvent)
	if !opts.Outlived {
		m.run.Own = owner
	}
	if opts.Fencing != store.FencingUnknown {
		m.run.Worth = func() error { return opts.checkFencing(store.Describe(st)) }
	}
	if !props.Age { // else nothing has to be kept
		m.book = opts.Sightings
	}
	m.watch = sessions.NewWatch(m, m.book)
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m, nil
}

// Holder returns the id under which this manager holds names: [name/]host/pid/random.
func (m *Manager) Holder() string { return m.owner }

// Close ends every lease that is still held: it cancels the lease's context, and the manager renews
// no more. Close doesn't release the leases, since work under them may still be running. To free
// names at once, release them before.
//
// Close blocks until the manager's goroutines have ended, and until [Options.OnEvent] has been
// called for the end of each lease and has returned. After that OnEvent is not called. Closing
// twice is no error.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	asleep := m.asleep
	m.asleep = nil
	m.mu.Unlock()
	m.stop()
	for k := range asleep {
		k.sleep()
		k.l.end(CauseClosed, ErrClosed)
	}
	m.wg.Wait()
	m.events.close()
	return nil
}

// start runs f in a goroutine that Close waits for. It reports false, and doesn't, when the manager
// is closed.
func (m *Manager) start(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.wg.Go(f)
	return true
}
