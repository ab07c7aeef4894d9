package drill

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	wait      = 15 * time.Second
	threshold = 3
	ttl       = wait * threshold
)

// world is two instances on one store, in virtual time.
type world struct {
	t   *testing.T
	clk *clocktest.Clock
	db  *memory.DB
	ctx context.Context

	mu    sync.Mutex
	sides map[string]*side
	wg    sync.WaitGroup
	said  []string
}

type side struct {
	cut   *cuttable
	state *admiral.State
	stop  context.CancelFunc
	dead  bool
	lies  func() bool // accepts a write whatever its state, while it returns true
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		w := &world{t: t, clk: clk, db: memory.NewDB(memory.Options{Clock: clk}), sides: map[string]*side{}}
		var stop context.CancelFunc
		w.ctx, stop = context.WithCancel(t.Context())
		w.start("east")
		synctest.Wait()
		w.start("west")
		time.Sleep(time.Second)
		f(w)
		stop()
		for _, s := range w.sides {
			s.cut.set(orderMend)
		}
		w.wg.Wait()
	})
}

func config(pod string) admiral.Config {
	return admiral.Config{LeaseName: "prod", PodIdentifier: pod, WaitTime: wait, FailureThreshold: threshold, Region: "region-of-" + pod, Store: "memory:"}
}

func (w *world) start(pod string) {
	s := &side{cut: &cuttable{changed: make(chan struct{})}, state: admiral.NewState(w.clk)}
	open := func(context.Context) (store.Store, error) { return &throughCut{w.db.Open(), s.cut}, nil }
	checker, err := admiral.New(open, config(pod), admiral.Options{Clock: w.clk})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.ctx)
	s.stop = stop
	w.mu.Lock()
	w.sides[pod] = s
	w.mu.Unlock()
	w.wg.Go(func() {
		if err := checker.Run(ctx, s.state); err != nil && !s.dead {
			w.t.Errorf("%s: %v", pod, err)
		}
	})
}

func (w *world) side(pod string) *side {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sides[pod]
}

func (w *world) probe(pod string) Probe {
	return func(ctx context.Context) (fence.Token, error) {
		_ = clock.Sleep(ctx, w.clk, time.Millisecond) // a request takes its time
		s := w.side(pod)
		if s.lies != nil && s.lies() {
			return 0, nil
		}
		if s.dead {
			return 0, errors.New("connection refused")
		}
		term, err := s.state.Guard(ctx)
		if err != nil {
			return 0, err
		}
		return term.Token(), nil
	}
}

func (w *world) faults() map[string]Fault {
	cut := func(order string) Fault {
		set := func(order string) func(context.Context, string, Side) error {
			return func(_ context.Context, _ string, s Side) error { w.side(s.Pod).cut.set(order); return nil }
		}
		return Fault{Do: set(order), Undo: set(orderMend), How: "do", Back: "mend it"}
	}
	return map[string]Fault{
		Partition: cut(orderHang), Store: cut(orderRefuse),
		Kill: {
			Do: func(_ context.Context, _ string, s Side) error {
				x := w.side(s.Pod)
				x.dead = true
				x.cut.set(orderHang)
				x.stop()
				return nil
			},
			Undo: func(_ context.Context, _ string, s Side) error {
				if w.side(s.Pod).dead {
					w.start(s.Pod)
				}
				return nil
			},
		},
	}
}

func (w *world) drill(steps ...string) *Drill {
	return &Drill{
		Operator: admiral.Operator{Store: w.db.Open(), Config: config("operator"), By: "a test", Clock: w.clk},
		Sides:    map[string]Probe{"east": w.probe("east"), "west": w.probe("west")}, Faults: w.faults(),
		Steps: steps, Runs: 1, Every: 250 * time.Millisecond, Limit: time.Minute, Clock: w.clk,
		Say: func(format string, args ...any) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.said = append(w.said, fmt.Sprintf(format, args...))
		},
	}
}

// asBefore fails unless east is active, west stands by, and nobody is cut off or held.
func (w *world) asBefore() {
	w.t.Helper()
	synctest.Wait()
	east, west := w.side("east"), w.side("west")
	if st := east.state.Status(); st.ReadOnly || east.dead {
		w.t.Errorf("east is not active: %+v", st)
	}
	if st := west.state.Status(); !st.ReadOnly || west.dead {
		w.t.Errorf("west is active: %+v", st)
	}
	for pod, s := range w.sides {
		if s.cut.order != orderMend && s.cut.order != "" {
			w.t.Errorf("%s is still cut off: %s", pod, s.cut.order)
		}
	}
	rec, err := store.Load(w.t.Context(), w.db.Open(), "prod")
	if err != nil || rec.Owner == admiral.SkipOwner {
		w.t.Errorf("the row: %+v, %v", rec, err)
	}
}

// wellFormed fails unless the three forms of a report can be read.
func wellFormed(t *testing.T, r *Report) (markdown string) {
	t.Helper()
	var md, svg, js bytes.Buffer
	if err := errors.Join(r.Markdown(&md, "timeline.svg"), r.SVG(&svg), r.JSON(&js)); err != nil {
		t.Fatal(err)
	}
	for dec := xml.NewDecoder(&svg); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture: %v", err)
		}
	}
	if strings.Contains(js.String(), "null") {
		t.Errorf("a list that is null in:\n%s", js.String())
	}
	return md.String()
}
