package model

import (
	"slices"

	"github.com/leasehold/leasehold/internal/drive"
)

// late reports whether the request of p is to be sent once more.
func (w *world) late(p *proc) bool { return p.asked != nil && p.again != 0 && w.now(p) >= p.again }

// repeat lets a process send its request once more, beside the first. Which copy arrives first is
// open.
func (w *world) repeat(c *check, i int) *world {
	if p := w.procs[i]; w.left.Copies == 0 || !w.late(p) || w.now(p) >= p.asked.Until {
		return nil
	}
	n, q := w.change(i)
	n.left.Copies--
	q.d.Hold.Late(n.env(q))
	c.show(n, q)
	n.send(q)
	q.again = drive.NextCopy(*q.asked, n.now(q))
	return n
}

// send has a copy of the request of p on its way.
func (w *world) send(p *proc) {
	p.copies.Send()
	w.wires = append(slices.Clip(w.wires), wire{to: p.id, turn: p.turn, copy: p.copies.Sent, act: *p.asked})
}

// due reports whether p has something to do.
func (w *world) due(p *proc) bool {
	switch {
	case p.dead || p.d.Hold.Key == "":
		return false
	case p.asked != nil:
		return w.now(p) >= p.asked.Until || w.late(p)
	}
	return w.now(p) >= p.sleep
}
