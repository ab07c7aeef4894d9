package drill

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
)

// TestDrill: all steps, twice, on instances that do as they should.
func TestDrill(t *testing.T) {
	inWorld(t, func(w *world) {
		d := w.drill(Steps()...)
		d.Runs = 2
		r, err := d.Run(w.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.asBefore()
		if !r.OK || r.Wrong != 0 || len(r.Steps) != 2*len(Steps()) || r.Active.Pod != "east" || r.Active.Region != "region-of-east" {
			t.Errorf("%s: %+v\n%s", r.Verdict(), r, strings.Join(w.said, "\n"))
		}
		if r.Accepted < 100 || r.Unsure > r.Accepted/10 {
			t.Errorf("%d accepted, %d unsure", r.Accepted, r.Unsure)
		}
		// What the documentation promises: 15 s × 3.
		for _, s := range r.Summary {
			least, most := 0.0, 1.0
			switch s.Step {
			case Kill, Partition, Store:
				least, most = 30, 60+2*d.Every.Seconds()
			case Hold:
				most = 2
			}
			if s.Runs != 2 || s.RTOMax < least || s.RTOMax > most || s.RTOP50 > s.RTOMax {
				t.Errorf("%s: %+v, want %v to %v s", s.Step, s, least, most)
			}
		}
		if md := wellFormed(t, r); !strings.Contains(md, "| partition | 2 |") || !strings.Contains(md, "east (region-of-east)") {
			t.Errorf("the report:\n%s", md)
		}
	})
}

// TestWrongSideIsCounted: a side that accepts writes though it is passive is found out, whether its
// answers name a term or not.
func TestWrongSideIsCounted(t *testing.T) {
	for _, step := range []string{Switchover, Kill, Partition, Store, Hold} {
		t.Run(step, func(t *testing.T) {
			inWorld(t, func(w *world) {
				d := w.drill(step)
				east := w.side("east")
				east.lies = func() bool { return true }
				if step == Kill {
					d.Faults[Kill] = Fault{Do: d.Faults[Partition].Do, Undo: d.Faults[Partition].Undo}
				}
				r, err := d.Run(w.t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if r.OK || r.Wrong == 0 || r.Steps[0].Wrong == 0 || r.WrongList[0].Pod != "east" {
					t.Errorf("%s: %+v", r.Verdict(), r)
				}
				if md := wellFormed(t, r); !strings.Contains(md, "Writes that the wrong side accepted") {
					t.Errorf("the report:\n%s", md)
				}
				w.asBefore()
			})
		})
	}
}

// TestLateWrongWrite: a side that is cut off is watched for a while after the other one serves.
func TestLateWrongWrite(t *testing.T) {
	inWorld(t, func(w *world) {
		d := w.drill(Partition)
		var late time.Time
		w.side("east").lies = func() bool { return !late.IsZero() && time.Since(late) > 0 && time.Since(late) < 2*time.Second }
		say := d.Say
		d.Say = func(format string, args ...any) {
			say(format, args...)
			if len(args) > 1 && strings.HasPrefix(args[1].(string), "west serves") {
				late = time.Now().Add(10 * time.Second)
			}
		}
		if r, err := d.Run(w.t.Context()); err != nil || r.Wrong == 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestOldTokenIsCounted: a write whose answer names an older term is wrong, even where the row was
// not read in between.
func TestOldTokenIsCounted(t *testing.T) {
	at := func(s int) clock.Instant { return clock.Instant(s) * clock.Instant(time.Second) }
	b := &book{samples: []sample{
		{"east", at(1), at(2), true, 5}, {"west", at(3), at(4), true, 6},
		{"east", at(3), at(9), true, 5},  // was sent before west's was answered
		{"east", at(5), at(6), true, 5},  // wrong
		{"east", at(7), at(8), true, 7},  // a new term
		{"east", at(7), at(8), false, 5}, // refused
	}}
	v := b.judge(0)
	if v.judged != 5 || len(v.wrong) != 1 || v.wrong[0].At != 5 {
		t.Errorf("%+v", v)
	}
}

// TestJudgedByRow: a write is wrong only if its side can't have been active at any moment of it.
func TestJudgedByRow(t *testing.T) {
	at := func(s float64) clock.Instant { return clock.Instant(s * float64(time.Second)) }
	rows := []reading{
		{sent: at(0), answered: at(0.1), pod: "east", token: 1},
		{sent: at(1), answered: at(1.1), pod: "west", token: 2},
		{sent: at(2), answered: at(2.1), pod: "west", token: 2},
		{sent: at(3), answered: at(3.1), pod: "west", token: 4}, // east had 3, perhaps
		{sent: at(4), answered: at(4.1), token: 5, held: true},
		{sent: at(5), answered: at(5.1), token: 5, held: true},
		{sent: at(6), answered: at(6.1), token: 5, held: true, settled: true},
		{sent: at(7), answered: at(7.1), token: 5, held: true, settled: true},
		{sent: at(8), answered: at(8.1), token: 5},
		{sent: at(9), answered: at(9.1), token: 5},
	}
	for _, c := range []struct {
		sent, answered float64
		wrong, unsure  bool
	}{
		{0.2, 0.3, false, false}, // its own
		{0.5, 1.5, false, false}, // it may have come in time
		{1.2, 1.3, true, false},
		{1.05, 1.3, false, false}, // sent before west was known to hold it
		{2.2, 2.3, false, true},   // a term may lie in between
		{4.2, 4.3, false, false},  // it has until its renewal
		{6.2, 6.3, true, false},
		{8.2, 8.3, true, false},
		{9.2, 9.3, false, true}, // nothing was read after
	} {
		b := &book{readings: rows, samples: []sample{{pod: "east", sent: at(c.sent), answered: at(c.answered), ok: true}}}
		if v := b.judge(0); (len(v.wrong) == 1) != c.wrong || (v.unsure == 1) != c.unsure {
			t.Errorf("%v to %v: %+v", c.sent, c.answered, v)
		}
	}
}

// TestInterrupted: a drill that is interrupted at any moment of any step leaves all as it was.
func TestInterrupted(t *testing.T) {
	for _, step := range Steps() {
		for _, after := range []time.Duration{0, 100 * time.Millisecond, 5 * time.Second, 20 * time.Second, 50 * time.Second, 70 * time.Second} {
			t.Run(step+" after "+after.String(), func(t *testing.T) {
				inWorld(t, func(w *world) {
					ctx, cancel := context.WithCancelCause(w.t.Context())
					defer cancel(nil)
					d := w.drill(Switchover, step)
					say := d.Say
					d.Say = func(format string, args ...any) {
						say(format, args...)
						if len(args) > 1 && strings.HasPrefix(args[1].(string), step+": ") {
							time.AfterFunc(after, func() { cancel(errors.New("^C")) })
						}
					}
					r, err := d.Run(ctx)
					if err != nil {
						t.Fatal(err)
					}
					if ctx.Err() != nil && (r.OK || r.Interrupt == "" || len(r.NotUndone) > 0) {
						t.Errorf("%s: %+v", r.Verdict(), r)
					}
					w.asBefore()
				})
			})
		}
	}
}

// TestStepFails: a command that fails, also after it did something, is undone, and so is a step in
// which the other side doesn't take over. No step follows.
func TestStepFails(t *testing.T) {
	for name, spoil := range map[string]func(w *world, d *Drill){
		"the command fails": func(_ *world, d *Drill) {
			f := d.Faults[Partition]
			do := f.Do
			f.Do = func(ctx context.Context, step string, s Side) error {
				return errors.Join(do(ctx, step, s), errors.New("exit status 1"))
			}
			d.Faults[Partition] = f
		},
		"nobody takes over": func(w *world, d *Drill) {
			f := d.Faults[Partition]
			f.Do = func(context.Context, string, Side) error {
				w.side("east").cut.set(orderHang)
				w.side("west").cut.set(orderHang)
				return nil
			}
			f.Undo = func(context.Context, string, Side) error {
				w.side("east").cut.set(orderMend)
				w.side("west").cut.set(orderMend)
				return nil
			}
			d.Faults[Partition] = f
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				d := w.drill(Partition, Switchover)
				spoil(w, d)
				r, err := d.Run(w.t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if r.OK || r.Steps[0].Failed == "" || r.Steps[1].Skipped == "" || len(r.NotUndone) > 0 {
					t.Errorf("%s: %+v", r.Verdict(), r)
				}
				w.asBefore()
			})
		})
	}
}

// TestNotUndone: what can't be undone is said, with the command to type.
func TestNotUndone(t *testing.T) {
	inWorld(t, func(w *world) {
		d := w.drill(Store)
		f := d.Faults[Store]
		f.Undo = func(context.Context, string, Side) error { return errors.New("no route to host") }
		d.Faults[Store] = f
		r, err := d.Run(w.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(r.NotUndone, "\n")
		if r.OK || !strings.Contains(text, "no route to host; by hand: mend it") || !strings.Contains(r.Verdict(), "NOT UNDONE") {
			t.Errorf("%s: %+v", r.Verdict(), r)
		}
		wellFormed(t, r)
	})
}

// TestForeignHoldStays: the hold of another operator, which comes in the middle of a drill, is not
// lifted by it.
func TestForeignHoldStays(t *testing.T) {
	inWorld(t, func(w *world) {
		d := w.drill(Hold)
		say, held := d.Say, false
		d.Say = func(format string, args ...any) {
			say(format, args...)
			if len(args) > 1 && strings.HasPrefix(args[1].(string), "hold: ") && !held {
				held = true
				other := d.Operator
				other.By = "bob"
				if _, err := other.Hold(w.t.Context(), "the database burns"); err != nil {
					t.Error(err)
				}
			}
		}
		r, err := d.Run(w.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rec, err := store.Load(w.t.Context(), w.db.Open(), "prod")
		if r.OK || err != nil || rec.Owner != admiral.SkipOwner || !strings.Contains(rec.Note, "burns") {
			t.Errorf("%s: the row: %+v, %v", r.Verdict(), rec, err)
		}
	})
}

// TestRefused: what makes no drill is said before anything is done.
func TestRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		for want, spoil := range map[string]func(d *Drill){
			"there is no step":      func(d *Drill) { d.Steps = []string{"reboot"} },
			"needs the commands":    func(d *Drill) { d.Faults = nil },
			"no probe":              func(d *Drill) { d.Sides = nil },
			"no instance \"north\"": func(d *Drill) { d.Sides["north"] = d.Sides["east"] },
			"is closed":             func(d *Drill) { d.Window, _ = ParseWindow("05:00-06:00", time.UTC) }, // it is midnight
			"is closed in ":         func(d *Drill) { d.Window, _ = ParseWindow("23:00-00:01", time.UTC); time.Sleep(50 * time.Second) },
		} {
			d := w.drill(Kill)
			spoil(d)
			if _, err := d.Run(w.t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q: %v", want, err)
			}
			w.asBefore()
		}
		d := w.drill(Kill)
		held, err := d.Operator.Hold(w.t.Context(), "mine")
		if err == nil {
			_, err = d.Run(w.t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), "resume first") {
			t.Errorf("under the hold %+v: %v", held, err)
		}
	})
}

// TestPlanDoesNothing: a dry run says each step, and writes nothing.
func TestPlanDoesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		d := w.drill(Steps()...)
		d.Operator.Store = readOnly{d.Operator.Store, t}
		for pod := range d.Sides {
			d.Sides[pod] = nil
		}
		d.Window, _ = ParseWindow("00:00-04:00", time.UTC)
		var out strings.Builder
		if err := d.Plan(w.t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		for _, want := range append([]string{"east (region-of-east) is active now", "undo:    mend it", "for:     1m0s at most", "open for another 4h", "Nothing was done."}, Steps()...) {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in:\n%s", want, out.String())
			}
		}
		w.asBefore()
	})
}

type readOnly struct {
	store.Store
	t *testing.T
}

func (r readOnly) Put(context.Context, store.Record) (store.Record, error) {
	r.t.Error("a write")
	return store.Record{}, errors.New("a write")
}

func (r readOnly) Delete(context.Context, string, string) error {
	r.t.Error("a deletion")
	return errors.New("a deletion")
}
