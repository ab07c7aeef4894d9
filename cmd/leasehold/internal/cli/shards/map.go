package shards

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/shardview"
)

// letters are of the workers in the map, the oldest first. Those behind share the last one.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#"

func letterOf(worker int) byte { return letters[min(worker, len(letters)-1)] }

// colours of the letters, in turn.
var colours = []int{32, 36, 33, 35, 34, 31, 92, 96, 93, 95, 94, 91}

// The map has rows of rowCells, and at most mostCells in all.
const (
	rowCells  = 64
	mostCells = 1024
)

// writeMap writes a letter for each slice, or for each part of many: that of the worker that owns
// most of it.
func (a *app) writeMap(out *strings.Builder, v *shardview.View, s api.ShardStatus) {
	number := make(map[string]int, len(s.Workers))
	for i, w := range s.Workers {
		number[w.Session] = i
	}
	cells := min(len(v.Entries), mostCells)
	coloured := output.Coloured(a.Out)
	row := rowCells
	if width := output.Width(a.Out); width > 0 {
		row = max(min(rowCells, width), 8)
	}
	for i := range cells {
		owner := most(v, number, i*len(v.Entries)/cells, (i+1)*len(v.Entries)/cells)
		switch {
		case owner < 0:
			out.WriteByte('.')
		case coloured:
			fmt.Fprintf(out, "\x1b[%dm%c\x1b[0m", colours[owner%len(colours)], letterOf(owner))
		default:
			out.WriteByte(letterOf(owner))
		}
		if (i+1)%row == 0 || i+1 == cells {
			out.WriteByte('\n')
		}
	}
	if cells < len(v.Entries) {
		fmt.Fprintf(out, "each letter is for about %d slices\n", len(v.Entries)/cells)
	}
}

// most returns the worker that owns most of a part of the slices, by number; -1 for nobody.
func most(v *shardview.View, number map[string]int, from, to int) int {
	count := map[int]int{}
	best := -1
	for _, e := range v.Entries[from:to] {
		owner := -1
		if n, ok := number[e.Owner]; ok {
			owner = n
		}
		count[owner]++
		if count[owner] > count[best] {
			best = owner
		}
	}
	return best
}

// mostMoves bounds the moves that are listed.
const mostMoves = 10

// writeMoves lists what is to go to another worker, or is asked for.
func (a *app) writeMoves(out *strings.Builder, v *shardview.View) {
	n := 0
	for _, e := range v.Entries {
		if e.Next == "" && e.Asked == "" {
			continue
		}
		if n++; n > mostMoves {
			continue
		}
		if n == 1 {
			out.WriteByte('\n')
		}
		what := "→ " + output.Plain(v.Name(e.Next))
		if e.Next == "" {
			what = "to " + e.Asked
		}
		from := v.Name(e.Owner)
		if from == "" {
			from = "nobody"
		}
		fmt.Fprintf(out, "%s: %s %s\n", output.Plain(e.ID()), output.Plain(from), what)
	}
	if n > mostMoves {
		fmt.Fprintf(out, "… and %d more\n", n-mostMoves)
	}
}
