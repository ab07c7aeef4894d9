package mutate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// source is a parsed file.
type source struct {
	path string // from the root
	text string
	fset *token.FileSet
	file *ast.File
}

func parse(path, text string) (*source, error) {
	s := &source{path: path, text: text, fset: token.NewFileSet()}
	var err error
	if s.file, err = parser.ParseFile(s.fset, path, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	return s, nil
}

// at returns the offset of a position in the text.
func (s *source) at(p token.Pos) int { return s.fset.Position(p).Offset }

// of returns the text of a node.
func (s *source) of(n ast.Node) string { return s.text[s.at(n.Pos()):s.at(n.End())] }

// function returns the function of that name: "NextToken", "Hold.drop".
func (s *source) function(name string) *ast.FuncDecl {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && nameOf(f) == name {
			return f
		}
	}
	return nil
}

// nameOf returns a function's name, after its receiver's type if it is a method.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// change puts text in the place of what is from one offset of a file to another.
type change struct {
	from, to int
	text     string
}

// apply makes changes in the part of text that begins at base. They don't overlap.
func apply(text string, base int, changes []change) string {
	changes = slices.Clone(changes)
	slices.SortFunc(changes, func(a, b change) int { return b.from - a.from })
	for _, c := range changes {
		text = text[:c.from-base] + c.text + text[c.to-base:]
	}
	return text
}

// variant is one function as a mutant has it.
type variant struct {
	mutant  string
	fn      *ast.FuncDecl
	changes []change
}

// span is where in a rewritten file the code of a mutant is, in lines.
type span struct {
	mutant   string
	from, to int
}

// rewrite returns the file with the variants of its functions added. Lines of the file as it was
// keep their numbers.
func (s *source) rewrite(variants []variant) (text string, spans []span) {
	by := map[*ast.FuncDecl][]variant{}
	for _, v := range variants {
		by[v.fn] = append(by[v.fn], v)
	}
	edits := []change{{from: s.at(s.file.Name.End()), text: `; import seeded__ "` + seededPath + `"`}}
	edits[0].to = edits[0].from
	for fn, of := range by {
		named, call := s.signature(fn)
		edits = append(edits, named...)
		var b strings.Builder
		fmt.Fprintf(&b, " switch seeded__.On(%q) { ", s.path+" "+nameOf(fn))
		for _, v := range of {
			fmt.Fprintf(&b, "case %q: %s; ", v.mutant, call(v.mutant))
		}
		b.WriteString("}; ")
		body := s.at(fn.Body.Lbrace) + 1
		edits = append(edits, change{body, body, b.String()})
	}
	out := strings.TrimRight(apply(s.text, 0, edits), "\n") + "\n"
	var tail strings.Builder
	tail.WriteString(out)
	next := strings.Count(out, "\n") + 1
	for _, v := range variants {
		from := s.at(v.fn.Pos())
		name := s.at(v.fn.Name.End())
		copied := apply(s.text[from:s.at(v.fn.End())], from, append(v.changes, change{name, name, suffix(v.mutant)})) + "\n"
		tail.WriteString(copied)
		lines := strings.Count(copied, "\n")
		spans = append(spans, span{v.mutant, next, next + lines - 1})
		next += lines
	}
	return tail.String(), spans
}

// signature returns the changes that name each parameter of fn, and a function that returns the
// call of a mutant's copy of it.
func (s *source) signature(fn *ast.FuncDecl) (named []change, call func(mutant string) string) {
	unnamed := 0
	fresh := func() string { unnamed++; return fmt.Sprint("p__", unnamed) }
	name := func(f *ast.Field) (names []string) {
		if len(f.Names) == 0 {
			n, at := fresh(), s.at(f.Type.Pos())
			named = append(named, change{at, at, n + " "})
			return []string{n}
		}
		for _, id := range f.Names {
			n := id.Name
			if n == "_" {
				n = fresh()
				named = append(named, change{s.at(id.Pos()), s.at(id.End()), n})
			}
			names = append(names, n)
		}
		return names
	}
	receiver := ""
	if fn.Recv != nil {
		receiver = name(fn.Recv.List[0])[0] + "."
	}
	var args []string
	for _, f := range fn.Type.Params.List {
		names := name(f)
		if _, variadic := f.Type.(*ast.Ellipsis); variadic {
			names[len(names)-1] += "..."
		}
		args = append(args, names...)
	}
	var types []string
	if fn.Type.TypeParams != nil {
		for _, f := range fn.Type.TypeParams.List {
			for _, id := range f.Names {
				types = append(types, id.Name)
			}
		}
	}
	return named, func(mutant string) string {
		c := receiver + fn.Name.Name + suffix(mutant)
		if len(types) > 0 {
			c += "[" + strings.Join(types, ", ") + "]"
		}
		c += "(" + strings.Join(args, ", ") + ")"
		if fn.Type.Results == nil {
			return c + "; return"
		}
		return "return " + c
	}
}

// suffix is what the name of a mutant's copy of a function ends with.
func suffix(mutant string) string { return "__" + strings.ReplaceAll(mutant, "-", "_") }
