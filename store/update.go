package store

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
)

// Update reads the record under key, lets f change it, and writes it. It retries until no other
// write has come in between. A key that is not stored is Record{Key: key}. f returns false when
// there is nothing to write, and an error to give up with. Update sets Nonce. What f does to Key
// and Version doesn't count.
//
// f is called again after a conflict, and after a write of unknown outcome that the record doesn't
// show. Such a write may have landed and been replaced by another one. So f has to tell from the
// record whether its change is still needed.
//
// Update blocks until the store has answered or ctx is done; in the second case its error matches
// the [context.Cause]. An unknown outcome is an error that matches [ErrUnknownOutcome], which may
// be joined with one of f's. Then a write may have landed, or may yet land. After any other error
// no write is on its way. At most, one landed and has been replaced since.
func Update(ctx context.Context, s Store, key string, f func(*Record) (write bool, err error)) error {
	rec, err := Load(ctx, s, key)
	if err != nil {
		return err
	}
	var doubt error     // of a write that may yet land
	var replaces string // the version that has to be the stored one for that
	var mine []string   // nonces of the writes of unknown outcome
	for pause := pollMin; ; {
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), doubt)
		}
		version, nonce := rec.Version, rand.Text()
		if write, err := f(&rec); err != nil || !write {
			return errors.Join(err, doubt)
		}
		rec.Key, rec.Version, rec.Nonce = key, version, nonce
		_, err := s.Put(ctx, rec)
		var conflict *ConflictError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &conflict):
			rec = conflict.Current
		case errors.Is(err, ErrNotFound):
			rec = Record{Key: key}
		case errors.Is(err, ErrUnknownOutcome) && ctx.Err() == nil:
			doubt, replaces, mine = err, version, append(mine, nonce)
			if err := sleep(ctx, pause); err != nil {
				return errors.Join(err, doubt)
			}
			pause = min(pause*3/2, pollMax)
			if rec, err = Load(ctx, s, key); err != nil {
				return errors.Join(err, doubt)
			}
		default:
			return errors.Join(err, doubt)
		}
		if rec.Nonce == nonce || slices.Contains(mine, rec.Nonce) {
			return nil
		}
		if rec.Version != replaces {
			doubt = nil
		}
	}
}
