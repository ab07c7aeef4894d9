package plan

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// The measures of the drawing, in pixels.
const (
	wide      = 860
	left      = 150 // of the bars
	right     = 130 // room for the number behind the longest bar
	top       = 64
	rowHigh   = 44
	barHigh   = 15
	underHigh = 70
)

// marks are the lines across the drawing. Downtimes differ by orders of magnitude, so that the
// scale is logarithmic.
var marks = []struct {
	at    time.Duration
	label string
}{
	{time.Second, "1s"},
	{10 * time.Second, "10s"},
	{time.Minute, "1m"},
	{10 * time.Minute, "10m"},
	{time.Hour, "1h"},
	{10 * time.Hour, "10h"},
	{4 * day, "4d"},
	{36 * day, "36d"},
	{Year, "1y"},
}

// SVG draws the downtime of both sides, cause by cause and in sum.
func (p Plan) SVG(out io.Writer) error {
	rows := append(p.Causes(), Cause{"together", p.One.Total, p.Elected.Total})
	high := top + len(rows)*rowHigh + underHigh
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13">`+"\n", wide, high)
	b.WriteString(`<style>
svg{background:#fff}text{fill:#1b1f24}.dim{fill:#667}.line{stroke:#dde}.one{fill:#b7791f}.elected{fill:#2f6fab}.sum{font-weight:600}
@media (prefers-color-scheme:dark){svg{background:#14171c}text{fill:#e6e8eb}.dim{fill:#99a}.line{stroke:#2a2f38}}
</style>` + "\n")
	fmt.Fprintf(b, "<title>One instance or %d elected replicas: downtime a year</title>\n", p.Input.Replicas)
	b.WriteString(`<text x="12" y="24" font-size="16">Downtime a year, on a logarithmic scale</text>` + "\n")
	fmt.Fprintf(b, `<rect class="one" x="12" y="36" width="12" height="12"/><text x="30" y="47">one instance: %s</text>`+"\n", p.One.Percent())
	fmt.Fprintf(b, `<rect class="elected" x="250" y="36" width="12" height="12"/><text x="268" y="47">%d elected replicas: %s</text>`+"\n",
		p.Input.Replicas, p.Elected.Percent())
	bottom := top + len(rows)*rowHigh
	for _, m := range marks {
		fmt.Fprintf(b, `<line class="line" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text class="dim" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			along(m.at), along(m.at), top, bottom, along(m.at), bottom+18, m.label)
	}
	for i, row := range rows {
		y, class := top+i*rowHigh+6, ""
		if i == len(rows)-1 {
			class = ` class="sum"`
		}
		fmt.Fprintf(b, `<text%s x="12" y="%d">%s</text>`+"\n", class, y+barHigh+4, row.Name)
		bar(b, "one", y, row.One)
		bar(b, "elected", y+barHigh+2, row.Elected)
	}
	fmt.Fprintf(b, `<text class="dim" x="12" y="%d">A leader that is gone without a word is replaced after %s to %s, one that lets go after %s to %s. TTL %v.</text>`+"\n",
		bottom+46, Short(p.Takeover.Least), Short(p.Takeover.Most), Short(p.Handover.Least), Short(p.Handover.Most), p.Input.Timing.TTL)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func bar(b *strings.Builder, class string, y int, d time.Duration) {
	end := along(d)
	if end > left {
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", class, left, y, end-left, barHigh)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d" font-size="11">%s</text>`+"\n", end+5, y+12, Short(d))
}

// along is where on the scale, from a second to a year, a downtime is. What is shorter has no bar.
func along(d time.Duration) float64 {
	if d <= time.Second {
		return left
	}
	return left + math.Log(d.Seconds())/math.Log(Year.Seconds())*(wide-left-right)
}
