package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// development is the version that modules of the workspace require each other at.
const development = "v0.0.0"

// Module is one of the workspace.
type Module struct {
	Path      string
	Dir       string // from the root of the workspace, with slashes; "." is the root
	Published bool
	File      *modfile.File
	Packages  []Package
	// Siblings that its packages or their tests import and its go.mod does not require.
	Missing  []string
	Lockstep bool // it uses more of the core than the guards do, so it moves in step with it
}

// unpublished are the elements of a module's folder that say that nobody imports it or installs it
// from outside.
var unpublished = []string{"internal", "examples", "interop", "browsertest"}

func published(dir string) bool {
	return !slices.ContainsFunc(strings.Split(dir, "/"), func(e string) bool { return slices.Contains(unpublished, e) })
}

// Workspace is what go.work ties together.
type Workspace struct {
	Root    string // the folder
	Path    string // of the root module
	Modules []*Module
}

func load(root string) (*Workspace, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, err
	}
	w := &Workspace{Root: root}
	for _, use := range work.Use {
		m, err := w.read(path.Clean(filepath.ToSlash(use.Path)))
		if err != nil {
			return nil, err
		}
		if m.Dir == "." {
			w.Path = m.Path
		}
		w.Modules = append(w.Modules, m)
	}
	if w.Path == "" {
		return nil, fmt.Errorf("go.work: it does not use the root module: add `use .`")
	}
	for _, m := range w.Modules {
		if want := path.Join(w.Path, m.Dir); m.Path != want {
			return nil, fmt.Errorf("%s/go.mod: module %s: want %s, as its tags name the folder", m.Dir, m.Path, want)
		}
		if err := w.scan(m); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *Workspace) read(dir string) (*Module, error) {
	name := path.Join(dir, "go.mod")
	text, err := os.ReadFile(filepath.Join(w.Root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	if f.Module == nil {
		return nil, fmt.Errorf("%s: it has no module line", name)
	}
	return &Module{Path: f.Module.Mod.Path, Dir: dir, Published: published(dir), File: f}, nil
}

// module returns the module with that path, or nil.
func (w *Workspace) module(path string) *Module {
	for _, m := range w.Modules {
		if m.Path == path {
			return m
		}
	}
	return nil
}

// home returns the module of the workspace that has the package, or nil.
func (w *Workspace) home(pkg string) *Module {
	var best *Module
	for _, m := range w.Modules {
		if (pkg == m.Path || strings.HasPrefix(pkg, m.Path+"/")) && (best == nil || len(m.Path) > len(best.Path)) {
			best = m
		}
	}
	return best
}

// siblings returns what of the workspace the module's go.mod requires, indirectly too.
func (w *Workspace) siblings(m *Module) []*Module {
	var all []*Module
	for _, r := range m.File.Require {
		if s := w.module(r.Mod.Path); s != nil {
			all = append(all, s)
		}
	}
	return all
}

// order returns the published modules, each after those that it requires.
func (w *Workspace) order() ([]*Module, error) {
	var done, open []*Module
	var visit func(m *Module) error
	visit = func(m *Module) error {
		if slices.Contains(done, m) {
			return nil
		}
		if slices.Contains(open, m) {
			return fmt.Errorf("%s/go.mod: module %s requires itself by way of its siblings: hashes can't be told; break the circle", m.Dir, m.Path)
		}
		open = append(open, m)
		for _, s := range w.siblings(m) {
			if err := visit(s); err != nil {
				return err
			}
		}
		open = open[:len(open)-1]
		done = append(done, m)
		return nil
	}
	for _, m := range w.Modules {
		if m.Published {
			if err := visit(m); err != nil {
				return nil, err
			}
		}
	}
	return done, nil
}

// check returns an error that lists all for which the workspace can't be released.
func (w *Workspace) check() error {
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, m := range w.Modules {
		if !m.Published {
			continue
		}
		for _, r := range m.File.Replace {
			say("%s/go.mod: replace %s: importers don't see it; remove it, go.work has those of siblings", m.Dir, r.Old.Path)
		}
		for _, r := range m.File.Require {
			s := w.module(r.Mod.Path)
			switch {
			case s == nil:
			case !s.Published:
				say("%s/go.mod: require %s: that module is not published; import it from a module that isn't either", m.Dir, s.Path)
			case r.Mod.Version != development:
				say("%s/go.mod: require %s %s: want %s, which the release replaces", m.Dir, s.Path, r.Mod.Version, development)
			}
		}
		for _, missing := range m.Missing {
			say("%s/go.mod: require %s is missing, which its packages import: add it at %s and run scripts/tidy", m.Dir, missing, development)
		}
		for _, p := range w.unmarked(m) {
			say("%s: package %s does not import %s, so it could be built with the core of another minor version: add a lockstep.go", m.Dir, p, w.Path+"/"+lockstepDev)
		}
		if !m.documented(w.Root) {
			say("%s: module %s has neither a README.md nor a package comment in its folder: add one", m.Dir, m.Path)
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("the workspace can't be released:\n%s", strings.Join(found, "\n"))
	}
	return nil
}

func (m *Module) documented(root string) bool {
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m.Dir), "README.md")); err == nil {
		return true
	}
	return slices.ContainsFunc(m.Packages, func(p Package) bool { return p.Path == m.Path && p.Documented })
}

// tag is the name of the tag by which the go command finds the module at the version.
func (m *Module) tag(version string) string {
	if m.Dir == "." {
		return version
	}
	return m.Dir + "/" + version
}
