package ids

import (
	"time"

	"github.com/leasehold/leasehold/flake"
)

// rule is one that keeps ids unique, by what happens without it.
type rule string

const (
	none         rule = ""
	noWindow     rule = "no window: a process makes ids while it believes in its lease"
	storedLate   rule = "the ceiling counts before it is stored"
	noFloor      rule = "the floor is ignored"
	clockTrusted rule = "a clock that was set back is believed"
)

// window is the hold, or what a program would have that lacks a rule.
func (p *process) window() flake.Window {
	switch p.n.w.without {
	case noWindow:
		return flake.FixedWindow(p.n.w.layout.Spec().Epoch, p.n.w.layout.Exhausted())
	case storedLate:
		return early{p}
	case noFloor:
		return floorless{p}
	}
	return p.h
}

type early struct{ *process }

func (w early) Floor() time.Time { return w.h.Floor() }

func (w early) Ceiling() time.Time {
	stored, soon := w.h.Ceiling(), w.n.clk.Wall().Add(window)
	if soon.After(stored) {
		return soon
	}
	return stored
}

type floorless struct{ *process }

func (w floorless) Floor() time.Time   { return w.n.w.layout.Spec().Epoch }
func (w floorless) Ceiling() time.Time { return w.h.Ceiling() }

// forget begins anew when the clock was set back, where it is to be believed.
func (p *process) forget() {
	if p.n.w.without != clockTrusted {
		return
	}
	now := p.n.clk.Wall()
	if now.Before(p.seen) {
		g, err := p.generator()
		if err != nil {
			p.n.w.t.Error(err)
			return
		}
		p.g.Stop()
		p.g = g
	}
	p.seen = now
}
