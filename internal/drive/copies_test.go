package drive

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/ctxtest"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

var errNo = errors.New("no")

// copyRig is a rig whose runner may send a request more than once, and a renewal that is to be sent.
type copyRig struct {
	rig
	wg    sync.WaitGroup
	act   protocol.Action
	began clock.Instant
	late  int
}

const attempt = time.Second

// inCopyRig runs f with a renewal that is sent again after 1 s, then each 2 s, and given up after 9 s. plan says what befalls each copy.
func inCopyRig(t *testing.T, plan map[int]faulty.Fault, f func(t *testing.T, r *copyRig)) {
	t.Helper()
	inRig(t, func(t *testing.T, plain rig) {
		r := &copyRig{rig: plain}
		r.Go = func(f func()) bool { r.wg.Go(f); return true }
		d := r.acquire(protocol.Claim{Owner: "me", TTL: ttl})
		first := r.net.Count(faulty.Put)
		r.net.SetPlan(func(op faulty.Op) faulty.Fault {
			if op.Kind != faulty.Put {
				return faulty.Fault{}
			}
			return plan[op.Nth-first]
		})
		r.began = r.Clock.Now()
		r.act = protocol.Action{Kind: protocol.Write, Key: "job", Rec: d.Hold.Term, Until: r.began.Add(9 * attempt), Asked: r.began, Again: r.began.Add(attempt)}
		r.act.Rec.Nonce = "renewal"
		f(t, r)
		r.wg.Wait()
	})
}

func (r *copyRig) request(ctx context.Context) (store.Record, error) {
	return r.Request(ctx, r.act, func() { r.late++ })
}

// The first answer counts, whichever copy it is to, and a conflict with one's own record is one.
func TestTheFirstAnswerCounts(t *testing.T) {
	silent := faulty.Fault{LoseReply: true, Silent: true}
	for name, c := range map[string]struct {
		plan   map[int]faulty.Fault
		after  time.Duration
		copies int
	}{
		"at once":               {nil, 0, 1},
		"a slow one":            {map[int]faulty.Fault{1: {ReplyDelay: 3500 * time.Millisecond}, 2: silent, 3: silent}, 3500 * time.Millisecond, 3},
		"the second":            {map[int]faulty.Fault{1: {Drop: true}, 2: {Delay: 500 * time.Millisecond}}, 1500 * time.Millisecond, 2},
		"a conflict with it":    {map[int]faulty.Fault{1: silent}, attempt, 2},
		"a later one":           {map[int]faulty.Fault{1: {Drop: true}, 2: {Drop: true}, 3: {Drop: true}}, 5 * attempt, 4},
		"the first is refused":  {map[int]faulty.Fault{1: {Delay: 2 * attempt, Err: errNo}, 2: {ReplyDelay: 3500 * time.Millisecond}, 3: {Drop: true}}, 4500 * time.Millisecond, 3},
		"the second is refused": {map[int]faulty.Fault{1: {ReplyDelay: 2500 * time.Millisecond}, 2: {Err: errNo}}, 2500 * time.Millisecond, 2},
		"all others are refused": {
			map[int]faulty.Fault{1: {Delay: 4 * attempt, Err: errNo}, 2: {ReplyDelay: 5 * attempt}, 3: {Err: errNo}, 4: {Err: errNo}}, 6 * attempt, 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCopyRig(t, c.plan, func(t *testing.T, r *copyRig) {
				before := r.net.Count(faulty.Put)
				rec, err := r.request(t.Context())
				var conflict *store.ConflictError
				if errors.As(err, &conflict) {
					rec, err = conflict.Current, nil
				}
				if took := r.Clock.Now().Sub(r.began).Round(time.Millisecond); err != nil || rec.Nonce != "renewal" || took != c.after {
					t.Errorf("after %v: %+v, %v; want it after %v", took, rec, err, c.after)
				}
				if got := r.net.Count(faulty.Put) - before; got != c.copies {
					t.Errorf("%d copies, want %d", got, c.copies)
				}
				if want := min(c.copies-1, 1); r.late != want {
					t.Errorf("said %d times that it is late, want %d", r.late, want)
				}
			})
		})
	}
}

// What all copies have come to is their outcome: unknown if that of one is, or if one was given up. None of them outlives its time, and no more than
// three are under way at once.
func TestNoCopyIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		plan    map[int]faulty.Fault
		after   time.Duration
		unknown bool
	}{
		"refused at once":      {map[int]faulty.Fault{1: {Err: errNo}}, 0, false},
		"both refused":         {map[int]faulty.Fault{1: {Delay: 2 * attempt, Err: errNo}, 2: {Delay: attempt / 2, Err: errNo}}, 2 * attempt, false},
		"one lost":             {map[int]faulty.Fault{1: {Delay: 2 * attempt, LoseReply: true}, 2: {Err: errNo}}, 2 * attempt, true},
		"given up, others not": {map[int]faulty.Fault{1: {Delay: 8 * attempt, Err: errNo}, 2: {Err: errNo}, 3: {Drop: true}, 4: {Err: errNo}, 5: {Err: errNo}}, 8 * attempt, true},
		"silence":              {map[int]faulty.Fault{1: {Drop: true}, 2: {Drop: true}, 3: {Drop: true}, 4: {Drop: true}, 5: {Drop: true}}, 9 * attempt, true},
	} {
		t.Run(name, func(t *testing.T) {
			inCopyRig(t, c.plan, func(t *testing.T, r *copyRig) {
				count := &counted{Store: r.Store}
				r.Store = count
				_, err := r.request(t.Context())
				if took := r.Clock.Now().Sub(r.began).Round(time.Millisecond); err == nil || took != c.after || errors.Is(err, store.ErrUnknownOutcome) != c.unknown {
					t.Errorf("after %v: %v; want it after %v, unknown %v", took, err, c.after, c.unknown)
				}
				synctest.Wait()
				if len(count.now) != 0 || count.most > 3 {
					t.Errorf("%d requests are under way afterwards, and up to %d at once were", len(count.now), count.most)
				}
			})
		})
	}
}

// A record that is gone refuses every copy of a renewal: the first refusal counts, and leaves nothing unknown.
func TestACopyOfARecordThatIsGone(t *testing.T) {
	inCopyRig(t, map[int]faulty.Fault{1: {Drop: true}}, func(t *testing.T, r *copyRig) {
		if err := r.db.Open().Delete(t.Context(), "job", r.act.Rec.Version); err != nil {
			t.Fatal(err)
		}
		_, err := r.request(t.Context())
		if took := r.Clock.Now().Sub(r.began).Round(time.Millisecond); !errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnknownOutcome) || took != attempt {
			t.Errorf("after %v: %v; want it not found after %v", took, err, attempt)
		}
	})
}

// A read changes nothing: of one whose copies were refused or given up, no outcome is unknown.
func TestAReadIsNeverInDoubt(t *testing.T) {
	inCopyRig(t, nil, func(t *testing.T, r *copyRig) {
		before := r.net.Count(faulty.Get)
		plan := map[int]faulty.Fault{1: {Delay: 6 * attempt, Err: errNo}, 2: {Err: errNo}, 3: {Drop: true}, 4: {Err: errNo}}
		r.net.SetPlan(func(op faulty.Op) faulty.Fault { return plan[op.Nth-before] })
		r.act.Kind = protocol.Read
		_, err := r.request(t.Context())
		if sent := r.net.Count(faulty.Get) - before; !errors.Is(err, errNo) || errors.Is(err, store.ErrUnknownOutcome) || sent != 4 {
			t.Errorf("%v, after %d copies", err, sent)
		}
	})
}

// toucher is a store whose records other programs share.
type toucher struct{ store.Store }

func (s toucher) Touch(ctx context.Context, rec store.Record, nonce string) (store.Record, error) {
	rec.Note = nonce
	return s.Put(ctx, rec)
}

// A touch is repeated as a write is, and as unknown when a copy was given up. All copies have the nonce.
func TestATouchIsRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		plan map[int]faulty.Fault
		want error
	}{
		"the second is answered": {map[int]faulty.Fault{1: {Drop: true}}, nil},
		"one was given up": {
			map[int]faulty.Fault{1: {Delay: 8 * attempt, Err: errNo}, 2: {Err: errNo}, 3: {Drop: true}, 4: {Err: errNo}, 5: {Err: errNo}}, store.ErrUnknownOutcome,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCopyRig(t, c.plan, func(t *testing.T, r *copyRig) {
				r.Store, r.act.Kind, r.act.Nonce = toucher{r.Store}, protocol.Touch, "touch"
				rec, err := r.request(t.Context())
				if !errors.Is(err, c.want) || err == nil && rec.Note != "touch" {
					t.Errorf("%+v, %v; want %v", rec, err, c.want)
				}
			})
		})
	}
	inCopyRig(t, nil, func(t *testing.T, r *copyRig) {
		r.act.Kind = protocol.Touch
		if _, err := r.request(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, of a store without Touch", err)
		}
	})
}

// counted counts the writes that are under way and not given up.
type counted struct {
	store.Store
	mu   sync.Mutex
	now  map[context.Context]bool
	most int
}

func (c *counted) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	c.mu.Lock()
	if c.now == nil {
		c.now = map[context.Context]bool{}
	}
	c.now[ctx] = true
	waiting := 0
	for ctx := range c.now {
		if ctx.Err() == nil {
			waiting++
		}
	}
	c.most = max(c.most, waiting)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.now, ctx)
	}()
	return c.Store.Put(ctx, rec)
}

// Who gives a request up waits for no copy of it, and once its owner has ended, none is sent.
func TestCopiesEndWithTheirRequest(t *testing.T) {
	silence := map[int]faulty.Fault{1: {Drop: true}, 2: {Drop: true}, 3: {Drop: true}}
	inCopyRig(t, silence, func(t *testing.T, r *copyRig) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*attempt)
		defer cancel()
		if _, err := r.request(ctx); err == nil || r.Clock.Now().Sub(r.began).Round(time.Millisecond) != 2*attempt {
			t.Errorf("after %v: %v", r.Clock.Now().Sub(r.began), err)
		}
		r.wg.Wait()
	})
	inCopyRig(t, silence, func(t *testing.T, r *copyRig) {
		r.Go = func(func()) bool { return false }
		before := r.net.Count(faulty.Put)
		if _, err := r.request(t.Context()); err == nil || r.net.Count(faulty.Put)-before != 1 {
			t.Errorf("%d copies, %v", r.net.Count(faulty.Put)-before, err)
		}
	})
}

// patient is a store that doesn't see when its caller has gone.
type patient struct{ store.Store }

func (p patient) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	return p.Store.Put(context.WithoutCancel(ctx), rec)
}

// Once its caller has gone, no further copy of a request is sent, though the store has not ended the ones before.
func TestNoCopyIsSentForWhoHasGone(t *testing.T) {
	inCopyRig(t, map[int]faulty.Fault{1: {ReplyDelay: 4 * attempt}, 2: {ReplyDelay: 4 * attempt}}, func(t *testing.T, r *copyRig) {
		r.Store = patient{r.Store}
		ctx, cancel := context.WithTimeout(t.Context(), 2*attempt)
		defer cancel()
		before := r.net.Count(faulty.Put)
		_, err := r.request(ctx)
		if got := r.net.Count(faulty.Put) - before; got != 2 {
			t.Errorf("%d copies, want 2; %v", got, err)
		}
	})
}

// A machine that was asleep until after the time of a request sends no further copy of it.
func TestNoCopyIsSentAfterItsTime(t *testing.T) {
	inCopyRig(t, map[int]faulty.Fault{1: {Drop: true}}, func(t *testing.T, r *copyRig) {
		clk := r.Clock.(*clocktest.Clock)
		asleep := time.AfterFunc(attempt/2, func() { clk.Jump(10 * attempt) })
		defer asleep.Stop()
		before := r.net.Count(faulty.Put)
		_, err := r.request(t.Context())
		if got := r.net.Count(faulty.Put) - before; !errors.Is(err, store.ErrUnknownOutcome) || got != 1 || r.late != 0 {
			t.Errorf("%v after %d copies, said %d times that it is late", err, got, r.late)
		}
	})
}

// A copy that comes to be sent only when the request has been answered is not sent, and the others end as ever.
func TestNoCopyIsSentAfterTheAnswer(t *testing.T) {
	inCopyRig(t, map[int]faulty.Fault{1: {ReplyDelay: 3500 * time.Millisecond}, 2: {ReplyDelay: 4 * attempt}}, func(t *testing.T, r *copyRig) {
		copies := 1
		r.Go = func(f func()) bool {
			copies++
			pause := map[int]time.Duration{3: attempt}[copies] // it is started 3 s after the first, and runs 4 s after it
			r.wg.Go(func() { time.Sleep(pause); f() })
			return true
		}
		before := r.net.Count(faulty.Put)
		_, err := r.request(t.Context())
		r.wg.Wait()
		if got := r.net.Count(faulty.Put) - before; err != nil || copies != 3 || got != 2 || r.Clock.Now().Sub(r.began).Round(time.Millisecond) != 5*attempt {
			t.Errorf("%v; %d of %d copies were sent, the last ended after %v", err, got, copies, r.Clock.Now().Sub(r.began))
		}
	})
}

// What was answered keeps no context, and so no timer, until the caller's is over, whichever copy was.
func TestAnAnswerEndsTheRequestsContext(t *testing.T) {
	for copies, plan := range map[int]map[int]faulty.Fault{1: nil, 2: {1: {Drop: true}}} {
		inCopyRig(t, plan, func(t *testing.T, r *copyRig) {
			ctx := ctxtest.New(t.Context())
			_, err := r.request(ctx)
			r.wg.Wait()
			if kept := ctx.Kept(); err != nil || kept != 0 {
				t.Errorf("after %d copies: %v; the caller's context keeps %d", copies, err, kept)
			}
		})
	}
}
