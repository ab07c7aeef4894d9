package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/internal/wanted"
	"github.com/leasehold/leasehold/store"
)

// Acquire takes a name and returns the lease on it. It blocks while another holder has the name,
// and retries while the store does not answer, until ctx is done. The error then matches ctx's
// cause. If the name was held, the error also matches [ErrHeld] and contains a *[HeldError].
// Acquire takes the name as soon as its holder releases it, or when the holder has shown no sign of
// life for its TTL.
//
// If the name is in use as another kind, Acquire returns a *[store.KindError] at once. An example
// is a semaphore of which a holder has a share.
//
// When ctx ends, a claim may already have reached the store. The manager withdraws that claim in
// the background, or leaves it to expire.
func (m *Manager) Acquire(ctx context.Context, name string, opts ...AcquireOption) (*Lease, error) {
	return m.acquire(ctx, want{key: name}, opts)
}

// TryAcquire is Acquire without waiting. It returns a *[HeldError] if the name is held, and an
// error if the store doesn't answer. TryAcquire remembers what it saw. If nothing proves that an
// abandoned holder is gone, a try that comes a TTL after the first one takes the name. Tries of
// several processes share what they saw by [Options.Sightings].
func (m *Manager) TryAcquire(ctx context.Context, name string, opts ...AcquireOption) (*Lease, error) {
	return m.acquire(ctx, want{key: name, try: true}, opts)
}

// want is what is asked for.
type want struct {
	wanted.Options
	key     string
	session *Session // that is to keep it, or nil
	try     bool     // it doesn't wait
	trace   *AcquireTrace
}

// AcquireOption changes one acquisition; see [WithTTL].
type AcquireOption func(*wanted.Options)

// WithTTL gives one hold a TTL other than [Options.TTL], with the same limits. The other timings
// follow as [NewManager] works them out: those that [Options] leave out are shares of this TTL. An
// acquisition whose timings are unsafe returns an error that shows the arithmetic. 0 stands for the
// manager's TTL. A lease that a [Session] keeps takes no other TTL than the session's.
func WithTTL(ttl time.Duration) AcquireOption { return func(o *wanted.Options) { o.TTL = ttl } }

// changed returns o as the options change it. It is apart from its caller, since its copy of o goes
// to the heap.
func changed(o wanted.Options, opts []AcquireOption) wanted.Options {
	for _, f := range opts {
		f(&o)
	}
	return o
}

// recall returns what is known of a name: from this process, or else from one before.
func (m *Manager) recall(key string) drive.Recollection {
	past := m.memory.Recall(key)
	if past.Seen.Known || m.book == nil {
		return past
	}
	now := m.clk.Now()
	rec := recalled(m.book, key, now)
	if !rec.Known || rec.Rec.Session == "" {
		return drive.Observed(rec, protocol.Seen{})
	}
	return drive.Observed(rec, recalled(m.book, rec.Rec.Session, now))
}

// timingFor returns the timing of a hold of that TTL; 0 for the manager's.
func (m *Manager) timingFor(ttl time.Duration) (protocol.Timing, error) {
	if ttl == 0 {
		return m.timing, nil
	}
	o := m.opts
	o.TTL = ttl
	t := o.timing()
	return t, t.Check()
}

func (m *Manager) acquire(ctx context.Context, w want, opts []AcquireOption) (*Lease, error) {
	w.Kind = store.KindLease
	if len(opts) > 0 {
		w.Options = changed(w.Options, opts)
	}
	if err := keyspace.CheckName(w.key); err != nil {
		return nil, err
	}
	if w.TTL != 0 && w.session != nil {
		return nil, fmt.Errorf("acquire %s under a session with a TTL of %v: the session's TTL is that of all its leases: "+
			"leave WithTTL out, or acquire the name without a session", w.key, w.TTL)
	}
	timing, err := m.timingFor(w.TTL)
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", w.key, err)
	}
	ctx, w.trace = m.traceAcquire(ctx, Acquisition{Name: w.key, Kind: w.Kind, Try: w.try})
	d, before, err := m.pursueWanted(ctx, w, timing, nil)
	if err != nil {
		if other, of := errors.AsType[*store.KindError](err); of && len(other.Members) > 0 {
			gone, failed := m.watch.Gone(ctx, other.Members)
			if failed == nil && gone != nil {
				d, before, err = m.pursueWanted(ctx, w, timing, gone)
			}
		}
	}
	tr := w.trace.outcome(d, before, err)
	if err != nil {
		return nil, err
	}
	return m.begin(d, w.session, tr)
}

// pursueWanted is pursue for what is wanted. Members of a name of another kind whose sessions are
// gone don't count.
func (m *Manager) pursueWanted(ctx context.Context, w want, timing protocol.Timing, gone map[string]bool) (*drive.Driver, store.Record, error) {
	claim := m.claim(w.session)
	claim.Kind, claim.TTL, claim.Info = w.Kind, timing.TTL, w.trace.info(claim.Info)
	d := drive.Want(w.key, claim, timing, w.try, m.recall(w.key))
	d.Hold.Gone, d.Hold.Follow = gone, m.follows
	if m.suppose {
		d.Hold.SupposeNew()
	}
	before, err := m.pursue(ctx, &d, w)
	return &d, before, err
}

// begin returns the lease of a hold that was just acquired.
func (m *Manager) begin(d *drive.Driver, s *Session, tr *TermTrace) (*Lease, error) {
	l := m.newLease(d, s, tr)
	var err error
	if s != nil {
		err = s.enlist(l)
	} else {
		err = l.keep(d, nil)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (m *Manager) claim(s *Session) protocol.Claim {
	c := protocol.Claim{Owner: m.owner, TTL: m.timing.TTL, Info: m.info}
	if s != nil {
		c.Session = s.hold.key
	}
	return c
}

// pursue runs d until the name is held or that has come to nothing, which is an error. It returns
// the record that the last write replaced when the acquisition is traced. Of w it needs the
// session, the trace, and the patience.
func (m *Manager) pursue(ctx context.Context, d *drive.Driver, w want) (before store.Record, err error) {
	s := w.session
	ctx, cancel := m.joined(ctx, s)
	defer cancel(nil)
	var holder *HeldError
	var failed string
	h, term := &d.Hold, s.term()
	for env := m.run.EnvIn(term); h.Phase != protocol.Held; {
		if w.Patience != nil {
			h.Patience = w.Patience()
		}
		act := d.Next(env, ctx.Err() == nil)
		switch {
		case h.Phase != protocol.Waiting:
			if ctx.Err() == nil {
				holder = nil // not for its sake
			}
			m.settle(d, s)
			return before, m.refusal(ctx, h, holder)
		case act.Kind == protocol.Refuse:
			m.remember(h)
			return before, m.heldBy(h, act)
		case act.Kind == protocol.Wait && h.Seen().Rec.Owner != "":
			holder = m.waiting(holder, m.heldBy(h, act), w.trace)
		case act.Kind == protocol.Write && w.trace != nil:
			before = h.Seen().Rec
		}
		env = m.run.Do(ctx, d, term, act)
		if h.Err == nil {
			failed = ""
		} else {
			failed = m.retrying(ctx, h, failed, w.trace)
		}
	}
	m.memory.Forget(h.Key)
	m.book.Forget(h.Key)
	return before, nil
}

// retrying calls OnRetry when the reason for which an acquisition retries has changed. It returns
// the reason that was told last.
func (m *Manager) retrying(ctx context.Context, h *protocol.Hold, told string, tr *AcquireTrace) string {
	if h.Phase != protocol.Waiting || ctx.Err() != nil {
		return ""
	}
	news := h.Err.Error()
	if news != told {
		tr.retries(h.Err)
		if m.opts.OnRetry != nil {
			m.opts.OnRetry(h.Key, h.Err)
		}
	}
	return news
}

// waiting calls OnWait when the holder whom the acquisition waits for has changed.
func (m *Manager) waiting(before, now *HeldError, tr *AcquireTrace) *HeldError {
	if before == nil || before.Token != now.Token || before.Holder != now.Holder {
		tr.waits(now)
		if m.opts.OnWait != nil {
			m.opts.OnWait(now)
		}
	}
	return now
}

// joined returns a context that ends with ctx, with the manager, and with the session if there is
// one.
func (m *Manager) joined(ctx context.Context, s *Session) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := linked(m.ctx, func() { cancel(ErrClosed) })
	unlinkSession := func() bool { return true }
	if s != nil {
		sc := s.Context()
		unlinkSession = linked(sc, func() { cancel(context.Cause(sc)) })
	}
	return ctx, func(cause error) { unlink(); unlinkSession(); cancel(cause) }
}

// linked is [context.AfterFunc], except that f is done before it returns when ctx is over already.
func linked(ctx context.Context, f func()) (stop func() bool) {
	if ctx.Err() != nil {
		f()
		return func() bool { return false }
	}
	return context.AfterFunc(ctx, f)
}

// settle continues in the background to free a hold, if anything is left to be done.
func (m *Manager) settle(d *drive.Driver, s *Session) {
	m.remember(&d.Hold)
	if !d.Hold.Unsettled() || !d.Settle(m.run.Env(), s.alive()) {
		return
	}
	leaving := *d
	m.start(func() {
		for more := true; more; more = leaving.Settle(m.run.Env(), s.alive()) {
			ctx, cancel := m.ctx, func(error) {}
			if leaving.Insists() {
				ctx, cancel = m.joined(m.ctx, s)
			}
			_ = m.run.Finish(ctx, &leaving, m.run.Env())
			cancel(nil)
			m.memory.Remember(&leaving.Hold)
		}
	})
}

// remember keeps what an attempt that came to nothing has seen.
func (m *Manager) remember(h *protocol.Hold) {
	m.memory.Remember(h)
	if m.book == nil {
		return
	}
	for _, seen := range []protocol.Seen{h.Seen(), h.SeenSession()} {
		if seen.Known && seen.Rec.Version != "" && seen.Rec.Owner != m.owner {
			m.book.Note(seen.Rec, seen.Since)
		}
	}
}

// refusal is the error of an acquisition that came to nothing.
func (m *Manager) refusal(ctx context.Context, h *protocol.Hold, holder *HeldError) error {
	var errs []error
	if ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	}
	if holder != nil {
		errs = append(errs, holder)
	}
	if h.Err != nil && (ctx.Err() == nil || !errors.Is(h.Err, ctx.Err())) {
		errs = append(errs, h.Err)
	}
	if len(errs) == 0 { // the session ended under the claim
		errs = append(errs, &LostError{Name: h.Key, Cause: causeOf(h.Cause)})
	}
	return fmt.Errorf("acquire %s: %w", h.Key, errors.Join(errs...))
}

func (m *Manager) heldBy(h *protocol.Hold, act protocol.Action) *HeldError {
	rec := h.Seen().Rec
	return &HeldError{
		Name: h.Key, Holder: rec.Owner, Since: rec.Acquired, Token: rec.Token, Note: rec.Note,
		ExpiresIn: max(act.Until.Sub(m.clk.Now()), 0),
	}
}

// traceAcquire begins to trace an acquisition. It returns nil hooks when nobody traces.
func (m *Manager) traceAcquire(ctx context.Context, a Acquisition) (context.Context, *AcquireTrace) {
	if m.opts.Trace == nil || m.opts.Trace.Acquire == nil {
		return ctx, nil
	}
	ctx, tr := m.opts.Trace.Acquire(ctx, a)
	return ctx, &tr
}

// info returns what the record of a traced acquisition says; the manager's own when there is no
// trace. The manager's own map is never changed: every claim shares it.
func (t *AcquireTrace) info(own map[string]string) map[string]string {
	if t == nil || t.TraceParent == "" || len(t.TraceParent) > protocol.MaxTraceParent {
		return own
	}
	with := maps.Clone(own)
	with[store.InfoTraceParent] = t.TraceParent
	return with
}

func (t *AcquireTrace) waits(h *HeldError) {
	if t != nil && t.Waits != nil {
		t.Waits(h)
	}
}

func (t *AcquireTrace) retries(err error) {
	if t != nil && t.Retries != nil {
		t.Retries(err)
	}
}

// outcome tells how an acquisition ended. It returns the hooks of the term that begins; nil when
// none does, or when nobody traces.
func (t *AcquireTrace) outcome(d *drive.Driver, before store.Record, err error) *TermTrace {
	switch {
	case t == nil:
	case err != nil && t.Fails != nil:
		t.Fails(err)
	case err == nil && t.Begins != nil:
		term := t.Begins(Beginning{Token: d.Hold.Term.Token, Before: before})
		return &term
	}
	return nil
}
