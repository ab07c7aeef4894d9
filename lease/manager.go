package lease

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/store"
)

// Manager acquires leases in one store, in the name of one owner: this process. It is safe for concurrent use.
type Manager struct {
	st     store.Store
	opts   Options
	timing rules.Timing
	clk    clock.Clock
	owner  string
	info   map[string]string

	ctx  context.Context // done when the manager is closed
	stop context.CancelFunc
	wg   sync.WaitGroup

	suppose bool // a name that isn't known is supposed to be new

	mu     sync.Mutex
	closed bool
	memory map[string]recollection // what was last seen of names that aren't held here
	asleep map[*keeper]struct{}    // whose leases Close has to end
}

// recollection is what outlives one attempt at a name: the observation, so that an abandoned lease is noticed by callers who
// each try only once, and the nonces of terms that were given up.
type recollection struct {
	seen, session rules.Seen // session: of the record that keeps the name's record alive
	mine          []string
}

// maxMemory bounds the names remembered. One that is forgotten costs a read, or a wait of one TTL, not safety.
const maxMemory = 4096

// NewManager returns a manager of leases in st, which it doesn't own. It returns an error that shows the arithmetic when
// the options' timings are unsafe. It does no I/O. Close it when it is done with.
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
	m := &Manager{
		st: st, opts: opts, timing: opts.timing(), clk: opts.Clock, owner: owner, info: info,
		memory: map[string]recollection{}, asleep: map[*keeper]struct{}{}, suppose: store.Describe(st).CheapRefusal,
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m, nil
}

// Owner returns the id under which this manager holds names: [name/]host/pid/random.
func (m *Manager) Owner() string { return m.owner }

// Close ends every lease that is still held: its context is cancelled and it is not renewed any more. It is not released
// either, since work under it may still be going on; release first what is to be free at once. Close waits for the
// manager's goroutines. Closing twice is no error.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	asleep := m.asleep
	m.asleep = nil
	m.mu.Unlock()
	m.stop()
	for k := range asleep {
		k.sleep()
		k.l.end(Closed, ErrClosed)
	}
	m.wg.Wait()
	return nil
}

// start runs f in a goroutine that Close waits for. It reports false, and doesn't, when the manager is closed.
func (m *Manager) start(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.wg.Go(f)
	return true
}

func (m *Manager) env() rules.Env {
	return rules.Env{Now: m.clk.Now(), Wall: m.clk.Wall(), Nonce: newNonce, Jitter: rand.Float64()}
}

// envIn is env for a lease that s keeps; s may be nil.
func (m *Manager) envIn(s *Session) rules.Env {
	env := m.env()
	if s != nil {
		env.Session = s.hold.until()
	}
	return env
}

func (m *Manager) recall(key string) recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory[key]
}

// remember keeps what an attempt at a name leaves behind. With held, the lease itself knows better.
func (m *Manager) remember(h *rules.Hold, held bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if held {
		delete(m.memory, h.Key)
		return
	}
	if len(m.memory) >= maxMemory {
		for key := range m.memory { // any one
			delete(m.memory, key)
			break
		}
	}
	m.memory[h.Key] = recollection{seen: h.Seen(), session: h.SeenSession(), mine: lastOf(h.Orphans())}
}

// lastOf bounds the nonces remembered of one name.
func lastOf(nonces []string) []string {
	const most = 16
	return nonces[max(0, len(nonces)-most):]
}

// request carries out a read, a write or a wait.
func (m *Manager) request(ctx context.Context, act rules.Action) (store.Record, error) {
	ctx, cancel := clock.WithDeadline(ctx, m.clk, act.Until)
	defer cancel()
	switch act.Kind {
	case rules.Read:
		return store.Load(ctx, m.st, act.Key)
	case rules.Write:
		return m.st.Put(ctx, act.Rec)
	default:
		return store.Wait(ctx, m.st, act.Key, act.Version)
	}
}

// do carries out one action of h, tells h what came of it, and returns how the world was then. It blocks; ctx ends it.
func (m *Manager) do(ctx context.Context, h *rules.Hold, s *Session, act rules.Action) rules.Env {
	switch act.Kind {
	case rules.Sleep:
		_ = clock.Sleep(ctx, m.clk, act.Until.Sub(m.clk.Now()))
		h.Woke()
	case rules.Read, rules.Write, rules.Wait:
		rec, err := m.request(ctx, act)
		env := m.envIn(s)
		m.tell(h, env, act, rec, err)
		return env
	}
	return m.envIn(s)
}

// tell tells h what came of an action.
func (m *Manager) tell(h *rules.Hold, env rules.Env, act rules.Action, rec store.Record, err error) {
	switch {
	case act.Kind == rules.Write:
		h.Wrote(env, rec, err)
	case act.Kind == rules.Wait && err != nil && env.Now >= act.Until:
		h.Woke() // nothing changed
	default:
		h.Read(env, act.Key, rec, err)
	}
}

// leave drives a hold that was told to stop until it has ended, and remembers what it leaves behind. The world is as env says.
func (m *Manager) leave(ctx context.Context, h *rules.Hold, env rules.Env) error {
	for {
		act := h.Next(env)
		if h.Phase == rules.Ended {
			m.remember(h, false)
			return h.Err
		}
		if ctx.Err() != nil {
			m.remember(h, false)
			return store.Unknown(h.Key, context.Cause(ctx))
		}
		env = m.do(ctx, h, nil, act)
	}
}
