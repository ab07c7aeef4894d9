package ballot

import (
	"cmp"
	"slices"
	"time"
)

// Pause says who paused an election, why, and until when: see election.Pause.
type Pause struct {
	ID     string    `json:"id,omitempty"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // zero is never
}

// Over reports whether the pause has ended by itself, if it is now.
func (p Pause) Over(now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// Forgotten reports whether the pause has been over for as long as it lasted, so that no candidate
// counts it any more.
func (p Pause) Forgotten(now time.Time) bool {
	return !p.Until.IsZero() && p.Over(now.Add(-p.Until.Sub(p.Since)))
}

// String returns who paused the election, why and until when.
func (p Pause) String() string {
	text := p.By
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	if !p.Until.IsZero() {
		text += ", until " + p.Until.Format(time.RFC3339)
	}
	return text
}

// Equal reports whether p and q are one pause, whatever their IDs.
func (p Pause) Equal(q Pause) bool {
	return p.By == q.By && p.Reason == q.Reason && p.Since.Equal(q.Since) && p.Until.Equal(q.Until)
}

// AllPauses returns all of them. Where a version that knows one only has set or ended that, the
// others are gone.
func (b Ballot) AllPauses() []Pause {
	switch {
	case b.Pause == nil:
		return nil
	case slices.ContainsFunc(b.Pauses, b.Pause.Equal):
		return slices.Clone(b.Pauses)
	}
	only := *b.Pause
	only.ID = cmp.Or(only.ID, "1") // such versions give none
	return []Pause{only}
}

// SetPauses writes them down.
func (b *Ballot) SetPauses(all []Pause) {
	b.Pause, b.Pauses = lastToEnd(all), nil
	if len(all) > 1 {
		b.Pauses = all
	}
}

// lastToEnd returns the pause that ends last, nil if there is none.
func lastToEnd(all []Pause) *Pause {
	if len(all) == 0 {
		return nil
	}
	last := slices.MaxFunc(all, func(a, b Pause) int {
		switch {
		case a.Until.IsZero() && b.Until.IsZero():
			return 0
		case a.Until.IsZero():
			return 1
		case b.Until.IsZero():
			return -1
		}
		return a.Until.Compare(b.Until)
	})
	return &last
}
