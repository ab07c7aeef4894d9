package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Report is what a drill saw. Times are in seconds from its beginning.
type Report struct {
	Lease     string    `json:"lease"`
	By        string    `json:"by"`
	Rehearsal bool      `json:"rehearsal"` // on two instances of its own
	Began     time.Time `json:"began"`
	Lasted    float64   `json:"lasted_seconds"`
	Wait      float64   `json:"wait_seconds"`
	Threshold int       `json:"failure_threshold"`
	TTL       float64   `json:"ttl_seconds"`
	Active    Side      `json:"active"` // at the beginning
	Standby   Side      `json:"standby"`

	// Every step was done, nothing is left, and no wrong side accepted a write.
	OK         bool   `json:"ok"`
	Interrupt  string `json:"interrupted"`       // "" if it was not
	SidesAsked bool   `json:"sides_probed"`      // otherwise accepted_by_wrong_side says nothing
	Accepted   int    `json:"accepted_by_sides"` // writes
	// Of them, writes around which the row changed so that it stays open.
	Unsure    int      `json:"unsure"`
	Wrong     int      `json:"accepted_by_wrong_side"`
	WrongList []Wrong  `json:"wrong"` // the first 100
	NotUndone []string `json:"not_undone"`

	Steps   []Result  `json:"steps"`
	Summary []Summary `json:"summary"`
	Events  []Event   `json:"events"`
	Spans   []Span    `json:"spans"` // for the picture
}

// Result is what one step came to.
type Result struct {
	Step  string  `json:"step"`
	Run   int     `json:"run"`
	From  float64 `json:"from_seconds"`
	Until float64 `json:"until_seconds"`
	Hit   Side    `json:"hit"`
	To    Side    `json:"to"`
	// From the fault to the first write that the other side accepted.
	RTO     float64 `json:"rto_seconds"`
	Outage  float64 `json:"outage_seconds"` // the longest time in which nobody accepted a write
	Wrong   int     `json:"accepted_by_wrong_side"`
	Failed  string  `json:"failed,omitempty"`
	Skipped string  `json:"skipped,omitempty"`
}

// Summary is a step over all runs.
type Summary struct {
	Step      string  `json:"step"`
	Runs      int     `json:"runs"`
	RTOP50    float64 `json:"rto_p50_seconds"`
	RTOMax    float64 `json:"rto_max_seconds"`
	OutageP50 float64 `json:"outage_p50_seconds"`
	OutageMax float64 `json:"outage_max_seconds"`
}

// Span is a time in which a side accepted writes, or in which the row named it.
type Span struct {
	Pod  string  `json:"pod"` // "" for the service
	Row  bool    `json:"row"` // by the row of the lease
	From float64 `json:"from_seconds"`
	To   float64 `json:"to_seconds"`
}

const mostWrong = 100

// finish works out what the report says.
func (r *run) finish(ctx context.Context) {
	v := r.book.judge(r.d.began)
	rep := &r.report
	rep.Lasted, rep.SidesAsked = r.now(), len(r.d.Sides) > 0
	rep.Accepted, rep.Unsure, rep.Wrong = v.judged, v.unsure, len(v.wrong)
	rep.WrongList = append([]Wrong{}, v.wrong[:min(len(v.wrong), mostWrong)]...)
	rep.NotUndone, rep.Events = append([]string{}, r.undo.left...), r.d.events
	if ctx.Err() != nil {
		rep.Interrupt = context.Cause(ctx).Error()
	}
	rep.OK = rep.Interrupt == "" && len(v.wrong) == 0 && len(rep.NotUndone) == 0
	for i := range rep.Steps {
		s := &rep.Steps[i]
		for _, w := range v.wrong {
			if w.At >= s.From && w.At < s.Until {
				s.Wrong++
			}
		}
		rep.OK = rep.OK && s.Failed == "" && s.Skipped == ""
	}
	rep.Summary = summarize(rep.Steps)
	rep.Spans = r.book.spans(r.d.began, 3*r.d.Every+r.d.rowEvery())
}

func summarize(steps []Result) []Summary {
	all := []Summary{}
	for _, name := range Steps() {
		var rto, outage []float64
		for _, s := range steps {
			if s.Step == name && s.Failed == "" && s.Skipped == "" {
				rto, outage = append(rto, s.RTO), append(outage, s.Outage)
			}
		}
		if len(rto) == 0 {
			continue
		}
		all = append(all, Summary{name, len(rto), median(rto), slices.Max(rto), median(outage), slices.Max(outage)})
	}
	return all
}

// median returns the upper one of two in the middle.
func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Markdown writes the report for people. picture is the path of its picture, relative to the
// report.
func (r *Report) Markdown(w io.Writer, picture string) error {
	b := &strings.Builder{}
	kind := "Drill"
	if r.Rehearsal {
		kind = "Rehearsal"
	}
	fmt.Fprintf(b, "# %s of %s, %s\n\n", kind, cell(r.Lease), r.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	fmt.Fprintf(b, "%s\n\n", r.Verdict())
	fmt.Fprintf(b, "By %s. %s was active, %s stood by. waitTimeInSeconds %g × failureThreshold %d: the TTL is %g s. The drill took %.0f s.\n\n",
		cell(r.By), cell(r.Active.name()), cell(r.Standby.name()), r.Wait, r.Threshold, r.TTL, r.Lasted)
	if r.SidesAsked {
		fmt.Fprintf(b, "The sides accepted %d writes, %d of them by the wrong side. %d lie so close to a change of the row that their side can't be judged.\n\n",
			r.Accepted, r.Wrong, r.Unsure)
	} else {
		b.WriteString("No side was probed, so nothing is known of writes that the wrong side accepted.\n\n")
	}
	if picture != "" {
		fmt.Fprintf(b, "![timeline](%s)\n\n", picture)
	}
	b.WriteString("## Times\n\nRTO is the time from the fault to the first write that the other side accepted. The outage is the longest time in which nobody accepted one.\n\n")
	b.WriteString("| step | runs | RTO p50 | RTO max | outage p50 | outage max |\n|---|---:|---:|---:|---:|---:|\n")
	for _, s := range r.Summary {
		fmt.Fprintf(b, "| %s | %d | %.2f s | %.2f s | %.2f s | %.2f s |\n", s.Step, s.Runs, s.RTOP50, s.RTOMax, s.OutageP50, s.OutageMax)
	}
	b.WriteString("\n## Steps\n\n| run | step | hit | then active | RTO | outage | wrong writes | |\n|---:|---|---|---|---:|---:|---:|---|\n")
	for _, s := range r.Steps {
		if s.Skipped != "" {
			fmt.Fprintf(b, "| %d | %s | | | | | | not done: %s |\n", s.Run, s.Step, cell(s.Skipped))
			continue
		}
		end := "done"
		if s.Failed != "" {
			end = "FAILED: " + cell(s.Failed)
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s | %.2f s | %.2f s | %d | %s |\n", s.Run, s.Step, cell(s.Hit.name()), cell(s.To.name()), s.RTO, s.Outage, s.Wrong, end)
	}
	for i, wrong := range r.WrongList {
		if i == 0 {
			b.WriteString("\n## Writes that the wrong side accepted\n\n")
		}
		fmt.Fprintf(b, "- %.2f s: %s, while %s\n", wrong.At, cell(wrong.Pod), cell(wrong.Why))
	}
	b.WriteString("\n## What happened\n\n```\n")
	for _, e := range r.Events {
		fmt.Fprintf(b, "%8.2f s  %s\n", e.At, strings.ReplaceAll(e.What, "\n", " "))
	}
	b.WriteString("```\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Verdict is the report in a few sentences.
func (r *Report) Verdict() string {
	if r.OK {
		return "Every step was done, and all is as it was before."
	}
	var parts []string
	add := func(yes bool, format string, args ...any) {
		if yes {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	failed, skipped := 0, 0
	for _, s := range r.Steps {
		if s.Failed != "" {
			failed++
		}
		if s.Skipped != "" {
			skipped++
		}
	}
	add(r.Wrong > 0, "The wrong side accepted %d writes.", r.Wrong)
	add(r.Interrupt != "", "The drill was interrupted.")
	add(failed > 0, "%d steps failed.", failed)
	add(skipped > 0, "%d steps were not done.", skipped)
	add(len(r.NotUndone) == 0, "All is as it was before.")
	add(len(r.NotUndone) > 0, "NOT UNDONE: %s.", strings.Join(r.NotUndone, "; "))
	return strings.Join(parts, " ")
}

func (s Side) name() string {
	if s.Region == "" {
		return s.Pod
	}
	return s.Pod + " (" + s.Region + ")"
}

// cell makes a text one that a table takes.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ", "<", "&lt;").Replace(text)
}
