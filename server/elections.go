package server

import (
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/wire"
)

// pauseOf returns the pause of an election as answers show it, or nil.
func pauseOf(state election.State) *wire.Pause {
	if state.Pause == nil {
		return nil
	}
	return &wire.Pause{By: state.Pause.By, Reason: state.Pause.Reason, Since: state.Pause.Since}
}
