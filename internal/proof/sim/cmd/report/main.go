// Report writes docs/proof.md and docs/proof.svg out of the summaries that the simulator, the model
// check and the search for seeded bugs have written. Scripts/proof runs them all.
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
	// scripts/mutants has written that part.
	if _, mutants, found := strings.Cut(string(old), "\n## Mutants\n"); found {
		text += "\n## Mutants\n" + mutants
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// mostEventful returns the seed of a short run with few processes in which the most different
// faults happened.
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

`+"<!-- not run: it is a test or a measurement by itself -->\n\n```sh\nmake proof   # runs all of it, and writes this page\n```"+`

Don't edit this page: `+"`make proof`"+` wrote it on %s, %s, %d cores.

The simulator and the model check run the code that package lease and the server run. internal/protocol decides, and internal/drive
carries out. Their package docs (internal/proof/sim, internal/proof/sim/model) say how. [Bugs](bugs.md) lists what they found.

## What was run

| | |
|---|---|
| seeds simulated | %d |
| virtual time | %.0f hours |
| events | %d |
| terms of ownership | %d, of which %d were lost, %d released, %d handed over |
| writes to guarded resources | %d, of which %d were refused as stale |
| **violations of an invariant** | **%d** |
| separate runs: seeds with sessions at servers, half of them with outsiders | %d, terms %d, violations %d |
| separate runs: seeds with followers, half of them with outsiders | %d, terms %d, violations %d |
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
	fmt.Fprintf(b, "\nTransitions that should have been taken but never were: %d. Transitions that were never taken at all:\n\n", len(m.Missing))
	for _, what := range m.Unmet {
		fmt.Fprintf(b, "- %s\n", what)
	}
	b.WriteString("\n## Seeded bugs\n\nEach rule was taken out by itself. The table shows what noticed first.\n\n| rule | noticed by | after | what it saw |\n|---|---|---|---|\n")
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
	fmt.Fprintf(b, "\n## One run\n\n![Who held what, and what went wrong, in one run](proof.svg)\n\nSeed %d. To see its story, event by event, run `go run ./internal/proof/sim/cmd/sim -seed %d -trace`.\n", picture, picture)
	return b.String()
}

// elsewhere says what the simulator leaves to others, and why.
const elsewhere = `
## Looked at elsewhere

### Parts that the simulator leaves to others

| part | checked by |
|---|---|
| the goroutines that carry out the rules | ` + "`" + `TestLive` + "`" + ` in internal/proof/sim runs the lease package itself in virtual time, with faults, an oracle and a linearizability check, but without exact replay |
| terms of holders elsewhere (` + "`" + `drive.Named` + "`" + `) | the simulator. The model check leaves them out: their renewals count in their nonces, so no two states would be equal, and no world would end |
| goroutines, queues and quotas of internal/lessor | its own tests, in virtual time |
| locks | internal/proof/sim/locks checks what users of semaphores, read/write locks and mutexes saw, whatever went wrong. Each rule that grants shares can be switched off, too, and the check notices each |
| ids | internal/proof/sim/ids counts ids that were made twice ([ids](ids.md)) |
| waiting behind others | the simulator, and the model check (patience) |
| priority | the election's own tests |
| what clients of real servers see | internal/proof/engines checks it for linearizability, as it is done for the simulator's histories; outcomes that were never learned stay open |

The model check runs the drivers of holds and of sessions, and what programs rely on (` + "`" + `drive.Term` + "`" + `).

A sweep frees and closes what waiters free and close, by the same judgement and at the version that was judged. It deletes only what
nobody has used for an hour at least, which is longer than a run here. Its own tests are in sweep.

### Separate runs of the simulator

**Sessions at servers.** Programs only send requests to the servers. The servers open, renew, close and watch the programs' sessions,
by internal/drive.

**Followers.** Programs wait at once for a name and for the session that keeps it, as on Kubernetes and etcd (` + "`" + `protocol.Hold.Follow` + "`" + `).
The store pushes changes of both late, out of order or not at all. ` + "`" + `watcher.Latest` + "`" + `, which the engine for Kubernetes runs, decides
which change is as good as a read. (etcd reports each change, in order; there ` + "`" + `watcher.Watch` + "`" + ` decides.) In the model check a follower
finds the change of either key at any moment. Late pushes are left to the simulator.

### Real processes on real stores

` + "`" + `` + "`" + `` + "`" + `sh
go run ./internal/proof/soak -procs 16 -engine ENGINE
` + "`" + `` + "`" + `` + "`" + `

The soak does this to real processes and stores:

- It kills and stops processes, and breaks holds.
- An outsider deletes, frees, edits and restores records, and wants names as another kind.
- It kills and stops supervisors (` + "`" + `leasehold run` + "`" + `) and their guards. What they run has children that forked, left the session and
  ignore SIGTERM.
- It kills the leading member of etcd, which comes back. It kills PostgreSQL's primary and promotes its synchronous standby.

Guarded writes go to files, HTTP, gRPC, SQLite, PostgreSQL, etcd, Redis, DynamoDB Local and Kubernetes. Overlaps are counted in
sections that ask Check and nothing else. The figures are of five minutes on each engine on 2026-11-23, TTL 2 s (supervisors 4 s), on
2 cores that did much else (load 15 to 25):

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

### Outsiders beside client-go's elector

` + "`" + `` + "`" + `` + "`" + `sh
LEASEHOLD_OUTSIDER_ROUNDS=200 go test -run 'S16_AnElector(ReleasesWhat|ComesBack)' ./store/kubernetes
` + "`" + `` + "`" + `` + "`" + `

On a real API server, 200 rounds each on 2026-11-23, TTL 6 s. The limit is TTL/3, 2 s:

| what happened | in | two led for |
|---|---|---|
| an elector that was partitioned and healed released what it no longer had | 200 of 200 | 542 ms at most |
| an elector released a Lease that a session keeps, and another took it | 158 of 200 | 198 ms at most |
`

func (m searched) violations() (n int) {
	for _, r := range m.Reports {
		if r.Violation != "" {
			n++
		}
	}
	return n
}
