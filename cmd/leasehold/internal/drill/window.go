package drill

import (
	"fmt"
	"strings"
	"time"
)

// Window is a time of day in which a drill may run. It may span midnight.
type Window struct {
	text     string
	from, to time.Duration // after midnight, by the clock on the wall
	zone     *time.Location
}

// ParseWindow reads FROM-TO, as in 22:00-04:00, in a time zone. The error says what is wrong.
func ParseWindow(text string, zone *time.Location) (*Window, error) {
	from, to, ok := strings.Cut(text, "-")
	w := &Window{text: text + " " + zone.String(), zone: zone}
	var err, err2 error
	w.from, err = timeOfDay(from)
	w.to, err2 = timeOfDay(to)
	switch {
	case !ok || err != nil || err2 != nil:
		return nil, fmt.Errorf("window %q: want the hours from and to, such as 02:00-04:00", text)
	case w.from == w.to:
		return nil, fmt.Errorf("window %q: it is empty: want two different times of day", text)
	}
	return w, nil
}

func timeOfDay(text string) (time.Duration, error) {
	t, err := time.Parse("15:04", strings.TrimSpace(text))
	if err != nil {
		return 0, err
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

// Left returns how long the window is still open at now, and 0 when it is closed. Where clocks are
// set forward or back meanwhile, that counts.
func (w *Window) Left(now time.Time) time.Duration {
	now = now.In(w.zone)
	for _, days := range []int{-1, 0} { // the window that began yesterday, and today's
		from, to := w.on(now, days, w.from), w.on(now, days, w.to)
		if !to.After(from) {
			to = w.on(now, days+1, w.to)
		}
		if !now.Before(from) && now.Before(to) {
			return to.Sub(now)
		}
	}
	return 0
}

func (w *Window) on(now time.Time, days int, at time.Duration) time.Time {
	hour, minute := int(at/time.Hour), int(at%time.Hour/time.Minute)
	return time.Date(now.Year(), now.Month(), now.Day()+days, hour, minute, 0, 0, w.zone)
}

// String returns the window with its zone.
func (w *Window) String() string { return w.text }
