package run

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// Somebody begins to share a name just while another one takes it as a whole. The latter is refused then: they don't run at the same
// time.
func TestNameIsSharedWhileItIsTakenAsAWhole(t *testing.T) {
	db := memory.NewDB(memory.Options{})
	other, err := lease.NewManager(db.Open(), lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	session, err := other.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rw, err := lock.NewRWMutex(session, "data")
	if err != nil {
		t.Fatal(err)
	}
	var reader *lock.Hold
	st := faulty.Wrap(db.Open(), func(op faulty.Op) faulty.Fault {
		if op.Kind == faulty.Put && op.Key == "data" && reader == nil {
			if reader, err = rw.RLock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return faulty.Fault{}
	})
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	a := &app{App: &cli.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Clock: clock.System()}}
	j := &Job{App: a.App, Name: "data", st: st, m: m, Timing: supervise.Timing{}.WithDefaults(), Opts: Options{NoWait: true}}
	if h, err := j.take(t.Context()); reader == nil || !errors.Is(err, lease.ErrHeld) {
		t.Fatalf("taken while %v reads: %v, %v", reader, h, err)
	}
	if err := reader.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, err := j.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rw.BesideLeases().TryRLock(t.Context()); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("read while somebody has it as a whole: %v", err)
	}
	if left := h.Left(); left <= 0 || left > 20*time.Second {
		t.Errorf("valid for %v", left)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
