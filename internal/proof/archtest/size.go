package archtest

import (
	"bytes"
	"go/ast"
	"slices"
	"strings"
	"unicode/utf8"
)

// The longest that code may be, tests aside, in lines.
const (
	maxFile = 400
	maxFunc = 70
)

// maxComment is the last column of a comment, with four for a tab.
const maxComment = 100

// width sees that comments can be read without scrolling. What can't be broken may be longer:
// directives, code in a doc comment, a single word.
func (j *judge) width(f *file) {
	lines := bytes.Split(f.text, []byte("\n"))
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			at := f.line(c)
			for i, text := range strings.Split(c.Text, "\n") {
				if text = strings.TrimPrefix(text, "// "); strings.HasPrefix(text, "//") || !strings.Contains(text, " ") {
					continue
				}
				if n := columns(lines[at+i-1]); n > maxComment {
					j.report(f.path, at+i, "a comment that ends in column %d, of %d at most: put it above the code, and wrap it", n, maxComment)
				}
			}
		}
	}
}

func columns(line []byte) int { return utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t")) }

// size sees that a file and its functions are short.
func (j *judge) size(f *file) {
	if f.lines > maxFile {
		j.report(f.path, 0, "%d lines, of %d at most: one idea a file", f.lines, maxFile)
	}
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		start := f.line(fn)
		if lines := f.set.Position(fn.End()).Line - start + 1; lines > maxFunc {
			j.report(f.path, start, "function %s has %d lines, of %d at most", fn.Name.Name, lines, maxFunc)
		}
	}
}

// calls sees that a file uses nothing that its package must not: not by calling it, nor by passing
// it on.
func (j *judge) calls(f *file) {
	r := j.row(f.dir)
	if r == nil || r.Never == nil || f.test {
		return
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		k := slices.IndexFunc(f.imports, func(i imported) bool { return i.name == pkg.Name })
		if k < 0 {
			return true
		}
		if used := trimModule(f.imports[k].path) + "." + sel.Sel.Name; slices.Contains(r.Never, used) {
			j.report(f.path, f.line(sel), "uses %s: %s", used, r.Why)
		}
		return true
	})
	for _, i := range f.imports {
		if i.name == "." {
			j.report(f.path, i.line, "imports %s with a dot: what is used of it can't be seen", i.path)
		}
	}
}
