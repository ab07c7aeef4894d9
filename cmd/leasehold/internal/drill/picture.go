package drill

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// spans joins the samples and readings into times. Samples that are further apart than gap are two.
func (b *book) spans(began clock.Instant, gap time.Duration) []Span {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := func(i clock.Instant) float64 { return i.Sub(began).Seconds() }
	all := []Span{}
	open := map[string]*Span{}
	for _, s := range b.samples {
		if !s.ok {
			continue
		}
		was := open[s.pod]
		if was != nil && at(s.sent)-was.To > gap.Seconds() {
			all = append(all, *was)
			was = nil
		}
		if was == nil {
			was = &Span{Pod: s.pod, From: at(s.sent)}
			open[s.pod] = was
		}
		was.To = at(s.answered)
	}
	for _, was := range open {
		all = append(all, *was)
	}
	for i, r := range b.readings {
		if n := len(all); i > 0 && n > 0 && all[n-1].Row && all[n-1].Pod == r.pod {
			all[n-1].To = at(r.answered)
		} else if r.pod != "" {
			all = append(all, Span{Pod: r.pod, Row: true, From: at(r.sent), To: at(r.answered)})
		}
	}
	slices.SortStableFunc(all, func(x, y Span) int { return cmp.Or(cmp.Compare(x.Pod, y.Pod), cmp.Compare(x.From, y.From)) })
	return all
}

// The measures of the picture, in pixels.
const (
	left     = 130
	right    = 20
	top      = 60
	rowHigh  = 42
	barHigh  = 14
	bottom   = 40
	leastPic = 900
	mostPic  = 12000
	perStep  = 110 // room for a step's name
)

// SVG draws who accepted writes, and whom the row named, over time.
func (r *Report) SVG(w io.Writer) error {
	lanes := []string{r.Active.Pod, r.Standby.Pod}
	if slices.ContainsFunc(r.Spans, func(s Span) bool { return s.Pod == service }) {
		lanes = append(lanes, service)
	}
	wide := min(max(leastPic, left+right+perStep*len(r.Steps)), mostPic)
	high := top + rowHigh*len(lanes) + bottom
	x := func(at float64) float64 {
		return left + at/max(r.Lasted, 1e-3)*float64(wide-left-right)
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" font-family="system-ui, sans-serif" font-size="12">`+"\n", wide, high, wide)
	b.WriteString(`<style>
svg{background:#fff}text{fill:#1b1f24}.dim{fill:#667}.line{stroke:#c8ccd4}.writes{fill:#2f855a}.row{fill:#2f6fab;opacity:.55}.wrong{fill:#c53030}.step{fill:#8891a0;opacity:.13}.bad{fill:#c53030;opacity:.16}
@media (prefers-color-scheme:dark){svg{background:#14171c}text{fill:#e6e8eb}.dim{fill:#99a}.line{stroke:#3a404c}}
</style>` + "\n")
	fmt.Fprintf(b, "<title>Drill of %s</title>\n", html.EscapeString(r.Lease))
	fmt.Fprintf(b, `<text x="12" y="22" font-size="15">%s: green accepted writes, blue held the lease by its row, red accepted writes wrongly (%d)</text>`+"\n", html.EscapeString(r.Lease), r.Wrong)
	for _, s := range r.Steps {
		class := "step"
		if s.Failed != "" || s.Wrong > 0 {
			class = "bad"
		}
		if s.Skipped == "" {
			fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/><text class="dim" x="%.1f" y="%d" font-size="10">%s</text>`+"\n",
				class, x(s.From), top-16, max(x(s.Until)-x(s.From)-1, 1), rowHigh*len(lanes)+16, x(s.From)+2, top-5, html.EscapeString(s.Step))
		}
	}
	for i, pod := range lanes {
		y := top + i*rowHigh
		name := pod
		if pod == service {
			name = "the service"
		}
		fmt.Fprintf(b, `<text x="12" y="%d">%s</text><line class="line" x1="%d" x2="%d" y1="%d" y2="%d"/>`+"\n", y+20, html.EscapeString(name), left, wide-right, y+rowHigh-4, y+rowHigh-4)
		for _, s := range r.Spans {
			if s.Pod == pod {
				bar(b, s, y, x)
			}
		}
		for _, wrong := range r.WrongList {
			if wrong.Pod == pod {
				fmt.Fprintf(b, `<rect class="wrong" x="%.1f" y="%d" width="2" height="%d"/>`+"\n", x(wrong.At), y, rowHigh-6)
			}
		}
	}
	axis(b, r.Lasted, high, x)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func bar(b *strings.Builder, s Span, y int, x func(float64) float64) {
	class, at := "writes", y+3
	if s.Row {
		class, at = "row", y+3+barHigh+2
	}
	fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", class, x(s.From), at, max(x(s.To)-x(s.From), 1), barHigh)
}

// axis draws about ten marks at round times.
func axis(b *strings.Builder, lasted float64, high int, x func(float64) float64) {
	apart := 1.0
	for _, next := range []float64{2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600} {
		if lasted/apart > 14 {
			apart = next
		}
	}
	for at := 0.0; at <= lasted; at += apart {
		fmt.Fprintf(b, `<text class="dim" x="%.1f" y="%d" text-anchor="middle">%g s</text>`+"\n", x(at), high-14, at)
	}
}
