package drive

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// witness is a store that can prove that processes have ended. It notes the owners whose work was said to end with this process.
type witness struct {
	store.Store
	own []string
}

func (w *witness) PutOwn(ctx context.Context, rec store.Record) (store.Record, error) {
	w.own = append(w.own, rec.Owner)
	return w.Put(ctx, rec)
}

func (w *witness) WaitHolder(ctx context.Context, key, version string) (store.Record, error) {
	return store.Wait(ctx, w.Store, key, version)
}

func (w *witness) Proof() []*os.File { return nil }

// The store may count on the end of this process only for the owner whose work ends with it: not for holders elsewhere, nor for a name
// that is freed.
func TestOnlyTheOwnersWorkEndsWithTheProcess(t *testing.T) {
	for _, c := range []struct {
		own  string
		want []string
	}{{"me", []string{"me"}}, {"", nil}} {
		inRig(t, func(t *testing.T, r rig) {
			w := &witness{Store: r.net}
			r.Store, r.Own = w, c.own
			for _, owner := range []string{"you", "me", ""} {
				act := protocol.Action{Kind: protocol.Write, Key: "job", Until: clock.Never}
				act.Rec = store.Record{Key: "job", Version: r.stored().Version, Owner: owner, Token: 1, TTL: ttl, Nonce: "of " + owner}
				if owner == "" {
					act.Rec.TTL = 0
				}
				if _, err := r.Request(t.Context(), act, nil); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(w.own, c.want) {
				t.Errorf("process of %q: the work of %q ends with it, want %q", c.own, w.own, c.want)
			}
		})
	}
}

// What is idle, or refused, asks nothing of the store, and is no failure.
func TestNothingToDo(t *testing.T) {
	inRig(t, func(t *testing.T, r rig) {
		d := Want("job", protocol.Claim{Owner: "me", TTL: ttl}, timing, true, Recollection{})
		for _, kind := range []protocol.Kind{protocol.Idle, protocol.Refuse} {
			began := r.Clock.Now()
			env := r.Do(t.Context(), &d, term(7, nil), protocol.Action{Kind: kind, Key: "job", Until: began.Add(time.Second)})
			if env.Now != began || env.Session != 7 || d.Hold.Err != nil || d.Hold.Seen().Known {
				t.Errorf("%v: %v later, session until %v, %v", kind, env.Now.Sub(began), env.Session, d.Hold.Err)
			}
		}
	})
}

// deaf is a store whose writes may have been sent also when their context was done before. It counts them.
type deaf struct {
	store.Store
	read func() // called after each read
	puts int
}

func (s *deaf) Get(ctx context.Context, key string) (store.Record, error) {
	defer s.read()
	return s.Store.Get(context.WithoutCancel(ctx), key)
}

func (s *deaf) Put(_ context.Context, rec store.Record) (store.Record, error) {
	s.puts++
	return store.Record{}, driver.Unknown(rec.Key, errors.New("no answer"))
}

// What is asked for a request that is over isn't written any more: then the outcome is known.
func TestCarryWritesNothingForARequestThatIsOver(t *testing.T) {
	inRig(t, func(t *testing.T, r rig) {
		was := r.acquire(protocol.Claim{Owner: "me", TTL: ttl}).Hold.Term
		gone := errors.New("the client has gone")
		ctx, stop := context.WithCancelCause(t.Context())
		st := &deaf{Store: r.net, read: func() { stop(gone) }}
		r.Store = st
		d := Named("job", "me", was.Token, 0, ttl, Recollection{})
		if err := r.Carry(ctx, &d); !errors.Is(err, gone) || errors.Is(err, store.ErrUnknownOutcome) || st.puts != 0 {
			t.Errorf("%d writes, %v", st.puts, err)
		}
	})
}
