package flake

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the tables of docs/ids.md, and docs/ids.svg, anew")

const (
	page    = "../docs/ids.md"
	picture = "../docs/ids.svg"
)

// spread is how consecutive ids fall into ranges of keys of one size.
type spread struct {
	layout Layout
	pause  time.Duration // from one id to the next
	counts [][]int       // by partition, for 16, 256 and 4,096 of them
}

const (
	spreadIDs = 1_000_000
	fast      = time.Microsecond
	slow      = 7 * time.Millisecond
)

var partitionBits = []int{4, 8, 12}

// consecutive makes a million ids, one each pause, on a node of its own.
func consecutive[T Value](t *testing.T, l Layout, pause time.Duration) spread {
	t.Helper()
	clk := at(noon)
	g := generator[T](t, l, 5, FixedWindow(noon, noon.AddDate(1, 0, 0)), clk.options())
	s := spread{layout: l, pause: pause}
	for _, b := range partitionBits {
		s.counts = append(s.counts, make([]int, 1<<b))
	}
	keys := l.Bits()
	if keys == 64 {
		keys-- // an int64 that isn't negative
	}
	last := -1
	for range spreadIDs {
		w := wordOf(next(t, g))
		top := int(place{bits: 12, shift: uint(keys - 12)}.get(w))
		for i, b := range partitionBits {
			s.counts[i][top>>(12-b)]++
		}
		if !l.Ordered() && top>>4 == last {
			t.Fatalf("%s: two ids in a row begin with the byte %d", l.Name(), last)
		}
		last = top >> 4
		clk.move(pause)
	}
	return s
}

// chi is Pearson's chi-squared against an even spread; some len(counts)−1 for one at random, 0 for a perfect one.
func chi(counts []int) float64 {
	even, sum := float64(spreadIDs)/float64(len(counts)), 0.0
	for _, n := range counts {
		sum += (float64(n) - even) * (float64(n) - even) / even
	}
	return sum
}

func spreads(t *testing.T) []spread {
	return []spread{
		consecutive[ID](t, Snowflake(), fast), consecutive[ID](t, Reversed(), fast),
		consecutive[ID96](t, Scatter(), fast), consecutive[ID96](t, Scatter(), slow),
	}
}

// TestPage sees that the tables and the picture of docs/ids.md are what the code says, and that the layouts made for it spread.
func TestPage(t *testing.T) {
	all := spreads(t)
	for _, s := range all {
		for _, counts := range s.counts {
			if x := chi(counts); s.layout.Ordered() == (x < float64(len(counts))) {
				t.Errorf("%s: chi-squared %.0f over %d partitions", s.layout.Name(), x, len(counts))
			}
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text = replaced(t, text, "layouts", layoutTable())
	text = replaced(t, text, "spread", spreadTable(all))
	for path, want := range map[string][]byte{page: text, picture: draw(all)} {
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the code says (%v): go test ./flake -run TestPage -update", path, err)
		}
	}
}

// replaced puts a table between the two comments that name it.
func replaced(t *testing.T, text []byte, name, table string) []byte {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q and %q", page, begin, end)
	}
	return []byte(head + begin + table + end + tail)
}

func layoutTable() string {
	var b strings.Builder
	b.WriteString("| layout | bits, the most significant first | unit, since | ids a second, a node | nodes | until | ordered by time |\n|---|---|---|---|---|---|---|\n")
	for _, l := range Layouts() {
		var fields []string
		for _, f := range l.Spec().Fields {
			text := fmt.Sprintf("%d %v", f.Bits, f.Part)
			if f.Reversed {
				text += " reversed"
			}
			fields = append(fields, text)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %v, %s | %.0f | %d | %s | %v |\n", l.Name(), strings.Join(fields, ", "),
			l.Spec().Unit, l.Spec().Epoch.Format(time.DateOnly), l.PerSecond(), l.Nodes(), l.Exhausted().Format(time.DateOnly), yes(l.Ordered()))
	}
	return b.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func spreadTable(all []spread) string {
	var b strings.Builder
	b.WriteString("| layout | an id every | chi² over 16 | over 256 | over 4096 | busiest of 256 |\n|---|---|---|---|---|---|\n")
	for _, s := range all {
		fmt.Fprintf(&b, "| `%s` | %v |", s.layout.Name(), s.pause)
		for _, counts := range s.counts {
			fmt.Fprintf(&b, " %.3g |", chi(counts))
		}
		most := 0
		for _, n := range s.counts[1] {
			most = max(most, n)
		}
		fmt.Fprintf(&b, " %.3g %% |\n", 100*float64(most)/spreadIDs)
	}
	return b.String()
}

// draw shows how the ids fall into 256 ranges.
func draw(all []spread) []byte {
	const wide, left, panel, high = 860, 12, 130, 90
	var shown []spread
	for _, s := range all {
		if s.pause == fast {
			shown = append(shown, s)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13">`+"\n", wide, 30+len(shown)*panel)
	b.WriteString(`<style>
svg{background:#fff}text{fill:#1b1f24}.line{stroke:#dde}.bar{fill:#2f6fab}
@media (prefers-color-scheme:dark){svg{background:#14171c}text{fill:#e6e8eb}.line{stroke:#2a2f38}}
</style>` + "\n")
	fmt.Fprintf(&b, "<title>A million consecutive ids over 256 ranges of keys</title>\n")
	fmt.Fprintf(&b, `<text x="%d" y="20">A million consecutive ids over 256 ranges of keys, the lowest keys on the left; each panel up to its busiest range</text>`+"\n", left)
	for i, s := range shown {
		most := 0
		for _, n := range s.counts[1] {
			most = max(most, n)
		}
		floor := 30 + (i+1)*panel - 12
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s: %d in the busiest</text>`+"\n", left, floor-high-6, s.layout.Name(), most)
		fmt.Fprintf(&b, `<line class="line" x1="%d" x2="%d" y1="%d" y2="%d"/>`+"\n", left, wide-left, floor, floor)
		step := float64(wide-2*left) / 256
		for k, n := range s.counts[1] {
			if n > 0 {
				tall := float64(n) / float64(most) * high
				fmt.Fprintf(&b, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", left+float64(k)*step, float64(floor)-tall, step-0.7, tall)
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
