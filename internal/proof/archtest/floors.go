package archtest

import (
	"slices"
	"strings"
)

// row returns the row of the table that counts for a package, or nil: its own, or the longest that
// covers it.
func (j *judge) row(dir string) *Row {
	var best *Row
	for i := range j.table {
		r := &j.table[i]
		if r.Dir == dir {
			return r
		}
		below, wild := strings.CutSuffix(r.Dir, "/...")
		if wild && within(dir, below) && (best == nil || len(r.Dir) > len(best.Dir)) {
			best = r
		}
	}
	return best
}

// within reports whether the slash-separated path p is dir or below it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func anyWithin(p string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(p, dir) })
}

// imports sees that a file imports what its package may.
func (j *judge) imports(f *file) {
	r := j.row(f.dir)
	if r == nil {
		return // reported for the package
	}
	for _, i := range f.imports {
		own, ours := strings.CutPrefix(i.path, Module+"/")
		first, _, _ := strings.Cut(i.path, "/")
		var wrong string
		switch {
		case ours:
			wrong = j.sibling(f, r, own)
		case strings.Contains(first, "."):
			wrong = j.library(f, r, i.path)
		case r.Only != nil && !f.test && !slices.Contains(r.Only, "std") && !slices.Contains(r.Only, i.path):
			wrong = "it may import only " + strings.Join(r.Only, ", ") + ": " + r.Why
		}
		if wrong != "" {
			j.report(f.path, i.line, "imports %s: %s", i.path, wrong)
		}
	}
}

// sibling returns why f must not import our package target, or "".
func (j *judge) sibling(f *file, r *Row, target string) string {
	t := j.row(target)
	switch {
	case t == nil:
		return "that package is on no floor: give it a row in the table"
	case r.Only != nil && !f.test && !slices.Contains(r.Only, target):
		return "it may import only " + strings.Join(r.Only, ", ") + ": " + r.Why
	case t == r, f.test && slices.Contains(forTests, target), slices.Contains(r.May, target):
		return ""
	case t.Tests && !f.test && r.Floor != Outer:
		return "that package is made for tests, and only tests import it"
	case t.Engine && r.Engine:
		return "engines never import each other: a program that imports one gets its client library and no other"
	case r.Engine && t.Floor >= Rules:
		return "an engine keeps records; what they mean is decided above, by the lease, which it must not know"
	case t.Engine && r.Floor < F5:
		return "nothing but the command and programs chooses an engine; take a store.Store"
	case t.Floor >= r.Floor:
		return "a package imports from lower floors only: " + f.dir + " is on " + r.Floor.String() + ", " + target + " on " + t.Floor.String()
	}
	return ""
}

// library returns why f must not import a package of others, or "".
func (j *judge) library(f *file, r *Row, target string) string {
	listed := anyWithin(target, r.Libs) || slices.Contains(r.Libs, "*")
	switch {
	case f.test && anyWithin(target, testLibs):
		return ""
	case !listed:
		return "the table does not list that library for " + f.dir + ": every dependency is one that users get as well"
	case !f.test && !r.Tests && j.tree.module(f.dir) == "." && !within(target, x):
		return "the root module needs nothing beyond the standard library and golang.org/x, tests aside"
	}
	return ""
}
