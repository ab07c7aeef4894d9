package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

// renewed returns as soon as the node has renewed what it holds.
func renewed(n *node) {
	for before := n.Net.Count(faulty.Put); n.Net.Count(faulty.Put) == before; time.Sleep(time.Millisecond) {
		synctest.Wait()
	}
}

// A virtual machine was paused past the end of its lease, and none of its clocks has counted that. When its wall clock is set it asks the
// store at once, and hears that another has the name. Until then Check can't know.
func TestFinding_S13_APausedMachineAsksWhenItsWallClockIsSet(t *testing.T) {
	for name, acquire := range map[string]func(n *node) *lease.Lease{
		"lease":   func(n *node) *lease.Lease { return n.Take("job") },
		"session": func(n *node) *lease.Lease { return n.Under(n.Open(), "job") },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.Unsafe = true
				n := w.Node(lease.Options{})
				l := acquire(n)
				renewed(n)
				n.Clk.SetRate(0) // the host pauses the machine
				n.Outage.Start() // which hears nothing then
				w.Node(lease.Options{}).Take("job")
				n.Clk.SetRate(1)
				if err := l.Check(); err != nil {
					t.Errorf("the machine's clocks can tell: %v", err)
				}
				n.Outage.End()
				n.Clk.StepWall(2 * ttl)
				time.Sleep(ttl/12 + time.Millisecond)
				synctest.Wait()
				if err := l.Check(); err == nil {
					t.Error("still held after the wall clock was set")
				}
			})
		})
	}
}

// A wall clock that is set for another reason ends nothing: set forward it costs one renewal, set back nothing.
func TestFinding_S13_AWallClockThatIsSetEndsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		step   time.Duration
		hasten bool
	}{
		"an hour ahead":   {time.Hour, true},
		"an hour back":    {-time.Hour, false},
		"within a slew":   {ttl / 20, false},
		"more than a bit": {ttl / 9, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				l := n.Take("job")
				renewed(n)
				before := n.Net.Count(faulty.Put)
				n.Clk.StepWall(c.step)
				time.Sleep(ttl/12 + time.Millisecond)
				if hastened := n.Net.Count(faulty.Put) - before; (hastened == 1) != c.hasten {
					t.Errorf("%d renewals", hastened)
				}
				time.Sleep(time.Minute)
				valid(t, l)
			})
		})
	}
}
