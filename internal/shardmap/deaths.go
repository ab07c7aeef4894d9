package shardmap

import "time"

// A slice that ends each of its owners soon after it has come to them is a slice of death: a key of
// it may kill the process that works on it. Once it has ended so many, nobody gets it for a while,
// which doubles with each further one.
const (
	MaxDeaths     = 3
	MaxQuarantine = time.Hour
)

// Buried frees slice i, whose owner's session has ended under it, and counts that against the slice
// if the owner had it for less than within. So a slice that was owned for longer, or was handed on,
// is beyond suspicion. closed is as for [Chunk.Give]. It reports whether the slice is to be
// quarantined.
func (c *Chunk) Buried(i int, closed func(string) bool, within time.Duration, wall time.Time) (bool, error) {
	s := c.Slices[i]
	deaths := 0
	if s.Held(wall) < within {
		deaths = s.Deaths + 1
	}
	if err := c.Give(i, "", "", closed, wall); err != nil {
		return false, err
	}
	c.Slices[i].Deaths = deaths
	return deaths >= MaxDeaths, nil
}

// Held returns for how long the token of the slice has been its newest: by the wall clock of who
// raised it.
func (s Slice) Held(wall time.Time) time.Duration {
	return time.Duration(wall.UnixMilli()-int64(s.Token)) * time.Millisecond
}

// Quarantine has nobody get slice i, which nobody owns, for a first time, doubled for each death
// beyond [MaxDeaths].
func (c *Chunk) Quarantine(i int, first time.Duration, wall time.Time) {
	d := first
	for range c.Slices[i].Deaths - MaxDeaths {
		d = min(2*d, MaxQuarantine)
	}
	c.Slices[i].Until = wall.Add(min(d, MaxQuarantine)).Unix()
}

// Quarantined reports whether nobody is to get the slice at that time.
func (s Slice) Quarantined(wall time.Time) bool { return s.Owner == "" && s.Until > wall.Unix() }
