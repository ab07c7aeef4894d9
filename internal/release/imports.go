package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// lockstepDev is the package that each module in lockstep with the core imports, from the root.
const lockstepDev = "internal/lockstep/dev"

// Package is a package of a module: what its files for every system import.
type Package struct {
	Path       string
	Name       string
	Documented bool
	Imports    []string // of what is built into a program
	Tests      []string
}

// scan reads the packages of the module, whatever system their files are for.
func (w *Workspace) scan(m *Module) error {
	top := filepath.Join(w.Root, filepath.FromSlash(m.Dir))
	byDir := map[string]*Package{}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(name, top, d)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(d.Name(), "_") || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		rel, err := filepath.Rel(top, filepath.Dir(name))
		if err != nil {
			return err
		}
		p := byDir[rel]
		if p == nil {
			p = &Package{Path: path.Join(m.Path, filepath.ToSlash(rel))}
			byDir[rel] = p
		}
		return p.add(name)
	})
	if err != nil {
		return err
	}
	for _, p := range byDir {
		m.Packages = append(m.Packages, *p)
	}
	slices.SortFunc(m.Packages, func(a, b Package) int { return strings.Compare(a.Path, b.Path) })
	w.judge(m)
	return nil
}

// enter says which folders the go command looks into for packages of the module in top.
func enter(name, top string, d fs.DirEntry) error {
	if name == top {
		return nil
	}
	if d.Name() == "testdata" || d.Name() == "vendor" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (p *Package) add(file string) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	into := &p.Imports
	if strings.HasSuffix(file, "_test.go") {
		into = &p.Tests
	} else {
		p.Documented = p.Documented || f.Doc != nil
		p.Name = f.Name.Name
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if !slices.Contains(*into, imported) {
			*into = append(*into, imported)
		}
	}
	return nil
}

// judge sees which siblings the module lacks, and whether it moves in lockstep with the core.
func (w *Workspace) judge(m *Module) {
	for _, p := range m.Packages {
		for _, imported := range slices.Concat(p.Imports, p.Tests) {
			s := w.home(imported)
			if s == nil || s == m || slices.Contains(m.Missing, s.Path) {
				continue
			}
			if !slices.ContainsFunc(m.File.Require, func(r *modfile.Require) bool { return r.Mod.Path == s.Path }) {
				m.Missing = append(m.Missing, s.Path)
			}
		}
		for _, imported := range p.Imports {
			if s := w.home(imported); m.Dir != "." && s != nil && s.Dir == "." && !w.guard(imported) {
				m.Lockstep = true
			}
		}
	}
}

// guard reports whether a package of the core is one that guarded resources link, package fence and
// what is below it. It is kept compatible, so modules that use nothing else need not move in step.
func (w *Workspace) guard(pkg string) bool {
	return pkg == w.Path+"/fence" || strings.HasPrefix(pkg, w.Path+"/fence/")
}

// unmarked returns the packages of a module in lockstep that programs can use, and which do not
// import the marker, by themselves or by way of a package of their module.
func (w *Workspace) unmarked(m *Module) []string {
	if !m.Lockstep {
		return nil
	}
	marker := w.Path + "/" + lockstepDev
	var reaches func(p *Package, seen map[string]bool) bool
	reaches = func(p *Package, seen map[string]bool) bool {
		seen[p.Path] = true
		for _, imported := range p.Imports {
			if imported == marker {
				return true
			}
			if !seen[imported] {
				if q := m.pkg(imported); q != nil && reaches(q, seen) {
					return true
				}
			}
		}
		return false
	}
	var all []string
	for i, p := range m.Packages {
		own := strings.TrimPrefix(p.Path, m.Path) + "/"
		if len(p.Imports) == 0 || strings.Contains(own, "/internal/") || reaches(&m.Packages[i], map[string]bool{}) {
			continue
		}
		all = append(all, p.Path)
	}
	return all
}

func (m *Module) pkg(path string) *Package {
	for i := range m.Packages {
		if m.Packages[i].Path == path {
			return &m.Packages[i]
		}
	}
	return nil
}
