package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/leasehold/leasehold/internal/fileurl"
	"github.com/leasehold/leasehold/lease/sightings"
)

// Sightings returns what earlier runs of this program on this machine have seen of names in the
// store.
func (a *App) Sightings() *sightings.Book {
	url, _, err := a.StoreURL()
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
	dir, err := fileurl.StateDir(runtime.GOOS)
	return filepath.Join(dir, "sightings"), err
}
