package sim_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/sim"
)

// A seed has to tell the same story whenever it is told, or a failure that it found can't be looked into.
func TestReplay(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() || raceDetector {
		seeds = 3
	}
	stories := map[string]uint64{}
	for seed := uint64(1); seed <= seeds; seed++ {
		var first, second bytes.Buffer
		a := sim.Run(sim.Draw(seed), sim.Options{Trace: &first})
		var wg sync.WaitGroup
		wg.Go(func() { sim.Run(sim.Draw(seed+100), sim.Options{}) }) // another run at the same time is another world
		b := sim.Run(sim.Draw(seed), sim.Options{Trace: &second, Picture: true})
		wg.Wait()
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("seed %d: two stories, that part at\n%s", seed, parting(first.String(), second.String()))
		}
		if first.Len() < 1000 {
			t.Errorf("seed %d: a story of %d bytes", seed, first.Len())
		}
		if a.Stats.Events != b.Stats.Events || a.Stats.Virtual != b.Stats.Virtual || !maps.Equal(a.Stats.Faults, b.Stats.Faults) {
			t.Errorf("seed %d: %+v, and then %+v", seed, a.Stats, b.Stats)
		}
		if other, ok := stories[first.String()]; ok {
			t.Errorf("the seeds %d and %d tell one story", other, seed)
		}
		stories[first.String()] = seed
	}
}

// parting returns where two stories part.
func parting(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return as[i] + "\n" + bs[i]
		}
	}
	return fmt.Sprintf("the end: %d lines and %d", len(as), len(bs))
}

func TestSeeds(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() || raceDetector {
		seeds = 40
	}
	var sum sim.Stats
	faults := map[string]int{}
	for seed := uint64(1); seed <= seeds; seed++ {
		r := sim.Run(sim.Draw(seed), sim.Options{})
		for _, v := range r.Violations {
			t.Errorf("seed %d %v\n\tgo run ./internal/proof/sim/cmd/sim -seed %d -trace", seed, v, seed)
		}
		sum.Add(r.Stats)
		for kind, n := range r.Stats.Faults {
			faults[kind] += n
		}
	}
	t.Logf("%d seeds: %.0f virtual hours, %d terms, %d losses, %d guarded writes, %d refused",
		seeds, sum.Virtual.Hours(), sum.Terms, sum.Losses, sum.Writes, sum.Refused)
	// Runs in which nothing happens break no invariant.
	if sum.Terms < 5*int(seeds) || sum.Losses < int(seeds) || sum.Releases < int(seeds) || sum.Writes < 50*int(seeds) || sum.Refused == 0 {
		t.Errorf("too little happened: %+v", sum)
	}
	if seeds < 400 {
		return // some faults are rare
	}
	for _, kind := range []string{
		"break", "break of a session", "clock offset", "clock rate changed", "clone", "crash", "dropped request", "duplicated request",
		"hand-over", "heir", "late message", "late write: applied after its sender gave up", "late write: came after a newer one", "lost reply",
		"odd call: given up at any moment", "odd call: released amid work", "odd call: released twice, or after a loss",
		"odd call: session closed under its leases", "partition", "pause", "process restart", "rejected request", "shared given name",
		"store outage", "store restart", "store restored from a backup", "store wiped", "suspension", "wall clock offset", "wall clock step",
	} {
		if faults[kind] == 0 {
			t.Errorf("no run had the fault %q", kind)
		}
	}
}

// The picture is XML that a browser takes, and shows each hold once.
func TestPicture(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		var trace, svg bytes.Buffer
		r := sim.Run(sim.Draw(seed), sim.Options{Trace: &trace, Picture: true})
		if err := r.Picture.SVG(&svg); err != nil {
			t.Fatal(err)
		}
		titles, err := titlesOf(&svg)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		held := regexp.MustCompile(`(?m)^ *[0-9.]+s  n\d+ "(\w)" is held under token (\d+) until`).FindAllStringSubmatch(trace.String(), -1)
		if len(held) == 0 || len(held) != r.Stats.Terms {
			t.Fatalf("seed %d: %d terms in the story, %d in the figures", seed, len(held), r.Stats.Terms)
		}
		for _, h := range held {
			if want := fmt.Sprintf("%s under token %s, ", h[1], h[2]); titles[want] == 0 {
				t.Errorf("seed %d: the picture lacks %q", seed, want)
			}
		}
	}
}

// Bars end when validity does, so those of one name don't overlap, however late a process notices.
func TestPictureShowsOneHolder(t *testing.T) {
	bars := regexp.MustCompile(`<title>(\w) under token (\d+), ([0-9.]+) s to ([0-9.]+) s</title>`)
	compared, late := 0, 0
	for seed := uint64(1); seed <= 80; seed++ {
		cfg := sim.Draw(seed)
		if cfg.BadRates || cfg.Chance.Clone > 0 || cfg.Chance.Wipe > 0 || cfg.Chance.Restore > 0 {
			continue // of which there may be two, each for its own reason
		}
		var svg bytes.Buffer
		if err := sim.Run(cfg, sim.Options{Picture: true}).Picture.SVG(&svg); err != nil {
			t.Fatal(err)
		}
		late += strings.Count(svg.String(), "not noticed yet</title>")
		until := map[string]float64{} // holds are drawn in the order in which they began
		for _, bar := range bars.FindAllStringSubmatch(svg.String(), -1) {
			from, _ := strconv.ParseFloat(bar[3], 64)
			to, _ := strconv.ParseFloat(bar[4], 64)
			if from < until[bar[1]]-0.11 { // both are rounded
				t.Errorf("seed %d: %s is shown held under token %s from %.1f s, and by another until %.1f s", seed, bar[1], bar[2], from, until[bar[1]])
			}
			until[bar[1]] = max(until[bar[1]], to)
			compared++
		}
	}
	if compared < 200 || late < 20 {
		t.Errorf("%d bars, %d of them with an end that came late: too few to say anything", compared, late)
	}
}

// titlesOf parses an SVG and counts its titles, up to where a hold's say when.
func titlesOf(r io.Reader) (map[string]int, error) {
	titles, inTitle := map[string]int{}, false
	d := xml.NewDecoder(r)
	for n := 0; ; n++ {
		token, err := d.Token()
		switch x := token.(type) {
		case xml.StartElement:
			if n == 0 && (x.Name.Local != "svg" || x.Name.Space != "http://www.w3.org/2000/svg") {
				return nil, fmt.Errorf("it begins with %v", x.Name)
			}
			inTitle = x.Name.Local == "title"
		case xml.CharData:
			if hold, _, ok := strings.Cut(string(x), ", "); inTitle && ok {
				titles[hold+", "]++
			}
		case xml.EndElement:
			inTitle = false
		}
		if errors.Is(err, io.EOF) {
			return titles, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
