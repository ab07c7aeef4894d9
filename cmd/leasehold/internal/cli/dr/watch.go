package dr

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/api"
)

// The paces of a watch: of looks at the row, and of calls to the instances, which are writes.
const (
	watchEvery = 2 * time.Second
	rollEvery  = 15 * time.Second
)

// watchPair shows the pair until ctx is done. A store that doesn't answer is shown, and asked
// again.
func (a *app) watchPair(ctx context.Context, op admiral.Operator, wait time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	rolls := make(chan []admiral.Instance)
	called := make(chan struct{})
	go func() {
		defer close(called)
		a.callRolls(ctx, op, wait, rolls)
	}()
	defer func() { cancel(); <-called }()
	var instances []admiral.Instance
	screen := screen{a: a}
	for ctx.Err() == nil {
		if err := screen.show(a.observed(ctx, op, instances)); err != nil {
			return err
		}
		timer := clock.NewTimer(a.Clock, watchEvery)
		select {
		case instances = <-rolls:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return context.Cause(ctx)
}

// callRolls calls the instances now and then, until ctx is done.
func (a *app) callRolls(ctx context.Context, op admiral.Operator, wait time.Duration, rolls chan<- []admiral.Instance) {
	for wait > 0 && ctx.Err() == nil {
		if all, err := op.RollCall(ctx, wait); err == nil {
			select {
			case rolls <- all:
			case <-ctx.Done():
			}
		}
		_ = clock.Sleep(ctx, a.Clock, rollEvery)
	}
}

// observed is how the pair stands. The error is the store's.
func (a *app) observed(ctx context.Context, op admiral.Operator, instances []admiral.Instance) (api.Pair, error) {
	limited, cancel := clock.WithTimeout(ctx, a.Clock, cli.OpenLimit)
	defer cancel()
	rec, err := op.Record(limited)
	if err != nil {
		return api.Pair{Lease: op.Config.LeaseName}, err
	}
	return a.standing(limited, op, rec, instances)
}

// screen shows how a pair stands, again and again.
type screen struct {
	a    *app
	last string // what was told last, where each change is a line
}

func (s *screen) show(now api.Pair, err error) error {
	switch width := output.Width(s.a.Out); {
	case s.a.Output() != output.Table:
		return s.line(now, err, func() error { return output.WriteJSON(s.a.Out, now, true) })
	case width == 0:
		return s.line(now, err, func() error {
			_, err := fmt.Fprintf(s.a.Out, "%s %s\n", s.a.Clock.Wall().Format(time.TimeOnly), oneLine(now))
			return err
		})
	default:
		frame, frameErr := frame(now, width, s.a.Clock.Wall(), err)
		if frameErr != nil {
			return frameErr
		}
		const home = "\x1b[H\x1b[J"
		_, err := fmt.Fprint(s.a.Out, home+frame)
		return err
	}
}

// line writes if anything has changed. A store that doesn't answer is said once.
func (s *screen) line(now api.Pair, err error, write func() error) error {
	text := oneLine(now)
	if err != nil {
		text = "error"
	}
	if text == s.last {
		return nil
	}
	s.last = text
	if err != nil {
		s.a.Say("%s: %s", now.Lease, cli.OneLine(err))
		return nil
	}
	return write()
}

// oneLine is all that a change would change.
func oneLine(s api.Pair) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.Lease, s.State)
	if s.Pod != "" {
		fmt.Fprintf(&b, " %s %s", output.Plain(s.Pod), output.OrDash(output.Plain(s.Region)))
	}
	if s.Token != 0 {
		fmt.Fprintf(&b, " token %s", s.Token)
	}
	if s.Note != "" {
		b.WriteString(" " + output.Plain(s.Note))
	}
	for _, i := range s.Instances {
		fmt.Fprintf(&b, "; %s %s", output.Plain(i.Pod), output.Plain(i.Status))
		if i.Waits != "" {
			b.WriteString(": " + output.Plain(i.Waits))
		}
	}
	return b.String()
}

// frame is the whole picture.
func frame(s api.Pair, width int, now time.Time, err error) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "lease %s   %s   %s\n", s.Lease, strings.ToUpper(string(s.State)), now.Format(time.TimeOnly))
	if err != nil {
		fmt.Fprintf(&b, "the store doesn't answer: %s\n", output.Plain(cli.OneLine(err)))
		return b.String(), nil
	}
	if s.Note != "" {
		fmt.Fprintln(&b, output.Plain(s.Note))
	}
	b.WriteByte('\n')
	if err := output.WriteTable(&b, columns(s, now), width, nil); err != nil {
		return "", err
	}
	if len(s.Changes) == 0 {
		return b.String(), nil
	}
	b.WriteByte('\n')
	err = output.WriteTable(&b, changeColumns(s.Changes, now), width, nil)
	return b.String(), err
}

// columns are the instances, side by side.
func columns(s api.Pair, now time.Time) []output.Column {
	all := slices.Clone(s.Instances)
	if s.Pod != "" && !slices.ContainsFunc(all, func(i api.Instance) bool { return i.Owner == s.Owner }) {
		all = append(all, api.Instance{Pod: s.Pod, Region: s.Region, Owner: s.Owner, Status: string(s.State) + ", has not answered"})
	}
	slices.SortFunc(all, func(a, b api.Instance) int { return strings.Compare(a.Region+"/"+a.Pod, b.Region+"/"+b.Pod) })
	columns := []output.Column{{Title: "REGION", Cells: []string{"pod", "role", "since", "waits for", "clock", "token"}}}
	for _, i := range all {
		since, token, clocks := "-", "-", "-"
		if i.Owner == s.Owner && s.Since != nil {
			since, token = fmt.Sprintf("%s (%s)", output.At(*s.Since, now), output.Ago(*s.Since, now)), s.Token.String()
		}
		if i.ClockApart != nil {
			clocks = fmt.Sprintf("%.0fs or more from the store's", *i.ClockApart)
			if *i.ClockApart == 0 {
				clocks = "as the store's"
			}
		}
		columns = append(columns, output.Column{Title: output.OrDash(output.Plain(i.Region)), Cut: true, Cells: []string{
			output.Plain(i.Pod), output.Plain(i.Status), since, output.OrDash(output.Plain(i.Waits)), clocks, token,
		}})
	}
	return columns
}

func changeColumns(all []api.PairChange, now time.Time) []output.Column {
	at, from, to := output.Column{Title: "AT"}, output.Column{Title: "FROM", Cut: true}, output.Column{Title: "TO", Cut: true}
	gap, why := output.Column{Title: "NOBODY ACTIVE FOR"}, output.Column{Title: "ENDED", Cut: true}
	for _, c := range all {
		began := "-"
		if c.At != nil {
			began = output.At(*c.At, now)
		}
		at.Cells = append(at.Cells, began)
		from.Cells = append(from.Cells, output.OrDash(output.Plain(c.From)))
		to.Cells = append(to.Cells, output.Plain(c.To))
		text := "-"
		switch {
		case c.Gap != nil:
			text = fmt.Sprintf("%.1fs", time.Duration(*c.Gap).Seconds())
		case c.GapAtMost != nil:
			text = fmt.Sprintf("%.0fs at most", time.Duration(*c.GapAtMost).Seconds())
		}
		gap.Cells = append(gap.Cells, text)
		why.Cells = append(why.Cells, output.OrDash(output.Plain(c.Why)))
	}
	return []output.Column{at, from, to, gap, why}
}
