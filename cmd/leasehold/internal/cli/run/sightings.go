package run

import (
	"errors"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/lease"
)

// keepSightings keeps for the next run what this one has seen of the name. err is what came of the
// acquisition.
func (j *Job) keepSightings(err error) {
	if j.m == nil {
		return
	}
	failed := j.m.Options().Sightings.Save()
	if failed == nil || !errors.Is(err, lease.ErrHeld) {
		return
	}
	j.Words.Warn("%s: if its holder is dead, the next run won't know: what this run saw can't be kept (%s). "+
		"-n, and -w below the TTL, then never take a dead holder's name: wait longer, or set XDG_STATE_HOME to a folder on a local disk",
		j.Name, cli.OneLine(failed))
}
