package shards

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/golden"
)

var update = flag.Bool("update", false, "run all contestants, and write docs/benchmarks-shard.md")

const (
	page    = "../../../../docs/benchmarks-shard.md"
	command = "scripts/bench-shards"
)

// The page's rows of those that are Go programs are what they come to, to the last digit. With -update all are run, also those in Java.
func TestTable(t *testing.T) {
	rounds := trace(traceSeed, numRounds)
	text := bytes.NewBufferString(`
| | balances by | above: p50 | p90 | p95 | p99 | most | below: p50 | p99 | keys moved | of them forced | load moved |
|---|---|---|---|---|---|---|---|---|---|---|---|
| *Dicer's bounds* | load | 0.02 | 0.03 | 0.04 | 0.35 | 0.70 | 0.02 | 0.15 | | | |
`)
	was, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contestants {
		if c.java && !*update {
			continue
		}
		line := row(c, c.run(t, rounds))
		text.WriteString(line)
		if !*update && !strings.Contains(string(was), line) {
			t.Errorf("%s has another line than this, run %s:\n%s", page, command, line)
		}
		t.Log(line)
	}
	if *update {
		text.WriteString("\n")
		golden.Check(t, page, "quality", command, text.Bytes(), true)
	}
}

// row is the line of a contestant.
func row(c contestant, all []outcome) string {
	over := func(q float64) float64 { return quantile(all, q, func(o outcome) float64 { return o.over }) }
	under := func(q float64) float64 { return quantile(all, q, func(o outcome) float64 { return o.under }) }
	share := func(f func(o outcome) float64) float64 { return 100 * mean(all, f) }
	return fmt.Sprintf("| %s | %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.1f %% | %.1f %% | %.1f %% |\n", c.name, c.by,
		over(.5), over(.9), over(.95), over(.99), over(1), under(.5), under(.99),
		share(func(o outcome) float64 { return o.keys }), share(func(o outcome) float64 { return o.forced }), share(func(o outcome) float64 { return o.load }))
}
