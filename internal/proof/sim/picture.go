package sim

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
)

// Picture is what a run looked like: who held what, when, and what went wrong meanwhile. A nil
// Picture records nothing.
type Picture struct {
	cfg    Config
	lanes  int
	length time.Duration
	calm   time.Duration
	holds  []*span
	faults []fault
	open   map[*client]*span
}

type span struct {
	lane       int
	key        string
	token      fence.Token
	from, to   int64
	valid      int64 // until when it was valid, whenever its process noticed
	renewals   []int64
	lost       bool
	fromWorker *client
}

type fault struct {
	lane     int // -1 is the store's
	from, to int64
	what     string
}

func newPicture(cfg Config) *Picture { return &Picture{cfg: cfg, open: map[*client]*span{}} }

func (p *Picture) begin(c *client) {
	if p == nil || c.isSession() {
		return
	}
	s := &span{lane: c.n.slot, key: c.key, token: c.token(), from: c.w().now, fromWorker: c}
	p.open[c] = s
	p.holds = append(p.holds, s)
	p.validity(c)
}

// validity takes down until when c's hold is valid, and if c is a session, what it keeps.
func (p *Picture) validity(c *client) {
	if p == nil {
		return
	}
	for _, k := range c.n.clients {
		if s := p.open[k]; s != nil && (k == c || k.session == c) && (s.valid == 0 || s.valid > c.w().now) {
			s.valid = c.n.trueAt(k.validUntil())
		}
	}
}

func (p *Picture) extend(c *client) {
	if p == nil {
		return
	}
	p.validity(c)
	if s := p.open[c]; s != nil {
		s.renewals = append(s.renewals, c.w().now)
	}
}

func (p *Picture) end(c *client, lost bool) {
	if p == nil {
		return
	}
	if s := p.open[c]; s != nil {
		s.to, s.lost = c.w().now, lost
		delete(p.open, c)
	}
}

func (p *Picture) fault(lane int, from, to int64, what string) {
	if p != nil {
		p.faults = append(p.faults, fault{lane, from, to, what})
	}
}

func (p *Picture) finish(w *World) {
	for _, s := range p.open {
		s.to = w.now
	}
	p.length, p.calm = duration(w.now), duration(int64(w.cfg.Duration))
	p.lanes = w.cfg.Nodes
}

// The measures of the drawing, in pixels.
const (
	margin    = 70
	laneHigh  = 58
	barHigh   = 18
	pageWide  = 1400
	topMargin = 64
)

// SVG draws the picture: a lane for each place that processes run at, the store's on top, time from
// left to right.
func (p *Picture) SVG(out io.Writer) error {
	high := topMargin + (p.lanes+1)*laneHigh + 50
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12">`+"\n", pageWide, high)
	b.WriteString(`<style>
svg{background:#fff;color:#1b1f24}text{fill:#1b1f24}.dim{fill:#667}.lane{stroke:#dde}.a{fill:#2f6fab}.b{fill:#b7791f}
.lost{stroke:#c0392b;stroke-width:3}.renew{stroke:#fff;stroke-opacity:.7}.bad{fill:#c0392b;fill-opacity:.16}.badline{stroke:#c0392b}
.over{fill-opacity:.3}.tok{fill:#fff;font-size:10px}.calm{fill:#2e8b57;fill-opacity:.10}
@media (prefers-color-scheme:dark){svg{background:#14171c}text{fill:#e6e8eb}.dim{fill:#99a}.lane{stroke:#2a2f38}.tok{fill:#fff}}
</style>` + "\n")
	fmt.Fprintf(b, "<title>Seed %d: %d processes, TTL %v</title>\n", p.cfg.Seed, p.cfg.Nodes, p.cfg.TTL)
	fmt.Fprintf(b, `<text x="%d" y="24" font-size="15">Seed %d: who held what (blue: a, brown: b), and what went wrong. TTL %v.</text>`+"\n", margin, p.cfg.Seed, p.cfg.TTL)
	b.WriteString(`<text x="70" y="42" class="dim">A bar is a hold while it is valid, a white line in it a renewal, a red edge a loss; a pale end is over, and not noticed yet. The number is the token's end.</text>` + "\n")
	fmt.Fprintf(b, `<rect class="calm" x="%.1f" y="%d" width="%.1f" height="%d"><title>no faults from here on</title></rect>`+"\n",
		p.x(int64(p.calm)), topMargin, p.x(int64(p.length))-p.x(int64(p.calm)), (p.lanes+1)*laneHigh)
	for lane := -1; lane < p.lanes; lane++ {
		label := "store"
		if lane >= 0 {
			label = fmt.Sprintf("place %d", lane)
		}
		fmt.Fprintf(b, `<text x="8" y="%d">%s</text><line class="lane" x1="%d" x2="%d" y1="%d" y2="%d"/>`+"\n",
			p.y(lane)+laneHigh/2, label, margin, pageWide-10, p.y(lane)+laneHigh, p.y(lane)+laneHigh)
	}
	p.drawFaults(b)
	p.drawHolds(b)
	p.drawAxis(b, high)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func (p *Picture) x(at int64) float64 {
	return margin + float64(at)/float64(max(p.length, 1))*(pageWide-margin-10)
}

func (p *Picture) y(lane int) int { return topMargin + (lane+1)*laneHigh }

func (p *Picture) drawFaults(b *strings.Builder) {
	// Where the last label of each lane begins; the others show when pointed at.
	labelled := map[int]float64{}
	slices.SortStableFunc(p.faults, func(a, b fault) int { return int(a.from - b.from) })
	for _, f := range p.faults {
		if f.to > f.from {
			fmt.Fprintf(b, `<rect class="bad" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s</title></rect>`+"\n",
				p.x(f.from), p.y(f.lane)+2, max(p.x(min(f.to, int64(p.length)))-p.x(f.from), 1.5), laneHigh-4, html.EscapeString(f.what))
		} else {
			fmt.Fprintf(b, `<line class="badline" x1="%.1f" x2="%.1f" y1="%d" y2="%d"><title>%s</title></line>`+"\n",
				p.x(f.from), p.x(f.from), p.y(f.lane)+2, p.y(f.lane)+laneHigh-2, html.EscapeString(f.what))
		}
		if room := p.x(f.from) - labelled[f.lane]; room > 55 && p.x(f.from) < pageWide-60 {
			labelled[f.lane] = p.x(f.from)
			fmt.Fprintf(b, `<text class="dim" font-size="9" x="%.1f" y="%d">%s</text>`+"\n", p.x(f.from)+2, p.y(f.lane)+laneHigh-4, html.EscapeString(f.what))
		}
	}
}

func (p *Picture) drawHolds(b *strings.Builder) {
	for _, s := range p.holds {
		y := p.y(s.lane) + 6
		if s.key != "a" {
			y += barHigh + 2
		}
		x, wide := p.x(s.from), max(p.x(min(s.to, s.valid))-p.x(s.from), 1)
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d" rx="2"><title>%s under token %d, %.1f s to %.1f s</title></rect>`+"\n",
			s.key, x, y, wide, barHigh, s.key, s.token, seconds(s.from), seconds(min(s.to, s.valid)))
		end := max(p.x(s.to), x+wide)
		if end > x+wide {
			fmt.Fprintf(b, `<rect class="%s over" x="%.1f" y="%d" width="%.1f" height="%d"><title>over, and not noticed yet</title></rect>`+"\n",
				s.key, x+wide, y, end-x-wide, barHigh)
		}
		for _, r := range s.renewals {
			fmt.Fprintf(b, `<line class="renew" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+"\n", p.x(r), p.x(r), y+2, y+barHigh-2)
		}
		if s.lost {
			fmt.Fprintf(b, `<line class="lost" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+"\n", end, end, y-1, y+barHigh+1)
		}
		if wide > 44 {
			fmt.Fprintf(b, `<text class="tok" x="%.1f" y="%d">…%05d</text>`+"\n", x+3, y+13, uint64(s.token)%100000)
		}
	}
}

func (p *Picture) drawAxis(b *strings.Builder, high int) {
	step := max(p.length/12, time.Second).Round(5 * time.Second)
	for t := time.Duration(0); p.x(int64(t)) < pageWide-50; t += max(step, 5*time.Second) {
		fmt.Fprintf(b, `<text class="dim" x="%.1f" y="%d">%v</text>`+"\n", p.x(int64(t)), high-24, t)
	}
}

func seconds(ns int64) float64 { return duration(ns).Seconds() }
