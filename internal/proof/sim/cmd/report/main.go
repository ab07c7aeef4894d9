// Report writes docs/proof.md and docs/proof.svg out of the summaries that the simulator, the model check and the search for
// seeded bugs have written. Scripts/proof runs them all.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/proof/sim"
)

type simulated struct {
	Seeds      uint64         `json:"seeds"`
	Hours      float64        `json:"virtual_hours"`
	Stats      sim.Stats      `json:"stats"`
	Faults     map[string]int `json:"faults"`
	Violations []any          `json:"violations"`
}

type searched struct {
	States  uint64 `json:"states"`
	Reports []struct {
		Scope     struct{ Name string }
		States    uint64
		Steps     uint64
		Depth     int
		Whole     bool
		Violation string
	} `json:"reports"`
	Missing []string `json:"missing"`
	Unmet   []string `json:"unmet"`
}

type bug struct {
	Rule    string  `json:"rule"`
	By      string  `json:"by"`
	Seed    uint64  `json:"seed"`
	World   string  `json:"world"`
	What    string  `json:"what"`
	Seconds float64 `json:"seconds"`
}

func main() {
	in := flag.String("in", ".", "the `folder` with sim.json, served.json, followed.json, model.json and bugs.json")
	out := flag.String("out", "docs", "the `folder` to write proof.md and proof.svg into")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(125)
	}
}

func run(in, out string) error {
	var s, served, followed simulated
	var m searched
	var bugs []bug
	for name, into := range map[string]any{"sim.json": &s, "served.json": &served, "followed.json": &followed, "model.json": &m, "bugs.json": &bugs} {
		b, err := os.ReadFile(filepath.Join(in, name))
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			return err
		}
	}
	picture := mostEventful(2000)
	f, err := os.Create(filepath.Join(out, "proof.svg"))
	if err != nil {
		return err
	}
	if err := sim.Run(sim.Draw(picture), sim.Options{Picture: true}).Picture.SVG(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	name := filepath.Join(out, "proof.md")
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := page(s, served, followed, m, bugs, picture)
	if _, mutants, found := strings.Cut(string(old), "\n## Mutants\n"); found { // scripts/mutants has written that part
		text += "\n## Mutants\n" + mutants
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// mostEventful returns the seed of a short run with few processes in which the most different faults happened.
func mostEventful(seeds uint64) (best uint64) {
	most := -1
	for seed := uint64(1); seed <= seeds; seed++ {
		cfg := sim.Draw(seed)
		if cfg.Nodes > 3 || cfg.BadRates || cfg.Duration > 14*cfg.TTL {
			continue
		}
		r := sim.Run(cfg, sim.Options{})
		score := 3 * len(r.Stats.Faults)
		for _, kind := range []string{"pause", "suspension", "crash", "store outage", "break", "hand-over", "clone", "partition"} {
			score += 2 * min(r.Stats.Faults[kind], 2)
		}
		if score > most && r.Stats.Virtual < 2*cfg.Duration {
			most, best = score, seed
		}
	}
	return best
}

func page(s, served, followed simulated, m searched, bugs []bug, picture uint64) string {
	b := &strings.Builder{}
	caught := 0
	for _, x := range bugs {
		if x.By != "" {
			caught++
		}
	}
	fmt.Fprintf(b, `# The proof

Written by `+"`make proof`"+` on %s, %s, %d cores: don't edit. What the simulator and the model check run is internal/protocol, the code
that decides in production, by internal/drive, the driver that package lease and the server run; see the package docs of internal/proof/sim and internal/proof/sim/model for how, and
[the bugs that they found](bugs.md).

| | |
|---|---|
| seeds simulated | %d |
| virtual time | %.0f hours |
| events | %d |
| terms of ownership | %d, of which %d were lost, %d let go, %d handed over |
| writes to guarded resources | %d, of which %d were refused as stale |
| **violations of an invariant** | **%d** |
| beside: seeds with sessions at servers, half of them with outsiders | %d, terms %d, violations %d |
| beside: seeds with followers, half of them with outsiders | %d, terms %d, violations %d |
| states of the model check | %d, violations %d |
| **seeded bugs caught** | **%d of %d** |

## Faults injected

| fault | times |
|---|---|
`, clock.System().Wall().UTC().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), s.Seeds, s.Hours, s.Stats.Events, s.Stats.Terms,
		s.Stats.Losses, s.Stats.Releases, s.Stats.Handovers, s.Stats.Writes, s.Stats.Refused, len(s.Violations), served.Seeds, served.Stats.Terms, len(served.Violations),
		followed.Seeds, followed.Stats.Terms, len(followed.Violations), m.States, m.violations(), caught, len(bugs))
	for _, kind := range slices.Sorted(maps.Keys(s.Faults)) {
		fmt.Fprintf(b, "| %s | %d |\n", kind, s.Faults[kind])
	}
	b.WriteString("\n## Invariants, checked after every event\n\n")
	for _, invariant := range sim.Invariants {
		fmt.Fprintf(b, "- %s\n", invariant)
	}
	b.WriteString("\n## Worlds of the model check\n\n| world | states | transitions tried | depth | |\n|---|---|---|---|---|\n")
	for _, r := range m.Reports {
		fmt.Fprintf(b, "| %s | %d | %d | %d | %s |\n", r.Scope.Name, r.States, r.Steps, r.Depth,
			map[bool]string{true: "searched to the end", false: "cut off at the limit"}[r.Whole])
	}
	fmt.Fprintf(b, "\nTransitions that should have been taken and never were: %d. Never taken at all:\n\n", len(m.Missing))
	for _, what := range m.Unmet {
		fmt.Fprintf(b, "- %s\n", what)
	}
	b.WriteString("\n## Seeded bugs\n\nEach rule was taken out by itself, and this is what noticed first.\n\n| rule | noticed by | after | what it saw |\n|---|---|---|---|\n")
	for _, x := range bugs {
		where := "the model check, " + x.World
		switch {
		case x.By == "":
			where = "**nothing**"
		case x.Seed != 0:
			where = fmt.Sprintf("the simulator, seed %d", x.Seed)
		}
		fmt.Fprintf(b, "| `%s` | %s | %.1f s | %s |\n", x.Rule, where, x.Seconds, strings.ReplaceAll(x.What, "|", "\\|"))
	}
	b.WriteString(elsewhere)
	fmt.Fprintf(b, "\n## One run\n\n![Who held what, and what went wrong, in one run](proof.svg)\n\nSeed %d. Its story, event by event: `go run ./internal/proof/sim/cmd/sim -seed %d -trace`.\n", picture, picture)
	return b.String()
}

// elsewhere says what the simulator leaves to others, and why.
const elsewhere = `
## Looked at elsewhere

- The goroutines that carry the rules out: ` + "`TestLive`" + ` in internal/proof/sim runs the lease package itself in virtual time, with faults, an oracle
  and a linearizability check, but no exact replay.
- The model check runs the drivers of holds and of sessions, and what programs rely on (` + "`drive.Term`" + `). Terms of holders elsewhere (` + "`drive.Named`" + `) are
  left to the simulator: their renewals count in their nonces, so that no two states after another number of them are one, and no world would end.
- Sessions at servers: these runs are beside the others. Programs have nothing but requests to the servers, which open, renew, close and look at
  their sessions, by internal/drive; what of internal/lessor is goroutines, queues and quotas has its own tests, in virtual time.
- Followers: these runs are beside the others, too. Programs wait for a name and for the session that keeps it at once, as on Kubernetes and etcd
  (` + "`protocol.Hold.Follow`" + `). The store pushes changes of both late, out of order or not at all, and ` + "`watcher.Latest`" + `, which the engine for Kubernetes runs,
  decides which of them is as good as a read. (etcd tells each change, in order; there ` + "`watcher.Watch`" + ` decides.) In the model check a follower finds the change of either key at any moment; what is pushed late is left to the simulator.
- Locks: internal/proof/sim/locks checks what users of semaphores, read/write locks and mutexes saw, whatever went wrong; the rules by which
  shares are granted can be switched off, too, and it notices each.
- Ids: internal/proof/sim/ids counts ids that were made twice ([ids](ids.md)).
- Going behind others is here and in the model check (patience). Who has priority is the election's to say, and its own tests'.
- A sweep frees and closes what waiters free and close, by the same judgement and at the version that was judged. It deletes only what has been
  of no use for an hour at least, which is longer than a run here; its own tests are in sweep.
- What clients of real servers see is checked for linearizability as the simulator's histories are (internal/proof/engines), outcomes that were
  never learned left open.
- Real processes on real stores: the soak (` + "`" + `go run ./internal/proof/soak -procs 16 -engine ENGINE` + "`" + `), which kills and stops processes, breaks
  holds, has an outsider delete, free, edit and restore records, and wants names as another kind. It kills and stops supervisors
  (` + "`" + `leasehold run` + "`" + `) and their guards; what they run has children that forked, left the session and ignore SIGTERM. The member of etcd that
  leads is killed, and comes back; PostgreSQL's primary is killed, its synchronous standby promoted. Guarded writes go to files, HTTP,
  gRPC, SQLite, PostgreSQL, etcd, Redis, DynamoDB Local and Kubernetes; overlaps are of sections that ask Check and nothing else. Five minutes
  on each engine on 2026-11-23, TTL 2 s (supervisors 4 s), on 2 cores that did much else (load 15 to 25):

| | file | etcd, 3 members | PostgreSQL, a pair |
|---|---|---|---|
| workers killed, stopped; holds broken | 208, 252, 83 | 233, 262, 83 | 190, 233, 65 |
| supervisors killed; guards killed; a guard and the supervisor; both guards, then the supervisor | 55, 41, 35, 40 | 37, 39, 41, 31 | 36, 39, 36, 18 |
| supervisors stopped; guards stopped; a guard killed and the supervisor stopped | 37, 41, 31 | 31, 31, 37 | 43, 26, 27 |
| failovers; the longest until another one served | none | 8; 2.4 s | 8; 4.8 s |
| by an outsider: records, other kinds | 120, 31 | 109, 32 | 111, 21 |
| terms of workers, of supervisors | 1,992, 491 | 1,718, 324 | 1,706, 320 |
| guarded writes: to files, to other resources | 41,683, 35,293 | 24,169, 21,050 | 33,913, 29,238 |
| refused as stale: by files, by other resources | 249, 6,610 | 122, 3,206 | 160, 4,800 |
| stale writes accepted | 0 | 0 | 0 |
| overlaps: a process was stopped inside | 867 | 345 | 332 |
| overlaps within TTL/3 and 1 s after an outsider | 137, 23 ms at most | 72, 11 ms | 88, 21 ms |
| other overlaps; of what supervisors run | 0; 0 | 0; 0 | 0; 0 |
| orphans, processes left | 0 | 0 | 0 |

- Outsiders beside client-go's elector on a real API server, 200 rounds each on 2026-11-23
  (` + "`" + `LEASEHOLD_OUTSIDER_ROUNDS=200 go test -run 'S16_AnElector(ReleasesWhat|ComesBack)' ./store/kubernetes` + "`" + `, TTL 6 s): an elector that was partitioned and
  healed released what it no longer had in 200 of 200, and two led for 542 ms at most; an elector released a Lease that a session
  keeps, another took it in 158, and two led for 198 ms at most. The limit is TTL/3, 2 s.
`

func (m searched) violations() (n int) {
	for _, r := range m.Reports {
		if r.Violation != "" {
			n++
		}
	}
	return n
}
