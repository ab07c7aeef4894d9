//go:build !unix || solaris || aix

package file

import (
	"errors"
	"fmt"
	"os"
)

var errNoGroups = errors.New("users share a file by their group on Unix only: leave the group out")

func prepare(string, Group) (string, error) { return "", errNoGroups }

func (g Group) admits(string, string) error { return errNoGroups }

func (g Group) missing(string) error { return errNoGroups }

func makeDir(path string) error { return os.Mkdir(path, 0o700) }

func share(*os.File) {}

func denied(_ string, err error) error {
	return fmt.Errorf("make folder and file writable for this user: %w", err)
}
