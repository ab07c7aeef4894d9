package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store/open"
)

// sightings returns what earlier runs of this program on this machine have seen of names in the store.
func (a *app) sightings() *sightings.Book {
	url, _, err := a.storeURL()
	if err != nil {
		return nil // told when the store is opened
	}
	dir, err := sightingsDir()
	if err != nil {
		dir = "" // told by Save
	}
	return sightings.New(dir, url.String())
}

// sightingsDir is a folder in the one that systemd gives a unit for its state, or in the user's.
func sightingsDir() (string, error) {
	dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	if filepath.IsAbs(dir) {
		return filepath.Join(dir, "leasehold", "sightings"), nil
	}
	dir, err := open.StateDir()
	return filepath.Join(dir, "sightings"), err
}

// keepSightings keeps for the next run what this one has seen of the name. err is what came of the acquisition.
func (j *job) keepSightings(err error) {
	if j.m == nil {
		return
	}
	failed := j.m.Sightings().Save()
	if failed == nil || !errors.Is(err, lease.ErrHeld) {
		return
	}
	j.words.warn("%s: if its holder is dead, the next run won't know: what this run saw can't be kept (%s). "+
		"-n, and -w below the TTL, then never take a dead holder's name: wait longer, or set XDG_STATE_HOME to a folder on a local disk",
		j.name, oneLine(failed))
}

// keepBook keeps what a command that only looks has seen. Where that can't be kept, the next look begins again: no reason to fail.
func (a *app) keepBook() { _ = a.book.Save() }
