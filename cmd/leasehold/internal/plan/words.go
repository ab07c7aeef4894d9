package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cause is one row of the two sides.
type Cause struct {
	Name         string
	One, Elected time.Duration
}

// Causes returns the rows in their order.
func (p Plan) Causes() []Cause {
	one, el := p.One.Down, p.Elected.Down
	return []Cause{
		{"crashes", one.Crashes, el.Crashes},
		{"machine failures", one.Machines, el.Machines},
		{"deployments", one.Deploys, el.Deploys},
		{"store outages", one.Outages, el.Outages},
		{"no replica up", one.NoneUp, el.NoneUp},
	}
}

// Advice says which of the two, and why. Election has to take away half of the downtime at least to
// be worth a store, its writes and the code that can stop in time.
func (p Plan) Advice() string {
	one, elected := p.One.Total, p.Elected.Total
	switch {
	case one == 0:
		return "One instance: nothing that is counted here stops it."
	case elected >= one:
		worst := slices.MaxFunc(p.Causes(), func(a, b Cause) int { return int(a.Elected - a.One - b.Elected + b.One) })
		text := fmt.Sprintf("One instance: it is down for %s a year, elected replicas would be for %s, since %s.",
			Short(one), Short(elected), p.reason(worst.Name))
		if worst.Name == "crashes" && !p.Input.CrashReleases {
			text += " Under `leasehold run` a crash releases the lease: compare again with --crash-releases."
		}
		return text
	case elected > one/2:
		return fmt.Sprintf("One instance: election takes the downtime from %s to %s a year only, for %.0f writes a day and a store to run.",
			Short(one), Short(elected), p.Elected.WritesPerDay)
	}
	most := slices.MaxFunc(p.Causes(), func(a, b Cause) int { return int(a.One - b.One) })
	text := fmt.Sprintf("Elected replicas: they are down for %s a year, one instance would be for %s, most of it by %s.",
		Short(elected), Short(one), most.Name)
	if left := slices.MaxFunc(p.Causes(), func(a, b Cause) int { return int(a.Elected - b.Elected) }); left.Elected > 0 {
		text += fmt.Sprintf(" Most of what is left is %s: %s.", left.Name, p.remedy(left.Name))
	}
	return text
}

// reason is why a cause is worse for elected replicas than for one instance.
func (p Plan) reason(cause string) string {
	switch cause {
	case "crashes":
		return fmt.Sprintf("a restart takes %s, and a takeover %s", Short(p.Input.Restart), Short(p.Takeover.Mean))
	case "machine failures":
		return fmt.Sprintf("another machine takes %s, and a takeover %s", Short(p.Input.Detect), Short(p.Takeover.Mean))
	case "deployments":
		return fmt.Sprintf("a deployment takes %s, and a hand-over %s", Short(p.Input.Deploy), Short(p.Handover.Mean))
	case "store outages":
		return "they stop when the store does, and one instance needs none"
	}
	return "all of them are often down at once"
}

// remedy is what makes a cause less for elected replicas.
func (p Plan) remedy(cause string) string {
	switch {
	case cause == "crashes" && !p.Input.CrashReleases:
		return "let a crash release the lease, as `leasehold run` does (--crash-releases), or shorten the TTL"
	case cause == "machine failures":
		return "a shorter TTL is taken over sooner"
	case cause == "store outages":
		return "a longer TTL outlasts longer ones"
	case cause == "no replica up":
		return "add replicas"
	}
	return "a store that pushes, or a shorter poll, hands over sooner"
}

// Short writes a duration for people, with two units at most.
func Short(d time.Duration) string {
	switch {
	case d >= 2*day:
		h := d.Round(time.Hour)
		return trim(fmt.Sprintf("%dd%dh", h/day, h%day/time.Hour), "0h")
	case d >= time.Hour:
		return trim(d.Round(time.Minute).String(), "0s", "0m")
	case d >= time.Minute:
		return trim(d.Round(time.Second).String(), "0s")
	case d >= 100*time.Millisecond:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// trim takes off the ends, if a unit stands before them: 1h0m is 1h, 10s isn't 1.
func trim(s string, ends ...string) string {
	for _, end := range ends {
		if rest, found := strings.CutSuffix(s, end); found && rest != "" && (rest[len(rest)-1] < '0' || rest[len(rest)-1] > '9') {
			s = rest
		}
	}
	return s
}

// Percent writes an availability with so many digits that the first ones that aren't nines show.
func (s Side) Percent() string {
	if s.Nines < 0 {
		return "100 %"
	}
	return strconv.FormatFloat(100*s.Availability, 'f', max(s.Nines, 2), 64) + " %"
}
