package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// window is the data of a value's record.
type window struct {
	Format  int         `json:"v"`
	Token   fence.Token `json:"token"` // of the term that it was granted to
	Name    string      `json:"name,omitempty"`
	Floor   time.Time   `json:"floor"`
	Ceiling time.Time   `json:"ceiling"` // nobody has stamped a time from here on
	Open    bool        `json:"open"`    // the term may raise the ceiling

	Standing bool `json:"standing,omitempty"` // the term is an assignment, which no process keeps
}

// readWindow reads a value's record. One that isn't stored was never granted.
func readWindow(rec store.Record) (window, error) {
	w := window{Format: format}
	if len(rec.Data) == 0 {
		return w, nil
	}
	if err := json.Unmarshal(rec.Data, &w); err != nil {
		return window{}, driver.Corrupt(rec.Key, err)
	}
	if w.Format != format {
		return window{}, driver.Corrupt(rec.Key, fmt.Errorf("its data have format %d: this version reads format %d", w.Format, format))
	}
	return w, nil
}

// grantWindow stores the window of a new term, whose token and name term has, and returns it, and
// whose the value was before. It begins where all the windows before it ended, and ends there or
// length after now, whichever is later.
func grantWindow(ctx context.Context, st store.Store, key string, term window, now time.Time, length time.Duration) (w window, before string, err error) {
	token := term.Token
	err = changeWindow(ctx, st, key, func(old *window) (bool, error) {
		switch {
		case old.Token > token:
			return false, fmt.Errorf("%s: token %d: %w, under token %d", key, token, ErrWindow, old.Token)
		case old.Token == token: // an earlier try of this one landed
			w = *old
			return false, nil
		}
		floor := old.Ceiling
		if old.Token == 0 {
			floor = now
		}
		ceiling := now.Add(length)
		if floor.After(ceiling) {
			// And not later, or else a process that dies again and again pushes it ahead.
			ceiling = floor
		}
		before = old.Name
		w = term
		w.Format, w.Floor, w.Ceiling, w.Open = format, floor, ceiling, true
		*old = w
		return true, nil
	})
	return w, before, err
}

// raise stores a higher ceiling. When it returns nil, the stored ceiling is at least that.
func raise(ctx context.Context, st store.Store, key string, token fence.Token, ceiling time.Time) error {
	return changeWindow(ctx, st, key, func(w *window) (bool, error) {
		if w.Token != token || !w.Open {
			return false, fmt.Errorf("%s: token %d: %w, under token %d", key, token, ErrWindow, w.Token)
		}
		if !ceiling.After(w.Ceiling) {
			return false, nil
		}
		w.Ceiling = ceiling
		return true, nil
	})
}

// closeWindow ends the windows of a term: no ceiling of it counts any more, and the next window
// begins at used if that is earlier than the ceiling. A zero used leaves the ceiling.
func closeWindow(ctx context.Context, st store.Store, key string, token fence.Token, used time.Time) error {
	return changeWindow(ctx, st, key, func(w *window) (bool, error) {
		if w.Token != token || !w.Open {
			return false, nil // closed, or granted anew
		}
		if used.Before(w.Floor) && !used.IsZero() {
			used = w.Floor
		}
		if !used.IsZero() && used.Before(w.Ceiling) {
			w.Ceiling = used
		}
		w.Open = false
		return true, nil
	})
}

func changeWindow(ctx context.Context, st store.Store, key string, f func(*window) (bool, error)) error {
	return store.Update(ctx, st, key, func(rec *store.Record) (bool, error) {
		w, err := readWindow(*rec)
		if err != nil {
			return false, err
		}
		if write, err := f(&w); err != nil || !write {
			return false, err
		}
		rec.Data, err = json.Marshal(w)
		return err == nil, err
	})
}
