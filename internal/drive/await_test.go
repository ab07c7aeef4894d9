package drive

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// A wait for two keys ends with the first change of either, with the first error of either, and with its context.
func TestFinding_N1_AWaitForTwoKeys(t *testing.T) {
	errRefused := errors.New("refused")
	for name, c := range map[string]struct {
		do   func(t *testing.T, st store.Store, cancel context.CancelCauseFunc)
		fail string // the Wait of this key fails
		key  string
		err  error
	}{
		"the first":        {func(t *testing.T, st store.Store, _ context.CancelCauseFunc) { put(t, st, "a") }, "", "a", nil},
		"the second":       {func(t *testing.T, st store.Store, _ context.CancelCauseFunc) { put(t, st, "b") }, "", "b", nil},
		"its context":      {func(_ *testing.T, _ store.Store, cancel context.CancelCauseFunc) { cancel(errRefused) }, "", "", errRefused},
		"the first fails":  {nil, "a", "", errRefused},
		"the second fails": {nil, "b", "", errRefused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New(memory.Options{})
				st := faulty.Wrap(inner, func(op faulty.Op) faulty.Fault {
					if op.Kind == faulty.Wait && op.Key == c.fail {
						return faulty.Fault{Err: errRefused}
					}
					return faulty.Fault{}
				})
				defer st.Close()
				a, b := put(t, st, "a"), put(t, st, "b")
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				type answer struct {
					rec store.Record
					err error
				}
				answered := make(chan answer, 1)
				go func() {
					rec, err := Await(ctx, st, protocol.Action{Kind: protocol.Wait, Key: "a", Version: a.Version, Also: "b", AlsoVersion: b.Version})
					answered <- answer{rec, err}
				}()
				synctest.Wait()
				if c.do != nil {
					c.do(t, st, cancel)
				}
				if got := <-answered; got.rec.Key != c.key || !errors.Is(got.err, c.err) {
					t.Errorf("%+v, want %q and %v", got, c.key, c.err)
				}
			})
		})
	}
}

// put writes the record under key again, or makes it.
func put(t *testing.T, st store.Store, key string) store.Record {
	t.Helper()
	rec, err := store.Load(t.Context(), st, key)
	if err != nil {
		t.Fatal(err)
	}
	rec, err = st.Put(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
