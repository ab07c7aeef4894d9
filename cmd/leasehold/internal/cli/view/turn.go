package view

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/internal/api"
)

// TurnText says in short which turn of a job it is, and what came of it; "" for none.
func TurnText(t *api.Turn) string {
	if t == nil {
		return ""
	}
	return t.At + " " + t.Zone + ": " + Outcome(t)
}

// Outcome is what came of a turn.
func Outcome(t *api.Turn) string {
	if t.Code != nil {
		return fmt.Sprintf("exit code %d", *t.Code)
	}
	return string(t.State)
}

// turnRows are the rows of a table that show has for the turns of a job: the last one that was
// begun, and the last one that has ended.
func turnRows(last, completed *api.Turn, now time.Time) (rows [][2]string) {
	if last == nil {
		return nil
	}
	row := func(title string, t *api.Turn) {
		text := fmt.Sprintf("%s, begun %s (%s) by %s, token %d", TurnText(t), output.At(t.Begun, now), output.Ago(t.Begun, now), output.Plain(t.Holder), t.Token)
		if !t.Ended.IsZero() {
			text += fmt.Sprintf(", ended after %s", output.Roughly(max(t.Ended.Sub(t.Begun), 0)))
		}
		rows = append(rows, [2]string{title, text})
	}
	row("turn", last)
	if completed != nil {
		row("completed", completed)
	}
	if !last.Next.IsZero() {
		text := output.At(last.Next, now)
		switch in := last.Next.Sub(now); {
		case in > 0:
			text += " (in " + output.Roughly(in) + ")"
		default:
			text += " (due " + output.Ago(last.Next, now) + ")"
		}
		rows = append(rows, [2]string{"next turn", text})
	}
	return rows
}
