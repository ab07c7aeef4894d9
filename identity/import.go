package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/lease"
)

// Conflict is why one assignment can't be adopted.
type Conflict struct {
	Name, Value string
	Why         string
}

// ImportError reports why [Import] can't adopt assignments: several names have one value, or a
// value doesn't fit the pool. Nothing was written.
type ImportError struct {
	Pool       string
	Duplicates []Duplicate
	Conflicts  []Conflict // by name
}

func (e *ImportError) Error() string {
	var parts []string
	for _, d := range e.Duplicates {
		parts = append(parts, fmt.Sprintf("%s is of %s", d.Value, strings.Join(d.Holders, ", ")))
	}
	for _, c := range e.Conflicts {
		parts = append(parts, fmt.Sprintf("%s: %s", c.Name, c.Why))
	}
	return fmt.Sprintf("import into %s: nothing is adopted: %s", e.Pool, strings.Join(parts, "; "))
}

// Is reports whether target is [ErrImport].
func (e *ImportError) Is(target error) bool { return target == ErrImport }

// Import adopts assignments that were made elsewhere, {name: value}, as [Assign] does. It leaves
// out names without a value, and returns the new assignments, by name. o has the values of the
// pool, and more; its Name, Value, Holder and Session must be empty.
//
// Import first looks at all of them. If one can't be adopted, it returns an *[ImportError] and
// writes nothing. Existing assignments stay as they are, so Import may be repeated. That is true
// after another error, too, which may leave some adopted and others not.
func Import(ctx context.Context, m *lease.Manager, pool string, values map[string]string, o AssignOptions) ([]Assignment, error) {
	if o.Name != "" || o.Value != "" || o.Holder != "" || o.Session != "" {
		return nil, errors.New("import: options Name, Value, Holder and Session: want none: the data say who has what")
	}
	if err := o.complete(pool); err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	missing, err := importable(ctx, m, pool, values, o.Options)
	if err != nil {
		return nil, err
	}
	var made []Assignment
	for _, name := range missing {
		one := o
		one.Name, one.Value = name, values[name]
		a, err := Assign(ctx, m, pool, one)
		if err != nil {
			return made, fmt.Errorf("%s: %w", name, err)
		}
		made = append(made, a)
	}
	return made, nil
}

// importable returns the names whose values are not theirs yet, or an *ImportError.
func importable(ctx context.Context, m *lease.Manager, pool string, values map[string]string, of Options) ([]string, error) {
	failure := &ImportError{Pool: pool, Duplicates: DuplicatesIn(values)}
	_, _, s, err := declare(ctx, m, m.Store(), pool, of)
	if err != nil {
		return nil, fmt.Errorf("import into %s: %w", pool, err)
	}
	_, entries, err := List(ctx, m.Store(), pool)
	if err != nil {
		return nil, err
	}
	byValue, byName := map[string]Entry{}, map[string]Entry{}
	for _, e := range entries {
		byValue[e.Value], byName[e.Name] = e, e
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		if value == "" {
			continue
		}
		if name == "" {
			failure.Conflicts = append(failure.Conflicts, Conflict{name, value, "it has no name"})
			continue
		}
		why := ""
		held, taken := byValue[value]
		has, other := byName[name]
		_, inside := s.place(value)
		switch {
		case !inside:
			why = (&OutsideError{pool, value, s.Values}).Error()
		case taken && held.Name != name:
			why = fmt.Sprintf("%s is held by %s", value, cmp.Or(held.Name, held.Record.Owner))
		case other && has.Value != value:
			why = fmt.Sprintf("it is to have %s, and has %s", value, has.Value)
		case !taken:
			missing = append(missing, name)
		}
		if err := (Options{Name: name}).check(pool); why == "" && err != nil {
			why = err.Error()
		}
		if why != "" {
			failure.Conflicts = append(failure.Conflicts, Conflict{name, value, why})
		}
	}
	if len(failure.Duplicates)+len(failure.Conflicts) > 0 {
		return nil, failure
	}
	return missing, nil
}
