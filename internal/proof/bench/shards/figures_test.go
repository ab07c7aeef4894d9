package shards

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/golden"
)

// TestFigures makes a table of what the benchmarks of package shard have printed into the file that LEASEHOLD_SHARD_FIGURES names.
func TestFigures(t *testing.T) {
	file := os.Getenv("LEASEHOLD_SHARD_FIGURES")
	if file == "" || !*update {
		t.Skip("it needs the figures of benchmarks: ", command, " assign")
	}
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.NewBufferString("\n| 10,000 workers, 643,072 slices | processor time | slices that change |\n|---|---|---|\n")
	var calls []string
	for line := range strings.Lines(string(lines)) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		figure := func(unit string) float64 {
			for i := 2; i+1 < len(f); i += 2 {
				if n, err := strconv.ParseFloat(f[i], 64); err == nil && f[i+1] == unit {
					return n
				}
			}
			return -1
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(f[0], "Benchmark"), "-")
		if what, ok := strings.CutPrefix(name, "Assign/"); ok {
			fmt.Fprintf(text, "| %s | %.0f ms | %.0f |\n", strings.ReplaceAll(what, "_", " "), figure("cpu-ms/op"), figure("changed"))
			continue
		}
		calls = append(calls, fmt.Sprintf("| `%s` | %.0f ns |\n", name, figure("ns/op")))
	}
	if len(calls) == 0 {
		t.Fatalf("no figures: %s", lines)
	}
	text.WriteString("\n| a call | takes |\n|---|---|\n" + strings.Join(calls, "") + "\n")
	golden.Check(t, page, "assign", command, text.Bytes(), true)
}
