// Package output writes what commands print: tables, JSON, and times and texts for people.
package output

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

	"golang.org/x/term"
)

// The forms of output.
const (
	Table = "table"
	JSON  = "json"
	Lines = "jsonl"
)

// Check says what is wrong with a form of output.
func Check(v string) error {
	if v != Table && v != JSON && v != Lines {
		return fmt.Errorf("%q: want %s, %s or %s", v, Table, JSON, Lines)
	}
	return nil
}

// WriteJSON writes v on its own, over several lines unless they are to be one.
func WriteJSON(w io.Writer, v any, oneLine bool) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if !oneLine {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// WriteList writes all as an array, or one to a line.
func WriteList[T any](w io.Writer, all []T, lines bool) error {
	if !lines {
		if all == nil {
			all = []T{} // [], not null
		}
		return WriteJSON(w, all, false)
	}
	for _, v := range all {
		if err := WriteJSON(w, v, true); err != nil {
			return err
		}
	}
	return nil
}

// Column is a column of a table. On a terminal that is too narrow, columns give way in the order of
// their shrink: first those with a short form of their cells take it, then they are cut in the
// middle.
type Column struct {
	Title string
	Cells []string
	Short []string // narrower cells, or nil
	Cut   bool     // cells may be cut
}

// LeastCut is how many characters are left of a cell that is cut.
const LeastCut = 12

// WriteTable writes columns with two spaces between them, at most as wide as the terminal, if width
// isn't 0. paint, which may be nil, colours the cell of a column.
func WriteTable(w io.Writer, columns []Column, width int, paint func(title, cell, padded string) string) error {
	for i := len(columns) - 1; i >= 0 && width > 0 && tableWidth(columns) > width; i-- {
		if columns[i].Short != nil {
			columns[i].Cells = columns[i].Short
		}
	}
	for i := range columns {
		if over := tableWidth(columns) - width; width > 0 && over > 0 && columns[i].Cut {
			most := max(columnWidth(columns[i])-over, LeastCut)
			cells := make([]string, len(columns[i].Cells))
			for j, cell := range columns[i].Cells {
				cells[j] = CutMiddle(cell, most)
			}
			columns[i].Cells = cells
		}
	}
	for row := -1; row < len(columns[0].Cells); row++ {
		var line strings.Builder
		for i, c := range columns {
			cell := c.Title
			if row >= 0 {
				cell = c.Cells[row]
			}
			padded := cell
			if i < len(columns)-1 {
				padded += strings.Repeat(" ", columnWidth(c)-utf8.RuneCountInString(cell)+2)
			}
			if row >= 0 && paint != nil {
				padded = paint(c.Title, cell, padded)
			}
			line.WriteString(padded)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func columnWidth(c Column) int {
	n := utf8.RuneCountInString(c.Title)
	for _, cell := range c.Cells {
		n = max(n, utf8.RuneCountInString(cell))
	}
	return n
}

func tableWidth(columns []Column) int {
	n := 2 * (len(columns) - 1)
	for _, c := range columns {
		n += columnWidth(c)
	}
	return n
}

// CutMiddle shortens s to most characters. The end of an owner id tells it from others, the
// beginning says where it is.
func CutMiddle(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	head := (most - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(most-1-head):])
}

// Ago says how long a time is past, roughly. Clocks differ: one that is ahead counts as now.
func Ago(t, now time.Time) string { return Age(now.Sub(t)) }

// Age says how long something is past, roughly.
func Age(d time.Duration) string {
	if d >= time.Second {
		return Roughly(d) + " ago"
	}
	return "now"
}

// Roughly is a duration for people: to the second, the minute, the hour or the day.
func Roughly(d time.Duration) string {
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

// At is a local time, with the date unless it is today.
func At(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// Plain makes text from a record fit for a terminal, which control characters could take over.
func Plain(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// Width returns the width of the terminal that f is, or 0 if it is none.
func Width(f *os.File) int {
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w <= 0 {
		return 0
	}
	return w
}

// Coloured reports whether f is to have colours: see https://no-color.org.
func Coloured(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// OrDash returns s, or a dash in place of nothing.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Slots is a number of slots in words.
func Slots(n int) string {
	if n == 1 {
		return "1 slot"
	}
	return strconv.Itoa(n) + " slots"
}
