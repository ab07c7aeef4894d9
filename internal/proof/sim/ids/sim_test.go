package ids

import (
	"bytes"
	"flag"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/internal/proof/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	days   = flag.Float64("days", 0.5, "how long TestNoIDTwice is, in virtual time")
	least  = flag.Uint64("ids", 1_000_000, "how many ids it makes at least")
	seed   = flag.Uint64("seed", 1, "what draws its faults")
	update = flag.Bool("update", false, "write its figures into docs/ids.md")
)

const command = "go test ./internal/proof/sim/ids -run TestNoIDTwice -days 30 -ids 1000000000 -timeout 2h -update"

// fleet is a hundred nodes on 32 machine numbers.
func fleet(seed uint64, length, calm time.Duration, ids uint64) plan {
	p := plan{seed: seed, nodes: 100, values: 32, length: length, calm: calm, layout: flake.Snowflake()}
	batches := float64(p.values) * length.Seconds() / meanRest.Seconds()
	p.batch = 1 + int(2.5*float64(ids)/batches)
	return p
}

// No id is made twice, whatever happens. The seed decides on what does, but not on how goroutines are scheduled: a failure may take a
// few tries to come back.
func TestNoIDTwice(t *testing.T) {
	length := time.Duration(*days * float64(day))
	calm := 12 * time.Hour
	if length < day { // all of it has to happen in that time
		calm = length / 4
	}
	p := fleet(*seed, length, calm, *least)
	p.fine = length < day
	if raceDetector { // it looks for races, and is a hundred times slower
		p = fleet(*seed, 2*time.Hour, 30*time.Minute, 10_000)
		p.nodes, p.values = 16, 6
	}
	o := run(t, p)
	if o.twice != 0 {
		t.Errorf("seed %d: %d of %d ids were there already", p.seed, o.twice, o.ids)
	}
	if raceDetector {
		return
	}
	if o.ids < *least {
		t.Errorf("%d ids, want %d", o.ids, *least)
	}
	for _, e := range everything {
		if o.counts[e] == 0 {
			t.Errorf("never: %s", e)
		}
	}
	if length >= 10*day && o.plainTwice == 0 {
		t.Errorf("Twitter's generator made no id of %d twice: nothing was tried", o.plainIDs)
	}
	text := o.table(p)
	t.Logf("\n%s", text)
	if *update {
		golden.Check(t, "../../../../docs/ids.md", "simulation", command, text, true)
	}
}

// A layout whose ids are in no order has its sequence go on from one unit of time to the next.
func TestNoReversedIDTwice(t *testing.T) {
	if raceDetector {
		t.Skip("TestNoIDTwice has looked for races")
	}
	p := fleet(*seed, day/4, 2*time.Hour, 100_000)
	p.layout = flake.Reversed()
	if o := run(t, p); o.twice != 0 || o.ids < 50_000 {
		t.Errorf("seed %d: %d of %d ids were there already", p.seed, o.twice, o.ids)
	}
}

// What the simulation is for: without one of the rules it finds ids that are there twice.
func TestItFindsWhatIsLeftOut(t *testing.T) {
	if raceDetector {
		t.Skip("TestNoIDTwice has looked for races")
	}
	for _, r := range []rule{noWindow, storedLate, noFloor, clockTrusted} {
		t.Run(string(r), func(t *testing.T) {
			for seed := uint64(1); seed <= 30; seed++ {
				p := fleet(seed, day/4, 2*time.Hour, 100_000)
				p.without = r
				if o := run(t, p); o.twice > 0 {
					t.Logf("seed %d: %d of %d ids were there already", seed, o.twice, o.ids)
					return
				}
			}
			t.Error("nothing notices that it is gone")
		})
	}
}

// table tells of a run.
func (o outcome) table(p plan) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "| %d machines, %d numbers, %v days, seed %d | ids | made twice |\n|---|---|---|\n", p.nodes, p.values, p.length.Hours()/24, p.seed)
	fmt.Fprintf(&b, "| Leasehold | %d | **%d** |\n", o.ids, o.twice)
	fmt.Fprintf(&b, "| Snowflake with leased numbers | %d | %d |\n\n", o.plainIDs, o.plainTwice)
	b.WriteString("| what happened | times |\n|---|---|\n")
	for _, e := range everything {
		fmt.Fprintf(&b, "| %s | %d |\n", e, o.counts[e])
	}
	return b.Bytes()
}
