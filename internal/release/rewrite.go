package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// rewrite makes the worktree that of the version: modules require each other at it, go.work
// replaces what is required so, and the marker has the name of the minor version.
func (w *Workspace) rewrite(version string) error {
	for _, m := range w.Modules {
		for _, s := range w.siblings(m) {
			if err := m.File.AddRequire(s.Path, version); err != nil {
				return err
			}
		}
		text, err := m.File.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(w.file(m.Dir, "go.mod"), text, 0o644); err != nil {
			return err
		}
	}
	if err := w.rewriteWork(version); err != nil {
		return err
	}
	return w.rewriteMarker(version)
}

func (w *Workspace) file(elements ...string) string {
	return filepath.Join(w.Root, filepath.FromSlash(strings.Join(elements, "/")))
}

func (w *Workspace) rewriteWork(version string) error {
	text, err := os.ReadFile(w.file("go.work"))
	if err != nil {
		return err
	}
	f, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return err
	}
	var replaces []modfile.Replace // dropping one clears it
	for _, r := range f.Replace {
		replaces = append(replaces, *r)
	}
	for _, r := range replaces {
		if w.module(r.Old.Path) == nil || r.Old.Version != development {
			continue
		}
		if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
		if err := f.AddReplace(r.Old.Path, version, r.New.Path, r.New.Version); err != nil {
			return err
		}
	}
	f.Cleanup()
	return os.WriteFile(w.file("go.work"), modfile.Format(f.Syntax), 0o644)
}

func (w *Workspace) rewriteMarker(version string) error {
	to := "internal/lockstep/" + marker(version)
	if err := os.Rename(w.file(lockstepDev), w.file(to)); err != nil {
		return fmt.Errorf("%s: %w", lockstepDev, err)
	}
	from := []byte(`"` + w.Path + "/" + lockstepDev + `"`)
	return filepath.WalkDir(w.Root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(text, from) {
			return err
		}
		return os.WriteFile(name, bytes.ReplaceAll(text, from, []byte(`"`+w.Path+"/"+to+`"`)), 0o644)
	})
}
