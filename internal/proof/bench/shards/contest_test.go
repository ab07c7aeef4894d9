package shards

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"testing"

	"github.com/buraksezer/consistent"

	"github.com/leasehold/leasehold/shard"
)

// contestant is a row of the table.
type contestant struct {
	name, by string
	run      func(tb testing.TB, rounds []round) []outcome
	java     bool
}

var contestants = []contestant{
	{"`shard.Balance`, which splits", "load", func(tb testing.TB, rounds []round) []outcome {
		return ours(tb, rounds, shard.Balance{Tolerance: tolerance, MaxLoad: maxLoad}, 2*firstSlices)
	}, false},
	{"`shard.Balance`, without splits", "load", func(tb testing.TB, rounds []round) []outcome {
		return ours(tb, rounds, shard.Balance{Tolerance: tolerance, MaxLoad: maxLoad}, 0)
	}, false},
	{"Helix 1.4.3, WAGED, as it comes", "load", assignor("waged", "1", "1"), true},
	{"Helix 1.4.3, WAGED, evenness before few moves", "load", assignor("waged", "10", "1"), true},
	{"Helix 1.4.3, AutoRebalanceStrategy", "number", assignor("helix"), true},
	{"Kafka 4.3.1, CooperativeStickyAssignor", "number", assignor("kafka"), true},
	{"ring with bounded loads, buraksezer/consistent", "number", ring, false},
}

// ring is a ring with bounded loads, as the library comes.
func ring(_ testing.TB, rounds []round) []outcome {
	var c *consistent.Consistent
	was := map[int]bool{}
	owners := make([][]int, len(rounds))
	for i := range rounds {
		is := map[int]bool{}
		var members []consistent.Member
		for _, w := range rounds[i].workers {
			is[w] = true
			members = append(members, number(w))
		}
		if c == nil {
			c = consistent.New(members, consistent.Config{PartitionCount: firstSlices, ReplicationFactor: 20, Load: 1.25, Hasher: fnvHash{}})
		} else {
			for w := range numWorkers {
				if is[w] && !was[w] {
					c.Add(number(w))
				}
			}
			for w := range numWorkers {
				if was[w] && !is[w] {
					c.Remove(number(w).String())
				}
			}
		}
		was = is
		for p := range firstSlices {
			w, _ := strconv.Atoi(c.GetPartitionOwner(p).String())
			owners[i] = append(owners[i], w)
		}
	}
	return fixed(rounds, even(firstSlices), owners)
}

type number int

func (n number) String() string { return strconv.Itoa(int(n)) }

type fnvHash struct{}

func (fnvHash) Sum64(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	n := h.Sum64() // mixed: FNV alone puts neighbours side by side
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	return n ^ n>>33
}

// assignor runs one of the assignors in Java, by their own code.
func assignor(args ...string) func(testing.TB, []round) []outcome {
	return func(tb testing.TB, rounds []round) []outcome {
		parts := even(firstSlices)
		var in bytes.Buffer
		for i := range rounds {
			for n, w := range rounds[i].workers {
				fmt.Fprint(&in, map[bool]string{true: ",", false: ""}[n > 0], w)
			}
			for n, p := range parts {
				load, _ := rounds[i].of(p.from, p.to)
				fmt.Fprintf(&in, "%s%.4f", map[bool]string{true: ",", false: " "}[n > 0], load)
			}
			fmt.Fprintln(&in)
		}
		dir, err := javaProgram(tb.Context(), "assignors", "Assignors.java", "waged/Waged.java")
		if err != nil {
			tb.Fatal(err)
		}
		cmd := javaCommand(tb.Context(), dir, "Assignors", args...)
		var errs bytes.Buffer
		cmd.Stdin, cmd.Stderr = &in, &errs
		out, err := cmd.Output()
		if err != nil {
			tb.Fatalf("%v: %v\n%s", cmd, err, errs.Bytes())
		}
		var owners [][]int
		for line := range strings.Lines(string(out)) {
			text, ok := strings.CutPrefix(strings.TrimSpace(line), "owners ")
			if !ok {
				continue // a library's own
			}
			var of []int
			for f := range strings.SplitSeq(text, ",") {
				w, err := strconv.Atoi(f)
				if err != nil {
					tb.Fatal(err)
				}
				of = append(of, w)
			}
			owners = append(owners, of)
		}
		if len(owners) != len(rounds) {
			tb.Fatalf("%d answers to %d rounds: %s", len(owners), len(rounds), errs.Bytes())
		}
		return fixed(rounds, parts, owners)
	}
}
