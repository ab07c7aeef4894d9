package archtest

import (
	"fmt"
	"io/fs"
	"slices"
	"sort"
)

// Problem is one place where a rule of the house is broken.
type Problem struct {
	Path string // of the file, or of the folder
	Line int    // 0 when the whole file is meant
	Text string // what is wrong, and why it matters
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Text)
}

// Check applies the rules to a source tree and returns what breaks them, sorted. It returns an
// error when the tree can't be read or a Go file can't be parsed.
func Check(fsys fs.FS, table []Row) ([]Problem, error) {
	t, err := read(fsys)
	if err != nil {
		return nil, err
	}
	j := &judge{tree: t, table: table}
	j.everyPackage()
	for i := range t.files {
		f := &t.files[i]
		j.imports(f)
		j.calls(f)
		if !f.test {
			j.size(f)
			j.width(f)
		}
	}
	j.modules()
	sort.Slice(j.found, func(a, b int) bool { return j.found[a].String() < j.found[b].String() })
	return j.found, nil
}

// judge collects what it finds.
type judge struct {
	tree  *tree
	table []Row
	found []Problem
}

func (j *judge) report(path string, line int, format string, args ...any) {
	j.found = append(j.found, Problem{path, line, fmt.Sprintf(format, args...)})
}

// everyPackage sees that each package is in the table and has a doc comment.
func (j *judge) everyPackage() {
	documented := map[string]bool{}
	var dirs []string
	for _, f := range j.tree.files {
		if !slices.Contains(dirs, f.dir) {
			dirs = append(dirs, f.dir)
		}
		if !f.test {
			documented[f.dir] = documented[f.dir] || f.syntax.Doc != nil
		}
	}
	for _, dir := range dirs {
		if j.row(dir) == nil {
			j.report(dir, 0, "this package is on no floor: give it a row in the table of internal/proof/archtest/table.go")
		}
		if doc, code := documented[dir]; code && !doc {
			j.report(dir, 0, "no file of this package has a package comment: say what it is for, in doc.go or at the top of its main file")
		}
	}
}
