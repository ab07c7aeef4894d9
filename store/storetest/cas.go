package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// createRace: of those who create a key at one time, exactly one does, and the others learn which.
func createRace(ctx context.Context, e *env) error {
	const racers = 8
	handles, err := e.openAll(ctx, 4)
	if err != nil {
		return err
	}
	for round := range e.times(50, 8) {
		key := fmt.Sprintf("race%d", round)
		var mu sync.Mutex
		var winners, losers []store.Record
		start := make(chan struct{})
		var ready sync.WaitGroup
		ready.Add(racers)
		go func() { ready.Wait(); close(start) }()
		err := together(ctx, racers, func(ctx context.Context, i int) error {
			rec := held(key, fence.Token(i+1))
			ready.Done()
			<-start
			got, err := handles[i%len(handles)].Put(ctx, rec)
			mu.Lock()
			defer mu.Unlock()
			var c *store.ConflictError
			switch {
			case err == nil:
				winners = append(winners, got)
			case errors.As(err, &c):
				losers = append(losers, c.Current)
			default:
				return fmt.Errorf("creating %q: %w", key, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if len(winners) != 1 {
			return fmt.Errorf("%d of %d created %q, want 1", len(winners), racers, key)
		}
		for _, current := range append(losers, winners[0]) {
			if err := same(current, winners[0]); err != nil {
				return fmt.Errorf("a loser was told of another winner: %w", err)
			}
		}
		if err := mustGet(ctx, handles[round%len(handles)], winners[0]); err != nil {
			return err
		}
	}
	return nil
}

// contention: increments by many, on several handles, all count.
func contention(ctx context.Context, e *env) error {
	const workers = 8
	rounds := e.times(50, 5)
	handles, err := e.openAll(ctx, 3)
	if err != nil {
		return err
	}
	if _, err := mustPut(ctx, handles[0], held("k", 1)); err != nil {
		return err
	}
	err = together(ctx, workers, func(ctx context.Context, i int) error {
		for range rounds {
			if _, err := increment(ctx, handles[i%len(handles)], "k"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	rec, err := handles[1].Get(ctx, "k")
	if want := fence.Token(1 + workers*rounds); err == nil && rec.Token != want {
		err = fmt.Errorf("after %d increments the token is %d, want %d: updates were lost", workers*rounds, rec.Token, want)
	}
	return err
}

// conflictCarriesCurrent: a conflict brings the whole record that is stored, and changes nothing.
func conflictCarriesCurrent(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	s, other := handles[0], handles[1]
	first, err := mustPut(ctx, s, held("k", 1))
	if err != nil {
		return err
	}
	next := full("k")
	next.Version = first.Version
	current, err := mustPut(ctx, other, next)
	if err != nil {
		return err
	}
	if err := e.conflict(ctx, s, "creating a key that exists", put(ctx, s, held("k", 9)), current); err != nil {
		return err
	}
	first.Token = 9
	if err := e.conflict(ctx, s, "Put at a stale version", put(ctx, s, first), current); err != nil {
		return err
	}
	return e.conflict(ctx, s, "Delete at a stale version", del(ctx, s, "k", first.Version), current)
}

// putOfMissing: a version of a key that is not stored is not found, whether it ever was or not.
func putOfMissing(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	if err := mustMiss(ctx, s, "k"); err != nil {
		return err
	}
	other, err := mustPut(ctx, s, held("other", 1))
	if err != nil {
		return err
	}
	rec := held("k", 1)
	rec.Version = other.Version
	_, err = s.Put(ctx, rec)
	if err := notFound("Put at a version, key never stored", err); err != nil {
		return err
	}
	if err := notFound("Delete, key never stored", s.Delete(ctx, "k", other.Version)); err != nil {
		return err
	}
	stored, err := mustPut(ctx, s, held("k", 1))
	if err != nil {
		return err
	}
	if err := mustDelete(ctx, s, "k", stored.Version); err != nil {
		return err
	}
	_, err = s.Put(ctx, stored)
	if err := notFound("Put at a version, key deleted", err); err != nil {
		return err
	}
	if err := notFound("Delete, key deleted", s.Delete(ctx, "k", stored.Version)); err != nil {
		return err
	}
	return mustMiss(ctx, s, "k")
}

// deleteChecksVersion: only the stored version can be deleted.
func deleteChecksVersion(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	first, err := mustPut(ctx, s, held("k", 1))
	if err != nil {
		return err
	}
	second, err := mustPut(ctx, s, first)
	if err != nil {
		return err
	}
	for _, version := range []string{first.Version, ""} {
		what := fmt.Sprintf("Delete at version %q, stored is %q", version, second.Version)
		if err := e.conflict(ctx, s, what, del(ctx, s, "k", version), second); err != nil {
			return err
		}
	}
	return mustDelete(ctx, s, "k", second.Version)
}

// versionsAreNeverReused: no version of a key comes again, whatever is written, deleted and made
// again: A, B, A doesn't look like A.
func versionsAreNeverReused(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	var versions []string
	rec := held("k", 1) // always the same content, by the same writer
	for life := range 4 {
		s := handles[life%2]
		rec.Version = ""
		for range 3 {
			stored, err := mustPut(ctx, s, rec)
			if err != nil {
				return err
			}
			if slices.Contains(versions, stored.Version) {
				return fmt.Errorf("version %q came again: versions were %q", stored.Version, versions)
			}
			versions = append(versions, stored.Version)
			rec = stored
		}
		for _, old := range versions[:len(versions)-1] {
			late := held("k", 99)
			late.Version = old
			if err := e.conflict(ctx, s, "Put at a version of before", put(ctx, s, late), rec); err != nil {
				return err
			}
			if err := e.conflict(ctx, s, "Delete at a version of before", del(ctx, s, "k", old), rec); err != nil {
				return err
			}
		}
		if err := mustDelete(ctx, s, "k", rec.Version); err != nil {
			return err
		}
	}
	return nil
}

// otherVersionsNeverMatch: a version is compared as a whole, and belongs to its key.
func otherVersionsNeverMatch(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	other, err := mustPut(ctx, s, held("other", 1))
	if err != nil {
		return err
	}
	current, err := mustPut(ctx, s, held("k", 1))
	if err != nil {
		return err
	}
	v := current.Version
	versions := []string{
		other.Version, "0", "1", "-1", "x", "%", "*", "'", "null", " ", "\x00", "\xff", "18446744073709551616", strings.Repeat("9", 300),
		v + "0", "0" + v, v + " ", " " + v, "+" + v, v + ".0", v + "\x00", v[:len(v)-1], strings.ToUpper(v), strings.ToLower(v),
	}
	for _, version := range versions {
		if version == v || version == "" {
			continue
		}
		rec := held("k", 2)
		rec.Version = version
		if err := e.conflict(ctx, s, fmt.Sprintf("Put at version %q, stored is %q", version, v), put(ctx, s, rec), current); err != nil {
			return err
		}
		if err := e.conflict(ctx, s, fmt.Sprintf("Delete at version %q, stored is %q", version, v), del(ctx, s, "k", version), current); err != nil {
			return err
		}
	}
	return nil
}
