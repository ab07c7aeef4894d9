package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The forms of output.
const (
	outputTable = "table"
	outputJSON  = "json"
	outputLines = "jsonl"
)

func checkOutput(v string) error {
	if v != outputTable && v != outputJSON && v != outputLines {
		return fmt.Errorf("%q: want %s, %s or %s", v, outputTable, outputJSON, outputLines)
	}
	return nil
}

func (a *app) output() string { return a.values.Get("output") }

// writeJSON writes v on its own, over several lines unless they are to be one.
func writeJSON(w io.Writer, v any, oneLine bool) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if !oneLine {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// writeList writes all as an array, or one to a line.
func writeList[T any](w io.Writer, all []T, lines bool) error {
	if !lines {
		if all == nil {
			all = []T{} // [], not null
		}
		return writeJSON(w, all, false)
	}
	for _, v := range all {
		if err := writeJSON(w, v, true); err != nil {
			return err
		}
	}
	return nil
}

// column is a column of a table. On a terminal that is too narrow, columns give way in the order of their shrink: first
// those with a short form of their cells take it, then they are cut in the middle.
type column struct {
	title string
	cells []string
	short []string // narrower cells, or nil
	cut   bool     // cells may be cut
}

const leastCut = 12 // characters that are left of a cell that is cut

// writeTable writes columns with two spaces between them, at most as wide as the terminal, if width isn't 0. paint, which
// may be nil, colours the cell of a column.
func writeTable(w io.Writer, columns []column, width int, paint func(title, cell, padded string) string) error {
	for i := len(columns) - 1; i >= 0 && width > 0 && tableWidth(columns) > width; i-- {
		if columns[i].short != nil {
			columns[i].cells = columns[i].short
		}
	}
	for i := range columns {
		if over := tableWidth(columns) - width; width > 0 && over > 0 && columns[i].cut {
			most := max(columnWidth(columns[i])-over, leastCut)
			cells := make([]string, len(columns[i].cells))
			for j, cell := range columns[i].cells {
				cells[j] = cutMiddle(cell, most)
			}
			columns[i].cells = cells
		}
	}
	for row := -1; row < len(columns[0].cells); row++ {
		var line strings.Builder
		for i, c := range columns {
			cell := c.title
			if row >= 0 {
				cell = c.cells[row]
			}
			padded := cell
			if i < len(columns)-1 {
				padded += strings.Repeat(" ", columnWidth(c)-utf8.RuneCountInString(cell)+2)
			}
			if row >= 0 && paint != nil {
				padded = paint(c.title, cell, padded)
			}
			line.WriteString(padded)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func columnWidth(c column) int {
	n := utf8.RuneCountInString(c.title)
	for _, cell := range c.cells {
		n = max(n, utf8.RuneCountInString(cell))
	}
	return n
}

func tableWidth(columns []column) int {
	n := 2 * (len(columns) - 1)
	for _, c := range columns {
		n += columnWidth(c)
	}
	return n
}

// cutMiddle shortens s to most characters. The end of an owner id tells it from others, the beginning says where it is.
func cutMiddle(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	head := (most - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(most-1-head):])
}

// ago says how long a time is past, roughly. Clocks differ: one that is ahead counts as now.
func ago(t, now time.Time) string {
	if d := now.Sub(t); d >= time.Second {
		return roughly(d) + " ago"
	}
	return "now"
}

func roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// at is a local time, with the date unless it is today.
func at(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// plain makes text from a record fit for a terminal, which control characters could take over.
func plain(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// stateColours are SGR codes.
var stateColours = map[string]string{
	string(stateHeld): "32", string(stateExpired): "33", string(stateBroken): "31", string(stateHanded): "36", statePaused: "33", string(stateFree): "2",
}

// painter colours states, if out is to have colours.
func painter(out *os.File) func(title, cell, padded string) string {
	if !coloured(out) {
		return nil
	}
	return func(title, cell, padded string) string {
		if code := stateColours[cell]; title == "STATE" && code != "" {
			return "\x1b[" + code + "m" + cell + "\x1b[0m" + padded[len(cell):]
		}
		return padded
	}
}
